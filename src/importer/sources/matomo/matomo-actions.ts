// The event name and the properties of an action in a Matomo visit. Source: docs/wire/import.md §1.6.

import { type JsonObject, ownValue } from '#core/json.ts'
import { putAddress } from '#importer/records/page-address.ts'
import { isEmptyValue, putProperty, readEventName, readTextField } from '#importer/records/record-fields.ts'
import { isMatomoDisplay, isMatomoLesserTitle } from './matomo-display.ts'

export interface MatomoAction {
  /** As written: a word, or `13` for content, also if exported as a number. */
  readonly type: string
  /** From 1, among the visit's actions of this type. */
  readonly position: number
  /** Its path in the record, such as `actionDetails[0]`. */
  readonly path: string
  readonly value: JsonObject
}

const names: ReadonlyMap<string, string> = new Map([
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
/** Fields of which the name, the time, the uuid and the URL are made. */
const consumed = new Set(['type', 'timestamp', 'pageId', 'url'])

/** Whether we have a name for the type. Goals are skipped earlier. */
export function isKnownMatomoType(type: string): boolean {
  return type === 'event' || type === content || names.has(type)
}

/** @throws RecordReject for an event without a name. */
export function readMatomoEventName({ type, path, value }: MatomoAction): string {
  if (type === 'event') return readEventName(ownValue(value, 'eventAction'), `${path}.eventAction`)
  if (type === content)
    return isEmptyValue(ownValue(value, 'contentInteraction')) ? 'content_impression' : 'content_interaction'
  return names.get(type) ?? readEventName(`matomo_${type}`, `${path}.type`)
}

export function mapMatomoActionProperties({ value }: MatomoAction): JsonObject {
  const properties: JsonObject = {}
  putAddress(properties, readTextField(value, 'url'), { host: true, path: true })
  for (const [field, fieldValue] of Object.entries(value)) {
    if (consumed.has(field) || isMatomoDisplay(field) || isMatomoLesserTitle(value, field)) continue
    putProperty(properties, propertyNames.get(field) ?? field, fieldValue)
  }
  return properties
}
