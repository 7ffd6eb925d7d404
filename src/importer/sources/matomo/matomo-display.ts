// What no event of a Matomo visit carries, such as what Matomo adds to visits and actions only to show them. Source: docs/wire/import.md §1.6.

import type { JsonObject } from '#core/json.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'

const display = /(?:Icons?|IconSVG|Flag|Pretty|PrettyFirstAction)$|^(?:icon|iconSVG|subtitle|plugins|pluginsIcons)$/

/** Whether the field is a picture, or a text that says once more for people what another field says. */
export function isMatomoDisplay(field: string): boolean {
  return display.test(field)
}

/** Times of the visit that no event has: those of its events are the times of its actions. */
const visitTimes = ['lastActionTimestamp', 'lastActionDateTime', 'serverTimestamp', 'serverDate']

/**
 * Fields of the visit and its actions that no event carries. What only a uuid or the time is made of is carried by that.
 * @param actions that become events. @param goals which become none.
 */
export function matomoDropped(
  visit: JsonObject,
  actions: readonly JsonObject[],
  goals: readonly JsonObject[],
): readonly string[] {
  const ofVisit = Object.keys(visit).filter(
    field => isMatomoDisplay(field) || (visitTimes.includes(field) && !isEmptyValue(visit[field])),
  )
  const ofActions = actions.flatMap(action => Object.keys(action).filter(field => isNotReported(action, field)))
  const told = new Set(actions.flatMap(action => Object.keys(action)))
  const ofGoals = goals.flatMap(goal =>
    Object.keys(goal).filter(field => !told.has(field) && !isEmptyValue(goal[field])),
  )
  return [...new Set([...ofVisit, ...[...ofActions, ...ofGoals].map(field => `actionDetails.${field}`)])]
}

/** The title of the page, where there is one, says more than that of the action. */
export function isMatomoLesserTitle(action: JsonObject, field: string): boolean {
  return field === 'title' && !isEmptyValue(action.pageTitle)
}

function isNotReported(action: JsonObject, field: string): boolean {
  const isOtherTitle =
    isMatomoLesserTitle(action, field) && !isEmptyValue(action.title) && action.title !== action.pageTitle
  return isMatomoDisplay(field) || isOtherTitle
}
