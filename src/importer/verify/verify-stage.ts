// Stage 7: compares the stored with the sent events. Changes nothing at the service. Source: docs/wire/import.md §2.10.

import { isGeneratedEventName, mayBeGeneratedEvent } from '#core/events/generated-event.ts'
import { formatCount } from '#core/format-count.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '#core/json.ts'
import type { Verification } from '#importer/stages/report/import-report.ts'
import { rowsErased } from '#importer/stages/report/note-messages.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { throwIfPaused } from '../job/job-paused.ts'
import { createStateAccessors } from '../job/job-state.ts'
import type { StageProgress } from '../job/progress.ts'
import { isGeneratedPart, type StagedJob, sumStagedParts } from '../job/staged-part.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { usPerMs } from '../records/source-time.ts'
import { type Checkpoint, sumSendCounts } from '../send/checkpoint.ts'
import type { EventMarks } from '../send/encode-event.ts'
import { readSentLines, type SentJob } from '../send/sent-events.ts'
import { awaitAnswerOrStatus, readObjectList, type ServiceApi } from '../send/service-api.ts'
import {
  type Expected,
  ExpectedCollector,
  readExpectations,
  type SentEvents,
  storeExpectations,
} from '../stages/expected/expected.ts'
import { type ExpectedEvents, findNameBucket } from '../stages/expected/expected-events.ts'
import type { GetPersonId } from '../stages/expected/expected-persons.ts'
import { type JobReport, readJobReport, readStoredCounts, type StoredCount } from './job-report.ts'
import { findPropertyDifference } from './property-difference.ts'

/**
 * Null until everything that was sent has been verified. Store null before more events are sent, since the verification
 * does not cover them.
 */
export const [readVerification, storeVerification] = createStateAccessors<Verification>('verification')

export interface VerifyStageOptions {
  readonly folder: JobFolder
  readonly job: StagedJob
  readonly checkpoint: Checkpoint
  readonly retried?: readonly SentJob[]
  readonly source: string
  readonly personOf: GetPersonId
  readonly api: ServiceApi
  readonly progress: StageProgress
  readonly signal: AbortSignal
  /** Live events by day before sending, from `readLiveCounts`; null if they were not counted. */
  readonly liveBefore: Readonly<Record<string, number>> | null
}

type Check = Verification['checks'][number]

const differencesMax = 50
const pollMs = 1_000

export async function runVerifyStage(options: VerifyStageOptions): Promise<Verification> {
  const { folder, job, checkpoint, source, api, progress } = options
  const { blankLines = 0 } = job
  progress.begin('verify', { records: countRecords(job) + blankLines })
  progress.add({ records: blankLines, isEarlier: true })
  const id = checkpoint.identity.serviceJobId!
  const expected = await findExpectationsOfJob(options)
  await waitUntilStreamsProcessed(api, progress)
  const report = await readJobReport(api, id)
  const checks = [
    await checkStoredCounts(expected, readStoredCounts(api, id, report)),
    checkBuckets(expected, report),
    await checkSamples(expected.samples, { source, jobId: id }, api),
    await checkLiveData(options.liveBefore, api),
  ]
  const verification: Verification = {
    v: 1,
    verified_at: new Date(api.clock.nowMs()).toISOString(),
    ok: checks.every(({ state }) => state !== 'differs'),
    expected_rows: expected.rows,
    stored_rows: report.rows,
    checks,
    notes: [...report.notes, ...(await findErasureNotes(expected.rows - report.rows, report, api))],
  }
  storeVerification(folder, verification)
  return verification
}

export type ExpectedOptions = Pick<
  VerifyStageOptions,
  'folder' | 'job' | 'checkpoint' | 'retried' | 'personOf' | 'progress' | 'signal'
>

/** What the rehearsal expects, unless an event was refused or a record retried: then the sent events are read again. */
export async function findExpectationsOfJob(options: ExpectedOptions): Promise<Expected> {
  const { folder, job, checkpoint, retried = [], personOf, progress, signal } = options
  // Retried records come first, since their keys are forgotten only when the parts have passed their days.
  const jobs = [...retried, { folder, job, checkpoint }]
  const sent = countSentEvents(jobs)
  const known = readExpectations(folder, sent)
  if (known !== null) {
    progress.add({ records: countRecords(job) })
    return known
  }
  const collector = new ExpectedCollector(personOf)
  let isGenerated = false
  for (const each of jobs)
    for await (const step of readSentLines(each))
      if (step.kind === 'part') {
        throwIfPaused(signal)
        isGenerated = isGeneratedPart(step.part)
        collector.beginPart(step.part)
      } else {
        if (!isGenerated) progress.add({ records: 1 })
        for (const event of step.events) collector.add(event)
      }
  const expected = collector.end()
  storeExpectations(folder, sent, expected)
  return expected
}

function countRecords({ parts }: StagedJob): number {
  return sumStagedParts(parts.filter(part => !isGeneratedPart(part))).records
}

/** Counts the events of a job and its retries, for `readExpectations`. */
export function countSentEvents(jobs: readonly Pick<SentJob, 'checkpoint'>[]): SentEvents {
  return sumSendCounts(jobs.flatMap(({ checkpoint }) => checkpoint?.parts ?? []).map(({ counts }) => counts))
}

/** Both streams, since imported exceptions and AI events are in `main`, the stream of live events. */
const streams = ['historical', 'main'] as const

/** Waits until the service has processed everything appended so far; later records do not belong to the job. */
export async function waitUntilStreamsProcessed(api: ServiceApi, progress: StageProgress): Promise<void> {
  const ends = new Map<string, number>()
  for (;;) {
    const { lanes } = await api.call('GET', '/ingestion_status/')
    const left = streams.reduce((sum, stream) => {
      const status: JsonValue | undefined = isJsonObject(lanes) ? getOwnValue(lanes as JsonObject, stream) : undefined
      if (status === undefined || !isJsonObject(status)) return sum
      const { appended, processed } = status as JsonObject
      if (!ends.has(stream)) ends.set(stream, readJsonNumber(appended ?? null) ?? 0)
      return sum + Math.max(0, ends.get(stream)! - (readJsonNumber(processed ?? null) ?? 0))
    }, 0)
    progress.waiting(left > 0 ? `the service has ${formatCount(left, 'record')} to store` : null)
    if (left <= 0) return
    await api.pause(pollMs)
  }
}

export async function checkStoredCounts(
  { counts, otherCounts }: Pick<ExpectedEvents, 'counts' | 'otherCounts'>,
  all: AsyncIterable<StoredCount>,
): Promise<Check> {
  const stored = new Map<string, number>()
  for await (const { day, event, uuids } of all) {
    const isOther = otherCounts.has(day) && counts.get(day)?.has(event) !== true && !isGeneratedEventName(event)
    addTo(stored, isOther ? formatPartKey(day, findNameBucket(event)) : formatCountKey(day, event), uuids)
  }
  const expected = new Map<string, number>()
  for (const [day, parts] of otherCounts)
    for (const [part, count] of parts.entries()) if (count > 0) addTo(expected, formatPartKey(day, part), count)
  for (const [day, names] of counts)
    for (const [event, count] of names) addTo(expected, formatCountKey(day, event), count)
  const differences: string[] = []
  const keys = new Set([...expected.keys(), ...stored.keys()])
  for (const key of keys) {
    const wanted = expected.get(key) ?? 0
    const found = stored.get(key) ?? 0
    if (found !== wanted) differences.push(`${key}: ${wanted} expected, ${found} stored`)
  }
  return createCheck('day_event_counts', keys.size, differences)
}

/** The key of a count. Links and groups keep their times from an earlier import, so they are compared over all days. */
function formatCountKey(day: string, event: string): string {
  return isGeneratedEventName(event) ? `all days, ${event}` : `${day}, ${event}`
}

/** The key of a count of several names, when there are too many to count separately. */
function formatPartKey(day: string, part: number): string {
  return `${day}, further names (part ${part})`
}

function addTo(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count)
}

function checkBuckets(expected: ExpectedEvents, { idBuckets }: JobReport): Check {
  const differences = expected.idBuckets.flatMap((wanted, bucket) =>
    wanted === idBuckets[bucket] ? [] : [`bucket ${bucket}: ${wanted} expected, ${idBuckets[bucket]} stored`],
  )
  return createCheck('id_buckets', idBuckets.length, differences)
}

/** How many uuids one call asks for: the service reads only 1,000 characters of a parameter. */
const uuidsPerCall = 25

async function checkSamples(samples: ExpectedEvents['samples'], marks: EventMarks, api: ServiceApi): Promise<Check> {
  const differences: string[] = []
  for (let at = 0; at < samples.length; at += uuidsPerCall) {
    const some = samples.slice(at, at + uuidsPerCall)
    const uuids = some.map(([first]) => first!.uuid).join(',')
    const body = await api.call('GET', `/import_jobs/${marks.jobId}/events/`, { query: { uuids } })
    const found = Map.groupBy(readObjectList(body, 'results'), ({ uuid }) => String(uuid))
    for (const events of some) {
      const { uuid, event } = events[0]!
      // A list, since records with the same source id are separate events with the same uuid.
      const stored = found.get(uuid) ?? []
      const faults = stored.flatMap(each => events.map(sent => describeDifference(sent, each, marks)))
      if (faults.includes(null)) continue
      differences.push(`${uuid} (${event}): ${faults[0] ?? 'it is not stored'}`)
    }
  }
  return createCheck('random_events', samples.length, differences)
}

/** @returns a description of the first field that differs from what was sent; null if none does. */
function describeDifference(sent: ImportedEvent, stored: JsonObject, marks: EventMarks): string | null {
  const time = Date.parse(String(stored.timestamp))
  if (stored.event !== sent.event) return `the event is ${String(stored.event)}`
  if (stored.distinct_id !== sent.distinctId) return `the distinct id is ${String(stored.distinct_id)}`
  if (time !== Math.floor(sent.timeUs / usPerMs) && !mayBeGeneratedEvent(sent.event, sent.uuid))
    return `the time is ${String(stored.timestamp)}`
  return findPropertyDifference(sent, isJsonObject(stored.properties) ? stored.properties : {}, marks)
}

/** Live events by UTC day, or the status with which the service refused; null if its answer is unreadable. */
export type LiveCounts = { readonly days: Record<string, number> } | { readonly refused: number | null }

export async function readLiveCounts(
  api: ServiceApi,
  range: { readonly first: string; readonly last: string },
): Promise<LiveCounts> {
  const dayText = /^\d{4}-\d\d-\d\d$/
  const first = range.first.slice(0, 10)
  const last = range.last.slice(0, 10)
  if (!dayText.test(first) || !dayText.test(last)) return { days: {} }
  const query =
    `SELECT toDate(timestamp) AS day, count() AS rows FROM events WHERE import_job_id = 0 ` +
    `AND timestamp >= '${first} 00:00:00' AND timestamp <= '${last} 23:59:59' GROUP BY day ORDER BY day LIMIT 50000`
  const asked = api.call('POST', '/query/', { body: { query: { kind: 'HogQLQuery', query } } })
  const body = await awaitAnswerOrStatus(asked, [400, 403, 404, 422])
  if (typeof body === 'number') return { refused: body }
  if (!Array.isArray(body.results)) return { refused: null }
  const rows = body.results.filter(Array.isArray)
  const days = rows.map(([day, count]) => [String(day).slice(0, 10), readJsonNumber(count ?? null) ?? 0])
  return { days: Object.fromEntries(days) }
}

/** Keeps the days that receive hardly any more live events: those that end before the last 48 hours. */
export function selectSettledDays(days: Readonly<Record<string, number>>, nowMs: number): Record<string, number> {
  const settled = new Date(nowMs - 3 * 86_400_000).toISOString().slice(0, 10)
  return Object.fromEntries(Object.entries(days).filter(([day]) => day <= settled))
}

/** More events than before are fine: a client that was offline may have sent old events since. */
async function checkLiveData(before: VerifyStageOptions['liveBefore'], api: ServiceApi): Promise<Check> {
  const nothing = createCheck('live_data', 0, [])
  if (before === null) return { ...nothing, state: 'not_checked' }
  const days = Object.keys(before).toSorted()
  if (days.length === 0) return nothing
  const now = await readLiveCounts(api, { first: days[0]!, last: days.at(-1)! })
  if (!('days' in now)) return { ...nothing, state: 'not_checked' }
  const countNow = (day: string) => now.days[day] ?? 0
  const differences = days.flatMap(day =>
    countNow(day) < before[day]!
      ? [`${day}: ${formatCount(before[day]!, 'live event')} before, ${countNow(day)} now`]
      : [],
  )
  return createCheck('live_data', days.length, differences)
}

function createCheck(name: Check['name'], compared: number, differences: readonly string[]): Check {
  return {
    name,
    state: differences.length === 0 ? 'equal' : 'differs',
    compared,
    differences: differences.slice(0, differencesMax),
  }
}

const erasuresPerPage = 1_000

/**
 * For each erasure, the service counts the removed rows of all pending jobs together, so at most as many rows as are
 * missing from this job are attributed to it.
 * @returns the note about rows removed with persons since the job was created; empty if no row is missing, or if the key may
 * not see persons.
 */
export async function findErasureNotes(
  missing: number,
  { createdAtMs }: Pick<JobReport, 'createdAtMs'>,
  api: Pick<ServiceApi, 'call'>,
): Promise<JobReport['notes']> {
  if (missing <= 0) return []
  const removed = new Map<string, number>()
  for (let offset = 0; ; offset += erasuresPerPage) {
    const query = { limit: String(erasuresPerPage), offset: String(offset) }
    const body = await awaitAnswerOrStatus(api.call('GET', '/persons/deletion_status/', { query }), [403])
    if (typeof body === 'number') return []
    // Newest first.
    const since = readObjectList(body, 'results').filter(
      ({ created_at }) => Date.parse(String(created_at)) >= createdAtMs,
    )
    for (const { erasure } of since) {
      if (!isJsonObject(erasure)) continue
      const counts = getOwnValue(erasure, 'removed') ?? null
      const events = isJsonObject(counts) ? readJsonNumber(getOwnValue(counts, 'pending_events') ?? null) : undefined
      removed.set(String(getOwnValue(erasure, 'id')), events ?? 0)
    }
    if (since.length < erasuresPerPage) break
  }
  const count = Math.min(
    missing,
    removed.values().reduce((sum, events) => sum + events, 0),
  )
  return count === 0 ? [] : [{ reason: rowsErased, count, samples: [] }]
}
