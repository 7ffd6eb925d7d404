// Settles the ids and sessions of cookieless visitors' events, for projects with stateful cookieless mode. It runs before
// anything else is loaded for the chunk, so that the rest of processing sees ordinary events. Pure: the same records and
// loaded rows give the same events byte for byte. `services/processing/load-visitors.ts` loads the rows.
// Source: docs/wire/ingestion.md 13.

import { sipHash128 } from '../cookieless/siphash.ts'
import { deriveStatelessSessionId } from '../cookieless/visitor-day.ts'
import {
  buildHashedDeviceId,
  buildHashedDistinctId,
  encodeVisitorHash,
  hashIdentifiedVisitor,
} from '../cookieless/visitor-hash.ts'
import type { StatefulVisitor } from '../events/captured-event.ts'
import type { Traffic } from '../events/log-stream.ts'
import { PropertiesDraft } from '../events/properties-draft.ts'
import type { JsonObject } from '../json.ts'
import type { ParsedChunk, ParsedEvent } from './parse-chunk.ts'
import type {
  LoadedIdentifies,
  VisitorChanges,
  VisitorIdentify,
  VisitorSession,
  VisitorSessionName,
  WantedIdentifies,
} from './visitors.ts'

/** An event of a stateful visitor. */
export interface VisitorEvent {
  readonly record: ParsedEvent
  readonly visitor: StatefulVisitor
}

/** The chunk's events of stateful visitors, in order; nearly every chunk has none. */
export function findVisitorEvents({ records }: ParsedChunk): readonly VisitorEvent[] {
  const found: VisitorEvent[] = []
  for (const record of records) {
    if (record.kind !== 'event' || record.event.visitor === null) continue
    const visitor = record.event.visitor.stateful
    if (visitor !== null) found.push({ record, visitor })
  }
  return found
}

/**
 * What to load for the events: each visitor once, as of its first event in the chunk.
 * @param traffic live events that were rerouted because of their age are in the import stream, whose offsets cannot be
 * compared with live offsets: all known `$identify` events of a visitor count for such an event.
 */
export function listWantedIdentifies(events: readonly VisitorEvent[], traffic: Traffic): WantedIdentifies {
  const visitors = new Map<string, WantedIdentifies['visitors'][number]>()
  const identifies = new Map<string, WantedIdentifies['events'][number]>()
  for (const { record, visitor } of events) {
    const { projectId, uuid } = record.event
    const { hash } = visitor
    const key = buildVisitorKey(projectId, hash)
    const beforeOffset = traffic === 'live' ? record.offset : Number.MAX_SAFE_INTEGER
    if (!visitors.has(key)) visitors.set(key, { projectId, hash, beforeOffset })
    if (isIdentify(record)) identifies.set(`${key} ${uuid}`, { projectId, hash, uuid })
  }
  return { visitors: [...visitors.values()], events: [...identifies.values()] }
}

export interface IdentifyCounts {
  /** For each event: how many `$identify` events of its visitor count before it; −1 for an id that the page itself set. */
  readonly counts: readonly number[]
  /** The `$identify` events that were not known yet. */
  readonly added: readonly VisitorIdentify[]
}

/**
 * Continues counting from the loaded counts. A known `$identify` event keeps its first count, even if it is sent or
 * processed again.
 */
export function countIdentifyEvents(
  events: readonly VisitorEvent[],
  wanted: WantedIdentifies,
  loaded: LoadedIdentifies,
): IdentifyCounts {
  const soFar = new Map(
    wanted.visitors.map(({ projectId, hash }, index) => [buildVisitorKey(projectId, hash), loaded.counts[index]!]),
  )
  const ordinals = new Map(
    loaded.known.map(({ projectId, hash, uuid, ordinal }) => [`${buildVisitorKey(projectId, hash)} ${uuid}`, ordinal]),
  )
  const added: VisitorIdentify[] = []
  const counts = events.map(({ record, visitor }) => {
    const { projectId, uuid } = record.event
    const { hash, day, isSentinel } = visitor
    const key = buildVisitorKey(projectId, hash)
    const count = soFar.get(key)!
    if (!isIdentify(record)) return isSentinel ? count : count - 1
    const known = ordinals.get(`${key} ${uuid}`)
    const ordinal = known ?? count
    if (known === undefined) added.push({ projectId, hash, uuid, ordinal, offset: record.offset, day })
    ordinals.set(`${key} ${uuid}`, ordinal)
    soFar.set(key, Math.max(count, ordinal + 1))
    return ordinal
  })
  return { counts, added }
}

/** The days whose salts are needed: the days of events whose visitors sent an `$identify` event before. */
export function listWantedSaltDays(events: readonly VisitorEvent[], counts: readonly number[]): ReadonlySet<string> {
  return new Set(events.flatMap(({ visitor }, index) => (counts[index]! > 0 ? [visitor.day] : [])))
}

export function listWantedSessions(
  events: readonly VisitorEvent[],
  counts: readonly number[],
): readonly VisitorSessionName[] {
  const wanted = new Map<string, VisitorSessionName>()
  for (const [index, { record, visitor }] of events.entries()) {
    const name = { projectId: record.event.projectId, hash: visitor.hash, identifies: counts[index]! }
    wanted.set(buildSessionKey(name), name)
  }
  return [...wanted.values()]
}

export interface KnownVisitors {
  readonly counted: IdentifyCounts
  readonly sessions: readonly VisitorSession[]
  /** The salts by day. If a day is missing, its salt has been deleted. */
  readonly salts: ReadonlyMap<string, Uint8Array>
  /** Whether rows that were stored before are rebuilt, with the sessions that they had then. */
  readonly isRestoring: boolean
}

/** Returns the chunk with settled events, and the visitor state to store. Does not change its arguments. */
export function assignVisitorIds(
  chunk: ParsedChunk,
  events: readonly VisitorEvent[],
  { counted, sessions: loaded, salts, isRestoring }: KnownVisitors,
): { readonly chunk: ParsedChunk; readonly changes: VisitorChanges } {
  const sessions = new ChunkSessions(loaded, isRestoring)
  const settled = new Map<ParsedEvent, ParsedEvent>()
  for (const [index, { record, visitor }] of events.entries()) {
    const identifies = counted.counts[index]!
    const hash = Buffer.from(visitor.hash, 'base64')
    const buildVisitorId = () =>
      buildHashedDistinctId(encodeVisitorHash(hashIdentifiedVisitor(salts.get(visitor.day) ?? hash, hash, identifies)))
    const properties: JsonObject = {
      $device_id: buildHashedDeviceId(visitor.hash),
      $session_id: sessions.idOf(record, visitor, identifies),
    }
    if (isIdentify(record)) properties.$anon_distinct_id = buildVisitorId()
    settled.set(
      record,
      applyVisitorIds(record, visitor.isSentinel ? buildVisitorId() : record.event.distinctId, properties),
    )
  }
  const records = chunk.records.map(record => (record.kind === 'event' ? (settled.get(record) ?? record) : record))
  return {
    chunk: { ...chunk, records },
    changes: { identifies: counted.added, sessions: sessions.changed() },
  }
}

function isIdentify({ event }: ParsedEvent): boolean {
  return event.name === '$identify'
}

function buildVisitorKey(projectId: number, hash: string): string {
  return `${projectId} ${hash}`
}

function buildSessionKey({ projectId, hash, identifies }: VisitorSessionName): string {
  return `${projectId} ${hash} ${identifies}`
}

function applyVisitorIds(record: ParsedEvent, distinctId: string, ids: JsonObject): ParsedEvent {
  const draft = new PropertiesDraft(record.event.propertiesJson, record.properties)
  for (const key of Object.keys(ids)) draft.set(key, ids[key]!)
  draft.remove('$distinct_id')
  const { $distinct_id: _, ...properties } = { ...record.properties, ...ids }
  return { ...record, event: { ...record.event, distinctId, propertiesJson: draft.json() }, properties }
}

/** A session ends after this time without an event. */
const sessionMsMax = 30 * 60_000

class ChunkSessions {
  /** The loaded sessions by `buildSessionKey`, in the order in which they began. */
  readonly #known: ReadonlyMap<string, readonly VisitorSession[]>
  readonly #isRestoring: boolean
  /** The latest session so far, by `buildSessionKey`. */
  readonly #latest = new Map<string, VisitorSession>()
  /** The sessions to store, by the offset of the record that began the session. */
  readonly #changed = new Map<number, VisitorSession>()

  constructor(loaded: readonly VisitorSession[], isRestoring: boolean) {
    this.#known = Map.groupBy(
      loaded.toSorted((a, b) => a.offset - b.offset),
      buildSessionKey,
    )
    this.#isRestoring = isRestoring
    for (const [key, ofName] of this.#known) this.#latest.set(key, ofName.at(-1)!)
  }

  idOf({ event, offset }: ParsedEvent, { hash, day }: StatefulVisitor, identifies: number): string {
    const { projectId, timestampMs } = event
    const name = { projectId, hash, identifies }
    const key = buildSessionKey(name)
    const then = this.#isRestoring ? this.#known.get(key)?.findLast(session => session.offset <= offset) : undefined
    if (then !== undefined) return then.sessionId
    const latest = this.#latest.get(key)
    const session =
      latest !== undefined && timestampMs - latest.lastMs <= sessionMsMax
        ? { ...latest, lastMs: Math.max(latest.lastMs, timestampMs) }
        : { ...name, offset, sessionId: deriveSessionId(event, hash), lastMs: timestampMs, day }
    if (session.lastMs !== latest?.lastMs || session.offset !== latest.offset) {
      this.#latest.set(key, session)
      this.#changed.set(session.offset, session)
    }
    return session.sessionId
  }

  changed(): readonly VisitorSession[] {
    return [...this.#changed.values()]
  }
}

/** Derives the id from the event that begins the session, so that a chunk that is processed again gives the same id. */
function deriveSessionId({ uuid, timestampMs }: { uuid: string; timestampMs: number }, hash: string): string {
  return deriveStatelessSessionId(timestampMs, sipHash128(Buffer.from(hash, 'base64'), Buffer.from(uuid)))
}
