// A random history of flag calls: what a worker would write to the event store, and a plain count of it. The count shares
// nothing with the product: it keeps every call in a list, and asks Intl for the wall clock.

import type { PersonIdOverride, StoredEvent } from '#core/events/stored-event.ts'
import type { DeduplicatedCall } from '#core/processing/deduplicate-flag-calls.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { noEventRows } from '#ports/events/event-writer.ts'
import { aStoredEvent, imported } from '../support/values.ts'

interface Row {
  readonly event: StoredEvent
  readonly rank: number
}

/** A call that counts. */
export interface PlainCall {
  readonly timestampMs: number
  readonly flag: string
  readonly value: string
  readonly person: string
  /** Whether it comes from an import job that does not count in experiments. */
  readonly isImported: boolean
}

const hourMs = 3_600_000
const answers = [true, false, 'control', 'test', null, 'true', 3, 'вариант', '試験', 'تجربة', '🧪'] as const

export interface CallsWorldOptions {
  readonly store: EventStore
  readonly projectId: number
  /** 0 ≤ x < 1. */
  readonly random: () => number
  /** All calls are within these times. */
  readonly fromMs: number
  readonly endMs: number
  readonly newJob: () => number
}

export function createCallsWorld({ store, projectId, random, fromMs, endMs, newJob }: CallsWorldOptions) {
  const rows = new Map<string, Row>()
  const pending = new Map<number, StoredEvent[]>()
  const published = new Map<number, StoredEvent[]>()
  const liveRows: StoredEvent[] = []
  const deduplicated = new Map<string, DeduplicatedCall>()
  const personOf = new Map<string, string>()
  const overridden = new Set<string>()
  let written = 0
  let uuidCount = 0

  const below = (count: number) => Math.floor(random() * count)
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!
  const personUuid = (index: number) => `0192a4b0-0000-7000-8000-${String(index).padStart(12, '0')}`
  const newUuid = () => `0192a4b0-1111-7000-8000-${String(projectId * 1e7 + ++uuidCount).padStart(12, '0')}`
  const ids = Array.from({ length: 24 }, (_, index) => `id-${index}`)
  for (const [index, id] of ids.entries()) personOf.set(id, personUuid(index % 18))
  const storedPerson = new Map(personOf)

  const dayOf = (ms: number) => Math.floor(ms / (24 * hourMs))
  const keyOf = ({ timestampMs, distinctId, uuid }: Pick<StoredEvent, 'timestampMs' | 'distinctId' | 'uuid'>) =>
    `${dayOf(timestampMs)} ${distinctId} ${uuid}`

  function aCall(over: Partial<StoredEvent> = {}): StoredEvent {
    const $feature_flag = pick(['beta', 'beta', 'beta', 'gamma'])
    const properties = { $feature_flag, $feature_flag_response: pick(answers) }
    const distinctId = pick(ids)
    const timestampMs = fromMs + below(endMs - fromMs)
    return aStoredEvent({
      ...{ projectId, uuid: newUuid(), event: '$feature_flag_called', distinctId, timestampMs },
      propertiesJson: JSON.stringify(properties),
      capturedAtMs: pick([timestampMs, timestampMs + 40 * 24 * hourMs]),
      personId: storedPerson.get(over.distinctId ?? distinctId)!,
      ...over,
    })
  }

  function note(event: StoredEvent): void {
    const rank = (event.importJobId === 0 ? 1e9 : 0) + ++written
    const key = keyOf(event)
    const former = rows.get(key)
    if (former === undefined || former.rank < rank) rows.set(key, { event, rank })
  }

  async function insertLive(events: StoredEvent[]): Promise<void> {
    await store.insert({ ...noEventRows, events })
    for (const event of events) note(event)
    liveRows.push(...events)
  }

  /** The rows after a job is gone: what the others left. */
  function recount(): void {
    rows.clear()
    for (const event of liveRows) note(event)
    for (const events of published.values()) for (const event of events) note(event)
  }

  /** The same call again, at another time of its day, or with another flag or answer, or as it was. */
  function again(): StoredEvent {
    const event = pick(liveRows)
    const dayStart = dayOf(event.timestampMs) * 24 * hourMs
    const earliest = Math.max(dayStart, fromMs)
    const latest = Math.min(dayStart + 24 * hourMs, endMs)
    const other = aCall({ distinctId: event.distinctId })
    return {
      ...event,
      ...(below(2) === 0 && { timestampMs: earliest + below(latest - earliest) }),
      ...(below(2) === 0 && {
        propertiesJson: other.propertiesJson,
        flagCalled: other.flagCalled,
        flagResponse: other.flagResponse,
      }),
    }
  }

  const steps: Record<string, () => Promise<void>> = {
    call: () => insertLive(Array.from({ length: 1 + below(30) }, () => aCall())),
    repeat: async () => {
      // One insert has one version for all its rows, so each identity is in it once.
      const events = new Map(Array.from({ length: 1 + below(5) }, again).map(event => [keyOf(event), event]))
      await insertLive([...events.values()])
    },
    dedup: async () => {
      const stored = [...rows.values()].filter(({ event }) => event.importJobId === 0 && event.flagCalled !== '')
      if (stored.length === 0) return
      const { event } = pick(stored)
      const dayStart = dayOf(event.timestampMs) * 24 * hourMs
      const earliest = Math.max(dayStart, fromMs)
      const timestampMs = earliest + below(Math.min(dayStart + 24 * hourMs, endMs) - earliest)
      const { distinctId, flagCalled: flag, flagResponse: response } = event
      const uuid = below(5) === 0 ? pick(liveRows).uuid : newUuid()
      const call = { projectId, uuid, distinctId, timestampMs, chargedAtMs: timestampMs, flag, response }
      if (deduplicated.has(keyOf(call))) return
      await store.insert({ ...noEventRows, deduplicated: [call] })
      deduplicated.set(keyOf(call), call)
    },
    merge: async () => {
      const from = personOf.get(pick(ids))!
      const to = personOf.get(pick(ids))!
      const overrides: PersonIdOverride[] = []
      for (const [distinctId, person] of personOf)
        if (person === from && from !== to) {
          personOf.set(distinctId, to)
          overridden.add(distinctId)
          overrides.push({ projectId, distinctId, personId: to, version: ++written })
        }
      await store.insert({ ...noEventRows, overrides })
    },
    import: async () => {
      const job = newJob()
      const copies = Array.from({ length: below(3) }, () => pick(liveRows))
      const events = [...copies, ...Array.from({ length: 5 }, () => aCall())].map(event => imported(event, job))
      await store.insert({ ...noEventRows, pendingEvents: events })
      pending.set(job, [...new Map(events.map(event => [keyOf(event), event])).values()])
    },
    publish: async () => {
      const job = [...pending.keys()][0]
      if (job === undefined) return
      await store.publishJob(job)
      published.set(job, pending.get(job)!)
      pending.delete(job)
      recount()
    },
    discard: async () => {
      const job = [...published.keys(), ...pending.keys()][0]
      if (job === undefined) return
      await store.discardJob(job)
      published.delete(job)
      pending.delete(job)
      recount()
    },
  }
  const order = ['call', 'call', 'repeat', 'repeat', 'dedup', 'dedup', 'merge', 'import', 'publish', 'discard']

  return {
    /** The first step makes calls, later ones anything. @returns its name. */
    async step(name = liveRows.length === 0 ? 'call' : pick(order)): Promise<string> {
      await steps[name]!()
      return name
    },
    /** Sends every live call a second time, as it was sent. */
    async sendAgain(): Promise<void> {
      const latest = [...rows.values()].filter(({ event }) => event.importJobId === 0).map(({ event }) => event)
      await insertLive(latest)
    },
    calls(): PlainCall[] {
      const counted: PlainCall[] = []
      const personAt = (distinctId: string) => personOf.get(distinctId)!
      const callers = new Set<string>()
      const callerOf = ({ timestampMs, distinctId }: Pick<StoredEvent, 'timestampMs' | 'distinctId'>, flag: string) =>
        `${dayOf(timestampMs)} ${distinctId} ${flag}`
      for (const { event } of rows.values()) {
        if (event.flagCalled === '') continue
        const { timestampMs, flagCalled: flag, flagResponse: value } = event
        const isImported = event.importJobId > 0
        callers.add(callerOf(event, flag))
        counted.push({ timestampMs, flag, value, person: personAt(event.distinctId), isImported })
      }
      for (const [key, call] of deduplicated) {
        if (rows.has(key)) continue
        const { timestampMs, flag, response: value, distinctId } = call
        // Once a repeat gave the stored call another flag, nothing but an override names the person of the deduplicated one.
        const isKnown = overridden.has(distinctId) || callers.has(callerOf(call, flag))
        const person = isKnown ? personAt(distinctId) : distinctId
        counted.push({ timestampMs, flag, value, person, isImported: false })
      }
      return counted
    },
  }
}

/** The day or the hour of a time on the wall clock of a zone, with its offset if it is an hour. */
export function wallClock(timezone: string, interval: 'hour' | 'day'): (ms: number) => string {
  const wall = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short', timeStyle: 'medium' })
  const zone = new Intl.DateTimeFormat('en', { timeZone: timezone, timeZoneName: 'longOffset' })
  return ms => {
    const text = wall.format(ms).replace(' ', 'T')
    if (interval === 'day') return text.slice(0, 10)
    const offset = zone.formatToParts(ms).find(({ type }) => type === 'timeZoneName')!.value
    return `${text.slice(0, 13)} ${offset.slice(3) || '+00:00'}`
  }
}

/** The bucket that an answer names, as `wallClock` names it. */
export function namedBucket(start: string, interval: 'hour' | 'day'): string {
  return interval === 'day' ? start.slice(0, 10) : `${start.slice(0, 13)} ${start.slice(19)}`
}

/** Calls and persons per value and bucket: `value bucket` → `calls/persons`. */
export function plainUsage(calls: readonly PlainCall[], flag: string, bucketOf: (ms: number) => string) {
  const counts = new Map<string, { calls: number; persons: Set<string> }>()
  for (const { timestampMs, value, person, flag: called } of calls) {
    if (called !== flag) continue
    const key = `${value || '$$_posthog_breakdown_null_$$'} ${bucketOf(timestampMs)}`
    const count = counts.get(key) ?? { calls: 0, persons: new Set() }
    counts.set(key, count)
    count.calls++
    count.persons.add(person)
  }
  return new Map([...counts].sort().map(([key, { calls, persons }]) => [key, `${calls}/${persons.size}`]))
}

export interface PlainExposure {
  /** Persons per variant by the bucket of their first call. */
  readonly first: ReadonlyMap<string, number>
  readonly multiple: number
}

/** The persons of each variant by `variant bucket` of their first call; those who saw several are only counted. */
export function plainExposure(
  calls: readonly PlainCall[],
  flag: string,
  variants: readonly string[],
  bucketOf: (ms: number) => string,
): PlainExposure {
  const seen = new Map<string, { variants: Set<string>; firstMs: number }>()
  for (const { flag: called, value, person, timestampMs } of calls) {
    if (called !== flag || !variants.includes(value)) continue
    const known = seen.get(person) ?? { variants: new Set(), firstMs: timestampMs }
    seen.set(person, known)
    known.variants.add(value)
    known.firstMs = Math.min(known.firstMs, timestampMs)
  }
  const first = new Map<string, number>()
  let multiple = 0
  for (const { variants: those, firstMs } of seen.values()) {
    const [variant, ...others] = those
    const key = `${variant} ${bucketOf(firstMs)}`
    if (others.length > 0) multiple++
    else first.set(key, 1 + (first.get(key) ?? 0))
  }
  return { first: new Map([...first].sort()), multiple }
}
