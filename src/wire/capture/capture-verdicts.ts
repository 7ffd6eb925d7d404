// The answer to a v0 capture request that asked for verdicts (`?verbose=1`): every item with what became of it, and why.
// Source: ours, docs/wire/ingestion.md 1.9; the codes are those of docs/wire/errors.md.

import type { IncomingEvent, ItemisedRequest } from '#core/capture/incoming-event.ts'
import {
  type ItemResult,
  type ItemVerdict,
  type ItemVerdicts,
  itemResults,
  itemVerdictCountMax,
  shownName,
  uuidMade,
  withinBound,
} from '#core/capture/item-verdicts.ts'
import { type EventRefusal, eventRefusals } from '#core/capture/normalize-event.ts'
import type { QuotaResource } from '#core/capture/quota-resource.ts'
import { encodeWireError, type WireError, wireError } from '../wire-error.ts'
import { eventRefused } from './capture-errors.ts'

export interface VerboseAnswer {
  readonly status: number
  readonly body: string
}

/** 200 unless items were refused and no event was accepted: then the first refusal's error. Both with all verdicts. */
export function encodeVerdicts({ itemCount, counts, items }: ItemVerdicts): VerboseAnswer {
  const rest = {
    counts,
    ...(itemCount > items.length ? { not_itemised: itemCount - items.length } : {}),
    events: items.map(encodeVerdict),
  }
  const refused = counts.ok + counts.warning === 0 ? items.find(({ result }) => result === 'reject') : undefined
  if (refused === undefined) return { status: 200, body: JSON.stringify({ status: 'Ok', ...rest }) }
  const error = errorOf(refused)
  const head = encodeWireError(error).slice(0, -1)
  return { status: error.status, body: `${head},${JSON.stringify(rest).slice(1)}` }
}

/** Events that a quota left out: the first of them, and a mark at each of those that had records in the main log. */
export interface OverQuotaEvents {
  readonly count: number
  readonly events: readonly { readonly name: string; readonly uuid: string; readonly resource: QuotaResource }[]
  readonly marks: Uint8Array
}

/** The verdicts when a quota has left events out after they were given: those are dropped. */
export function withOverQuota(verdicts: ItemVerdicts, { count, events, marks }: OverQuotaEvents): ItemVerdicts {
  if (count === 0) return verdicts
  const { indexes, results } = verdicts.inMain
  const counts: Record<ItemResult, number> = { ...verdicts.counts }
  const isLeftOut = new Uint8Array(verdicts.itemCount)
  const dropped: ItemVerdict[] = []
  let leftOutCount = 0
  for (let record = 0; record < marks.length; record++) {
    if (marks[record] === 0) continue
    const event = events[leftOutCount++]
    const index = indexes[record]!
    const given = results[record]!
    counts[itemResults[given & ~uuidMade]!]--
    counts.drop++
    isLeftOut[index] = 1
    if (event === undefined || dropped.length === itemVerdictCountMax) continue
    const { uuid, name, resource } = event
    const shown = { index, uuid: (given & uuidMade) === 0 ? uuid : null, event: shownName(name) }
    dropped.push({ ...shown, result: 'drop', reason: `${resource}_over_quota`, field: null })
  }
  const inMain = { indexes: indexes.filter(isKept), results: results.filter(isKept) }
  return { ...verdicts, counts, items: replaced(verdicts.items, isLeftOut, dropped), inMain }

  function isKept(_: number, record: number): boolean {
    return marks[record] !== 1
  }
}

/** Events of hot ids: the first of them, and a mark at each of those that have records in the main log. */
export interface HotIdEvents {
  readonly events: readonly { readonly name: string; readonly uuid: string }[]
  readonly marks: Uint8Array
}

/**
 * The verdicts when persons were switched off for hot ids, of what quotas have left. An event that has a warning keeps it.
 */
export function withoutPersons(verdicts: ItemVerdicts, { events, marks }: HotIdEvents): ItemVerdicts {
  const { indexes, results } = verdicts.inMain
  const counts: Record<ItemResult, number> = { ...verdicts.counts }
  const isWarned = new Uint8Array(verdicts.itemCount)
  const warned: ItemVerdict[] = []
  let hotCount = 0
  for (let record = 0; record < marks.length; record++) {
    if (marks[record] === 0) continue
    const event = events[hotCount++]
    const index = indexes[record]!
    if (itemResults[results[record]! & ~uuidMade] !== 'ok') continue
    counts.ok--
    counts.warning++
    isWarned[index] = 1
    if (event === undefined || warned.length === itemVerdictCountMax) continue
    const of = { index, uuid: event.uuid, event: shownName(event.name) }
    warned.push({ ...of, result: 'warning', reason: 'person_processing_disabled', field: 'distinct_id' })
  }
  return { ...verdicts, counts, items: replaced(verdicts.items, isWarned, warned) }
}

/** @param isReplaced by index, 1 where one of `others` says what became of the item, or would, were there room. */
function replaced(
  items: readonly ItemVerdict[],
  isReplaced: Uint8Array,
  others: readonly ItemVerdict[],
): ItemVerdict[] {
  const stay = items.filter(({ index }) => isReplaced[index] === 0)
  const notable = stay.filter(({ result }) => result !== 'ok')
  const fine = stay.filter(({ result }) => result === 'ok')
  return withinBound([...notable, ...others], fine)
}

/** The verdicts on a request, before it is known whether anything of it is stored. */
export interface RequestVerdicts {
  /** Once its events have been judged. */
  judged(): ItemVerdicts
  /** When nothing of it is wanted: an import-only instance, a key of no project that is answered all the same. */
  allDropped(reason: string): ItemVerdicts
}

/** For a request whose events are judged as they are stored: it is kept until then, at the cost of those who ask. */
export function verdictsOf(events: readonly IncomingEvent[], { verdicts, places }: ItemisedRequest): RequestVerdicts {
  return {
    judged: () => verdicts.finish(),
    allDropped(reason) {
      const given = verdicts.finish()
      const others = events.map(({ uuid, name }, at): ItemVerdict => {
        return { index: places[at]!, uuid, event: shownName(name), result: 'ok', reason: null, field: null }
      })
      return allDropped({ ...given, items: withinBound(given.items, others) }, reason)
    },
  }
}

/** For a request that was judged elsewhere. */
export function verdictsGiven(verdicts: ItemVerdicts): RequestVerdicts {
  return { judged: () => verdicts, allDropped: reason => allDropped(verdicts, reason) }
}

function allDropped(verdicts: ItemVerdicts, reason: string): ItemVerdicts {
  const items = verdicts.items.map((verdict): ItemVerdict => ({ ...verdict, result: 'drop', reason, field: null }))
  return { ...verdicts, counts: { ok: 0, warning: 0, drop: verdicts.itemCount, reject: 0 }, items }
}

function encodeVerdict(verdict: ItemVerdict) {
  const { index, event, result, reason, field } = verdict
  const uuid = result === 'drop' && verdict.isUuidMade ? null : verdict.uuid
  return { index, uuid, event, result, reason, field, detail: reason === null ? null : detailOf(reason, field) }
}

function errorOf({ reason, field }: ItemVerdict): WireError {
  const known = refusalOf(reason)
  return known === null ? wireError(400, reason!, detailOf(reason!, field), field) : eventRefused(known)
}

function refusalOf(reason: string | null): EventRefusal | null {
  return eventRefusals.find(refusal => refusal === reason) ?? null
}

const shapeDetails: Readonly<Record<string, string>> = {
  event: 'event must be text',
  api_key: 'an event has one of token, $token and api_key, and that is text',
  distinct_id: 'an event has one of distinct_id and $distinct_id, and a list or an object there must be short',
  uuid: 'uuid must be a UUID',
  properties: 'properties must be an object',
  timestamp: 'timestamp must be text',
  offset: 'offset must be a whole number of 64 bits',
  $set: '$set must be an object',
  $set_once: '$set_once must be an object',
}

const details: Readonly<Record<string, string>> = {
  ignored_invalid_timestamp: 'timestamp cannot be read: the event has the time at which it arrived',
  distinct_id_truncated: 'distinct_id was cut to 200 characters',
  event_name_truncated: 'the name was cut to 200 characters',
  person_processing_disabled: 'the distinct id sends too many events: this one is stored and does without a person',
  dropped_performance_event: 'events of this name are not kept',
  heatmap: 'heatmaps become no events',
  client_ingestion_warning: 'becomes a warning of the project, and no event',
  invalid_anon_distinct_id: '$anon_distinct_id must be text: the event is not stored',
  invalid_alias: 'alias must be text: the event is not stored',
  group_key_too_long: 'the key of a group has at most 400 characters: the event is not stored',
  cookieless_not_supported: 'events without cookies are not stored here',
  invalid_event_when_process_person_profile_is_false:
    'an event that links persons cannot be sent with $process_person_profile: false: it is not stored',
  non_historical_import_drop: 'this instance takes historical migrations only',
  unknown_api_key: 'the key belongs to no project',
}

function detailOf(reason: string, field: string | null): string {
  if (reason === 'invalid_shape') return (field !== null && shapeDetails[field]) || 'an event must be an object'
  if (reason.endsWith('_over_quota'))
    return `the project is over its quota of ${reason.slice(0, -'_over_quota'.length).replaceAll('_', ' ')}`
  const refusal = refusalOf(reason)
  return refusal === null ? (details[reason] ?? reason) : eventRefused(refusal).detail
}
