// The event name and the properties of an action in a Matomo visit, including the properties of the visit, which each of
// its events carries. Source: docs/wire/import.md §1.6.

import { getOwnValue, type JsonObject, type JsonValue } from '#core/json.ts'
import {
  isEmptyValue,
  putProperty,
  putUrlProperties,
  readEventName,
  readTextField,
} from '#importer/records/record-fields.ts'

export interface MatomoAction {
  /** The type as exported: a word, or `13` for content, even if it was exported as a number. */
  readonly type: string
  /** The action's number among the visit's actions of this type, from 1. */
  readonly position: number
  /** The action's path in the record, such as `actionDetails[0]`. */
  readonly path: string
  readonly value: JsonObject
}

const eventNames: ReadonlyMap<string, string> = new Map([
  ['action', '$pageview'],
  ['search', 'site_search'],
  ['download', 'file_download'],
  ['outlink', 'outlink'],
  ['ecommerceOrder', 'order_completed'],
  ['ecommerceAbandonedCart', 'cart_abandoned'],
])
const content = '13'

const propertyNames: ReadonlyMap<string, string> = new Map([
  ['pageTitle', 'title'],
  ['siteSearchKeyword', 'search_term'],
  ['contentName', 'content_name'],
  ['contentPiece', 'content_piece'],
  ['contentTarget', 'content_target'],
  ['contentInteraction', 'content_interaction'],
])
/** Fields from which the name, the time, the uuid and the URL are derived. */
const consumedOfAction = new Set(['type', 'timestamp', 'pageId', 'url'])

/** Whether we have a name for the type. Goals are skipped earlier. */
export function isKnownMatomoType(type: string): boolean {
  return type === 'event' || type === content || eventNames.has(type)
}

/** @throws RecordReject for an event without a name. */
export function readMatomoEventName({ type, path, value }: MatomoAction): string {
  if (type === 'event') return readEventName(getOwnValue(value, 'eventAction'), `${path}.eventAction`)
  if (type === content)
    return isEmptyValue(getOwnValue(value, 'contentInteraction')) ? 'content_impression' : 'content_interaction'
  return eventNames.get(type) ?? readEventName(`matomo_${type}`, `${path}.type`)
}

export function mapMatomoActionProperties({ value }: MatomoAction): JsonObject {
  const properties: JsonObject = {}
  putUrlProperties(properties, readTextField(value, 'url'))
  for (const [field, fieldValue] of Object.entries(value)) {
    if (consumedOfAction.has(field) || isDisplayField(field) || isLesserTitle(value, field)) continue
    putProperty(properties, propertyNames.get(field) ?? field, fieldValue)
  }
  return properties
}

/** Times of the visit, which no event carries, since events have the times of the actions. */
const visitTimes = ['lastActionTimestamp', 'lastActionDateTime', 'serverTimestamp', 'serverDate']

const visitNames: ReadonlyMap<string, string> = new Map([
  ['visitIp', '$ip'],
  ['browserName', '$browser'],
  ['browserVersion', '$browser_version'],
  ['operatingSystemName', '$os'],
  ['operatingSystemVersion', '$os_version'],
  ['deviceType', '$device_type'],
  ['languageCode', '$browser_language'],
  ['referrerUrl', '$referrer'],
  ['continent', '$geoip_continent_name'],
  ['continentCode', '$geoip_continent_code'],
  ['country', '$geoip_country_name'],
  ['countryCode', '$geoip_country_code'],
  ['region', '$geoip_subdivision_1_name'],
  ['regionCode', '$geoip_subdivision_1_code'],
  ['city', '$geoip_city_name'],
])
/** Ids and times, which belong to the event itself, and fields that are mapped elsewhere. */
const consumedOfVisit = new Set([
  ...['idSite', 'idVisit', 'visitorId', 'userId', 'firstActionTimestamp', 'actionDetails', ...visitTimes],
  ...['resolution', 'latitude', 'longitude'],
])
/** Matomo's text for a search whose keywords the search engine withheld. */
const keywordUnknown = 'Keyword not defined'

export function mapMatomoVisitProperties(visit: JsonObject): JsonObject {
  const properties: JsonObject = {}
  for (const [field, value] of Object.entries(visit)) {
    if (consumedOfVisit.has(field) || isDisplayField(field) || value === keywordUnknown) continue
    putProperty(properties, visitNames.get(field) ?? field, field === 'countryCode' ? toUpperCaseCode(value) : value)
  }
  putResolution(properties, getOwnValue(visit, 'resolution'))
  putProperty(properties, '$geoip_latitude', parseDegrees(getOwnValue(visit, 'latitude')))
  putProperty(properties, '$geoip_longitude', parseDegrees(getOwnValue(visit, 'longitude')))
  return properties
}

/** Matomo writes `no`, but live events and other imports have `NO`, and a filter matches only one of the two. */
function toUpperCaseCode(code: JsonValue): JsonValue {
  return typeof code === 'string' ? code.toUpperCase() : code
}

/** Reads `1920x1080`; Matomo writes `unknown` if it has none. */
function putResolution(properties: JsonObject, value: JsonValue | undefined): void {
  const [, width, height] = (typeof value === 'string' && /^(\d{1,6})x(\d{1,6})$/.exec(value)) || []
  if (width === undefined || height === undefined) return
  putProperty(properties, '$screen_width', Number(width))
  putProperty(properties, '$screen_height', Number(height))
}

function parseDegrees(value: JsonValue | undefined): JsonValue | undefined {
  if (typeof value !== 'string') return value
  return /^-?\d{1,3}(?:\.\d+)?$/.test(value.trim()) ? Number(value) : undefined
}

const display = /(?:Icons?|IconSVG|Flag|Pretty|PrettyFirstAction)$|^(?:icon|iconSVG|subtitle|plugins|pluginsIcons)$/

/** Whether the field is an image, or a formatted copy of another field. */
function isDisplayField(field: string): boolean {
  return display.test(field)
}

/**
 * Fields of the visit and its actions that no event carries. Fields from which a uuid or a time is derived count as carried.
 * @param actions the actions that become events. @param goals the actions that are goals, which become no events.
 */
export function listDroppedMatomoFields(
  visit: JsonObject,
  actions: readonly JsonObject[],
  goals: readonly JsonObject[],
): readonly string[] {
  const ofVisit = Object.keys(visit).filter(
    field => isDisplayField(field) || (visitTimes.includes(field) && !isEmptyValue(visit[field])),
  )
  const ofActions = actions.flatMap(action => Object.keys(action).filter(field => isNotReported(action, field)))
  const carried = new Set(actions.flatMap(action => Object.keys(action)))
  const ofGoals = goals.flatMap(goal =>
    Object.keys(goal).filter(field => !carried.has(field) && !isEmptyValue(goal[field])),
  )
  return [...new Set([...ofVisit, ...[...ofActions, ...ofGoals].map(field => `actionDetails.${field}`)])]
}

/** Whether the field is the action's `title` and the more specific `pageTitle` exists. */
function isLesserTitle(action: JsonObject, field: string): boolean {
  return field === 'title' && !isEmptyValue(action.pageTitle)
}

function isNotReported(action: JsonObject, field: string): boolean {
  const isOtherTitle = isLesserTitle(action, field) && !isEmptyValue(action.title) && action.title !== action.pageTitle
  return isDisplayField(field) || isOtherTitle
}
