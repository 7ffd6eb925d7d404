// Senders that behave like SDKs: each repeats a request, with the same uuids, until it is answered 200. The check
// afterwards requires that every acknowledged event is stored once, that each person is as of its last event, and that
// the events accepted by the log equal those stored, dropped and rejected.

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { testProjectKey } from '../support/pennon.ts'

/** An instance, which may be restarted in between. */
export interface Target {
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
  api<T>(method: string, path: string, body?: unknown): Promise<T>
}

export interface CheckedLoad {
  readonly acknowledgedCount: () => number
  /** The number of answers by status; 0 stands for no answer. */
  readonly answers: ReadonlyMap<number, number>
  /** Ends the load; resolves when all pending requests are acknowledged. */
  stop(): Promise<Sent>
  /** Ends at once; the outcome of pending requests stays unknown. */
  abandon(): void
}

export interface Sent {
  /** Acknowledged events, by uuid; each may have been sent several times. */
  readonly uuids: readonly string[]
  /** The number of acknowledged events, including log-ins, that are not imports: each of these is charged once. */
  readonly liveCount: number
  /** The expected property `n` of each person, by distinct id. */
  readonly lastOf: ReadonlyMap<string, number>
  /** Acknowledged requests with snapshots, by session. */
  readonly recordingsOf: ReadonlyMap<string, number>
}

const requestMsMax = 30_000
/** Common name of all events, to count them in the event store. */
const eventName = 'fault test'

/** @param run distinguishes the persons of several loads. @param pauseMs between two requests of a sender. */
export function startCheckedLoad(
  target: () => Target,
  { senderCount = 6, run = '', pauseMs = 0 }: { senderCount?: number; run?: string; pauseMs?: number } = {},
): CheckedLoad {
  let isStopping = false
  let isAbandoned = false
  const uuids: string[] = []
  let liveCount = 0
  const lastOf = new Map<string, number>()
  const recordingsOf = new Map<string, number>()
  const answers = new Map<number, number>()

  async function untilTaken(path: string, body: object): Promise<void> {
    for (;;) {
      const status = await target()
        .post(path, body, path.startsWith('/i/v1/') ? v1Headers() : {})
        .then(async response => {
          // On v1, a log that accepts no events gives a 200 that says so for each event.
          const isTaken = !(await response.text()).includes('"result":"retry"')
          return isTaken ? response.status : 503
        })
        .catch(() => 0) // the connection broke, so it is sent again
      answers.set(status, (answers.get(status) ?? 0) + 1)
      if (status === 200 || isAbandoned) return
      if (status >= 400 && status < 500) throw new Error(`${path} answered ${status}`)
      await sleep(20 + Math.random() * 80)
    }
  }

  async function send(sender: number): Promise<void> {
    const id = `${run}sender ${sender}`
    for (let n = 1; !isStopping; n++) {
      const count = n % 3 === 0 ? 10 : 1
      const events = Array.from({ length: count }, (_, index) => ({
        event: eventName,
        uuid: randomUUID(),
        distinct_id: id,
        timestamp: new Date().toISOString(),
        properties: { $set: { n: n * 100 + index } } as object,
      }))
      // The person used another id before it logged in.
      if (n % 20 === 0) {
        const anonymous = `${id} anonymous ${n}`
        events.unshift({ ...events[0]!, uuid: randomUUID(), distinct_id: anonymous, properties: {} })
        const login = { ...events[0]!, event: '$identify', uuid: randomUUID(), distinct_id: id }
        events.splice(1, 0, { ...login, properties: { $anon_distinct_id: anonymous, $set: { n: n * 100 - 1 } } })
      }
      await untilTaken(...requestOf(n + sender, events))
      uuids.push(...events.filter(({ event }) => event === eventName).map(({ uuid }) => uuid))
      liveCount += events.length
      lastOf.set(id, n * 100 + count - 1)
      if (n % 4 === 0) await sendBeside(n, id)
      if (pauseMs > 0) await sleep(pauseMs)
    }
  }

  /** A recording and an import, which go to separate streams. */
  async function sendBeside(n: number, id: string): Promise<void> {
    const session = id.replaceAll(' ', '-')
    const recording = { $session_id: session, distinct_id: id, $snapshot_data: [{ type: 3, n }] }
    await untilTaken('/s/', { api_key: testProjectKey, event: '$snapshot', properties: recording })
    recordingsOf.set(session, (recordingsOf.get(session) ?? 0) + 1)
    const batch = Array.from({ length: 5 }, () => ({
      event: eventName,
      uuid: randomUUID(),
      distinct_id: `${id} import`,
      timestamp: '2026-03-01T10:00:00Z',
      properties: {},
    }))
    await untilTaken('/batch/', { api_key: testProjectKey, historical_migration: true, batch })
    uuids.push(...batch.map(({ uuid }) => uuid))
  }

  const senders = Promise.all(Array.from({ length: senderCount }, (_, sender) => send(sender)))
  let failure: unknown
  senders.catch(cause => {
    failure = cause
  })
  return {
    acknowledgedCount: () => {
      if (failure !== undefined) throw failure
      return uuids.length
    },
    answers,
    stop: async () => {
      isStopping = true
      await senders
      return { uuids, liveCount, lastOf, recordingsOf }
    },
    abandon: () => {
      isStopping = true
      isAbandoned = true
    },
  }
}

function requestOf(n: number, events: readonly object[]): [path: string, body: object] {
  const batch = { api_key: testProjectKey, batch: events }
  if (n % 4 === 0) return ['/i/v1/analytics/events', { created_at: new Date().toISOString(), batch: events }]
  if (n % 4 === 1) return ['/batch/?verbose=1', batch]
  return events.length === 1 ? ['/e/', { api_key: testProjectKey, ...events[0] }] : ['/batch/', batch]
}

/** As in SDKs, each attempt has its own send time, by which the times of events are corrected. */
function v1Headers(): Record<string, string> {
  return {
    authorization: `Bearer ${testProjectKey}`,
    'user-agent': 'posthog-rs/1.0.0',
    'posthog-sdk-info': 'posthog-rs/1.0.0',
    'posthog-attempt': '1',
    'posthog-request-id': randomUUID(),
    'posthog-request-timestamp': new Date().toISOString(),
  }
}

export interface Findings {
  readonly missing: readonly string[]
  readonly doubled: readonly string[]
  /** Persons whose properties differ from those of their last event. */
  readonly wrongPersons: readonly string[]
  readonly missingRecordings: readonly string[]
  /** Accepted records minus stored, dropped and rejected ones. */
  readonly unaccounted: number
  readonly refused: readonly string[]
}

export const nothingFound: Findings = {
  missing: [],
  doubled: [],
  wrongPersons: [],
  missingRecordings: [],
  unaccounted: 0,
  refused: [],
}

/** Waits until everything is processed, then checks it through the private API. */
export async function findFaults(target: Target, sent: readonly Sent[], timeoutMs = 120_000): Promise<Findings> {
  const status = await caughtUp(target, timeoutMs)
  const counts = await countByUuid(target)
  const uuids = sent.flatMap(load => load.uuids)
  const wrongPersons: string[] = []
  for (const [id, last] of sent.flatMap(load => [...load.lastOf])) {
    const { results } = await target.api<{ results: { properties: { n?: number } }[] }>(
      'GET',
      `/api/projects/@current/persons/?distinct_id=${encodeURIComponent(id)}`,
    )
    if (results.length !== 1 || results[0]!.properties.n !== last)
      wrongPersons.push(`${id}: ${JSON.stringify(results.map(({ properties }) => properties.n))}, not ${last}`)
  }
  const missingRecordings: string[] = []
  for (const [id, count] of sent.flatMap(load => [...load.recordingsOf])) {
    const stored = await countRecordings(target, id)
    if (stored < count) missingRecordings.push(`${id}: ${stored} of ${count}`)
  }
  const appended = Object.values(status.lanes).reduce((sum, lane) => sum + lane.appended, 0)
  const accounted = status.outcomes.reduce((sum, { count }) => sum + count, 0)
  return {
    missing: uuids.filter(uuid => !counts.has(uuid)),
    doubled: [...counts].filter(([, count]) => count > 1).map(([uuid]) => uuid),
    wrongPersons,
    missingRecordings,
    unaccounted: appended - accounted,
    refused: status.outcomes
      .filter(({ outcome }) => outcome !== 'stored')
      .map(({ outcome, reason, count }) => `${outcome} ${reason} ${count}`),
  }
}

interface IngestionStatus {
  readonly lanes: Record<string, { appended: number; processed: number }>
  readonly outcomes: readonly { outcome: string; reason: string; count: number }[]
}

/** Retries a read, which may fail until the disturbed part has recovered. */
async function caughtUp(target: Target, timeoutMs: number): Promise<IngestionStatus> {
  const deadline = Date.now() + timeoutMs
  let last: unknown
  while (Date.now() < deadline) {
    try {
      const status = await target.api<IngestionStatus>('GET', '/api/projects/@current/ingestion_status/')
      last = status.lanes
      if (Object.values(status.lanes).every(lane => lane.processed >= lane.appended)) return status
    } catch (error) {
      last = String(error)
    }
    await sleep(100)
  }
  throw new Error(`processing did not catch up within ${timeoutMs} ms: ${JSON.stringify(last)}`)
}

type Page<T> = { next: string | null; results: T[] }

async function* pagesOf<T>(target: Target, firstPath: string): AsyncGenerator<T[]> {
  let path: string | null = firstPath
  while (path !== null) {
    const page: Page<T> = await target.api('GET', path)
    yield page.results
    path = page.next === null ? null : page.next.replace(/^https?:\/\/[^/]+/, '')
  }
}

async function countByUuid(target: Target): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  const path = `/api/projects/@current/events/?event=${encodeURIComponent(eventName)}&limit=1000`
  for await (const events of pagesOf<{ uuid: string }>(target, path))
    for (const { uuid } of events) counts.set(uuid, (counts.get(uuid) ?? 0) + 1)
  return counts
}

async function countRecordings(target: Target, sessionId: string): Promise<number> {
  let count = 0
  const path = `/api/projects/@current/replay_messages/?session_id=${encodeURIComponent(sessionId)}&limit=100`
  for await (const recordings of pagesOf<unknown>(target, path)) count += recordings.length
  return count
}

/** `post` of an instance with a time limit, so that a hanging instance does not block a sender. */
export function patientTarget(instance: { readonly url: string; api: Target['api'] }): Target {
  return {
    api: instance.api,
    post: (path, body, headers = {}) =>
      fetch(instance.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(requestMsMax),
      }),
  }
}
