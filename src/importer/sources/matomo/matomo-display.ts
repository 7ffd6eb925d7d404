// Fields of a Matomo visit that no event carries, such as those that exist only for display. Source: docs/wire/import.md §1.6.

import type { JsonObject } from '#core/json.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'

const display = /(?:Icons?|IconSVG|Flag|Pretty|PrettyFirstAction)$|^(?:icon|iconSVG|subtitle|plugins|pluginsIcons)$/

/** Whether the field is an image, or a formatted copy of another field. */
export function isMatomoDisplay(field: string): boolean {
  return display.test(field)
}

/** Times of the visit, which no event carries: events have the times of the actions. */
const visitTimes = ['lastActionTimestamp', 'lastActionDateTime', 'serverTimestamp', 'serverDate']

/**
 * Fields of the visit and its actions that no event carries. Fields from which a uuid or a time is derived count as carried.
 * @param actions that become events. @param goals that do not.
 */
export function listDroppedMatomoFields(
  visit: JsonObject,
  actions: readonly JsonObject[],
  goals: readonly JsonObject[],
): readonly string[] {
  const ofVisit = Object.keys(visit).filter(
    field => isMatomoDisplay(field) || (visitTimes.includes(field) && !isEmptyValue(visit[field])),
  )
  const ofActions = actions.flatMap(action => Object.keys(action).filter(field => isNotReported(action, field)))
  const carried = new Set(actions.flatMap(action => Object.keys(action)))
  const ofGoals = goals.flatMap(goal =>
    Object.keys(goal).filter(field => !carried.has(field) && !isEmptyValue(goal[field])),
  )
  return [...new Set([...ofVisit, ...[...ofActions, ...ofGoals].map(field => `actionDetails.${field}`)])]
}

/** Whether the field is the action's `title` and the more specific `pageTitle` exists. */
export function isMatomoLesserTitle(action: JsonObject, field: string): boolean {
  return field === 'title' && !isEmptyValue(action.pageTitle)
}

function isNotReported(action: JsonObject, field: string): boolean {
  const isOtherTitle =
    isMatomoLesserTitle(action, field) && !isEmptyValue(action.title) && action.title !== action.pageTitle
  return isMatomoDisplay(field) || isOtherTitle
}
