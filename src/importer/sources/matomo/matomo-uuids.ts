// The uuids of a Matomo visit's actions, derived from their keys in Matomo's own tables. Source: docs/wire/import.md §1.6.

import { type JsonObject, ownValue } from '#core/json.ts'
import { contentUuid, rootUuid } from '#importer/records/deterministic-uuid.ts'
import { idText } from '#importer/records/distinct-ids.ts'
import type { MatomoAction } from './matomo-actions.ts'

const order = 'ecommerceOrder'
const cart = 'ecommerceAbandonedCart'

export function deriveMatomoUuid(visit: JsonObject, action: MatomoAction): string {
  const { type, position, value } = action
  const visitId = readIdText(visit, 'idVisit')
  // Actions are only unique within their visit, so without its id the uuid is derived from the whole record.
  if (visitId === '') return contentUuid('matomo', { visit, type, position })
  const parts = ['matomo', readIdText(visit, 'idSite'), visitId]
  const orderId = readIdText(value, 'orderId')
  if (type === order && orderId !== '') return rootUuid(...parts, order, orderId)
  const pageId = readIdText(value, 'pageId')
  if (type !== order && type !== cart && pageId !== '') return rootUuid(...parts, pageId, type)
  return rootUuid(...parts, type, readIdText(value, 'timestamp'), String(position))
}

function readIdText(record: JsonObject, field: string): string {
  return idText(ownValue(record, field)) ?? ''
}
