// What Matomo adds to visits and actions only to show them: no event carries it. Source: docs/wire/import.md §1.6.

import type { JsonObject } from '#core/json.ts'

const display = /(?:Icons?|IconSVG|Flag|Pretty|PrettyFirstAction)$|^(?:icon|iconSVG|subtitle|plugins|pluginsIcons)$/

/** Whether the field is a picture, or a text that says once more for people what another field says. */
export function isMatomoDisplay(field: string): boolean {
  return display.test(field)
}

/** Fields of the visit and its actions that no event carries. */
export function matomoDropped(visit: JsonObject, actions: readonly JsonObject[]): readonly string[] {
  const ofVisit = Object.keys(visit).filter(isMatomoDisplay)
  const ofActions = actions.flatMap(action => Object.keys(action).filter(isMatomoDisplay))
  return [...new Set([...ofVisit, ...ofActions.map(field => `actionDetails.${field}`)])]
}
