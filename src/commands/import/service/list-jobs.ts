// `pennon import list`: lists the import jobs of a project from its instance, and the days they cover.
// Source: docs/wire/import.md §2.8, §5.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '#core/json.ts'
import { toPrintable } from '#core/printable.ts'
import { type ClientOptions, runClient } from '../../client/run-client.ts'
import { type Column, formatTable } from '../../client/table.ts'
import { createTerminal, type Style, type Terminal } from '../../client/terminal.ts'
import { type DaySpan, type JobDays, mergeCoveredDays, readDaySpan, removeDayGaps } from './covered-days.ts'

export function listJobs(options: ClientOptions): Promise<void> {
  return runClient(options, 'import_job:read', async api => {
    const found = await api.list('/import_jobs/')
    const nowMs = Date.now()
    const jobs = found.map(job => toListedJob(job, nowMs))
    const covered = mergeCoveredDays(jobs.flatMap(listCoveredDays))
    if (options.json === true) process.stdout.write(`${toPrintable(JSON.stringify({ jobs: found, covered }))}\n`)
    else process.stdout.write(`${formatJobs(jobs, covered, createTerminal(process.stdout)).join('\n')}\n`)
  })
}

/** A job of the private API, as the list shows it. */
type ListedJob = ReturnType<typeof toListedJob>

function toListedJob(
  { number, name, source, state, plan, progress, created_by, created_at, updated_at }: JsonObject,
  nowMs: number,
) {
  const range = readMember(plan, 'range')
  return {
    // The job's number, not its id: the id is a secret that allows adding events.
    number: readJsonNumber(number ?? null) ?? 0,
    ...{ name: String(name), source: String(source), state: String(state), createdAt: String(created_at) },
    shownState: describeState(
      { state: String(state), isPaused: readMember(progress, 'paused') === true, updatedAt: String(updated_at) },
      nowMs,
    ),
    // Null if the importer did not report its days.
    range: readDaySpan(readMember(range, 'first'), readMember(range, 'last')),
    gaps: readMember(plan, 'gaps'),
    sent: formatNumber(readMember(progress, 'sent')),
    rejected: formatNumber(readMember(progress, 'rejected')),
    by: typeof created_by === 'string' ? created_by : '',
  }
}

/** What is true once no importer works on a job in these states, which only the importer changes. */
const pausedStates: Readonly<Record<string, string>> = { sending: 'paused', verifying: 'not verified' }
/** An importer that works reports about every ten seconds, but not while it waits, for example for a disk. */
const silentMs = 5 * 60_000

/** @param updatedAt when the job last changed, ISO 8601. @returns the state for people. */
export function describeState(
  { state, isPaused, updatedAt }: { readonly state: string; readonly isPaused: boolean; readonly updatedAt: string },
  nowMs: number,
): string {
  const paused = pausedStates[state]
  if (paused === undefined) return state
  if (isPaused) return paused
  return nowMs - Date.parse(updatedAt) < silentMs ? state : `${state}, no report since ${formatMinute(updatedAt)}`
}

function formatMinute(time: string): string {
  return time.slice(0, 16).replace('T', ' ')
}

function readMember(value: JsonValue | undefined, key: string): JsonValue | undefined {
  return isJsonObject(value) ? getOwnValue(value, key) : undefined
}

function formatNumber(value: JsonValue | undefined): string {
  return readJsonNumber(value ?? null)?.toLocaleString('en') ?? ''
}

/** Discarded jobs cover nothing. */
function listCoveredDays({ number, state, range, gaps }: ListedJob): readonly JobDays[] {
  if (range === null || state === 'discarded' || state === 'discarding') return []
  return removeDayGaps({ id: number, ...range }, gaps)
}

const stateStyles: Readonly<Record<string, Style>> = { published: 'green', failed: 'red', discarded: 'dim' }

const columns: readonly Column<ListedJob>[] = [
  { title: 'JOB', value: ({ number }) => String(number), align: 'right', style: () => 'bold' },
  { title: 'STATE', value: ({ shownState }) => shownState, style: ({ state }) => stateStyles[state] ?? 'yellow' },
  { title: 'SOURCE', value: ({ source }) => source, widthMin: 8 },
  { title: 'FROM', value: ({ range }) => range?.first ?? '' },
  { title: 'TO', value: ({ range }) => range?.last ?? '' },
  { title: 'SENT', value: ({ sent }) => sent, align: 'right' },
  { title: 'REJECTED', value: ({ rejected }) => rejected, align: 'right' },
  { title: 'CREATED', value: ({ createdAt }) => formatMinute(createdAt), style: () => 'dim' },
  { title: 'BY', value: ({ by }) => by, widthMin: 6 },
  { title: 'NAME', value: ({ name }) => name, widthMin: 8 },
]

function formatJobs(jobs: readonly ListedJob[], covered: readonly DaySpan[], terminal: Terminal): string[] {
  if (jobs.length === 0) return ['No import jobs. Start one: pennon import plan FOLDER FILES --source NAME']
  const names = new Map(jobs.map(({ number, shownState }) => [number, `${number} (${shownState})`]))
  const days: readonly Column<DaySpan>[] = [
    { title: 'FROM', value: ({ first }) => first },
    { title: 'TO', value: ({ last }) => last },
    { title: 'DAYS', value: span => span.days.toLocaleString('en'), align: 'right' },
    {
      title: 'COVERED BY',
      value: ({ ids }) =>
        ids.length === 0
          ? 'no job'
          : `${ids.length === 1 ? 'job' : 'jobs'} ${ids.map(id => names.get(id) ?? id).join(', ')}`,
      style: ({ ids }) => (ids.length === 1 ? null : ids.length === 0 ? 'dim' : 'yellow'),
    },
  ]
  return [
    ...formatTable(columns, jobs, terminal),
    '',
    ...(covered.length === 0
      ? ['No job reports which days it covers.']
      : [terminal.paint('bold', 'Days (UTC), without discarded jobs'), ...formatTable(days, covered, terminal)]),
  ]
}
