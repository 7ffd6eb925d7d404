// `pennon events count`: counts events by name, with a one-line chart for each.

import { formatCount } from '#core/format-count.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import { toPrintableName } from '#core/printable.ts'
import { formatBarChart, sumNeighbours } from '../client/bar-chart.ts'
import { ClientError, type PrivateApi } from '../client/private-api.ts'
import { type ClientOptions, runClient } from '../client/run-client.ts'
import { type Column, formatTable } from '../client/table.ts'
import { createTerminal, type Terminal } from '../client/terminal.ts'
import { measureTextWidth } from '../client/text-width.ts'

export interface CountOptions extends ClientOptions {
  readonly event?: readonly string[]
  readonly from?: string
  readonly to?: string
  readonly importJob?: string
  /** Default: the shortest of `day`, `week` and `month` with which the instance answers. */
  readonly interval?: Interval
}

type Interval = 'hour' | 'day' | 'week' | 'month'

export interface EventCountAnswer {
  readonly interval: Interval
  /** The starts of the buckets. */
  readonly days: readonly string[]
  /** The most frequent event names first. The last result, with `event` null, is for all events; absent with `--event`. */
  readonly results: readonly {
    readonly event: string | null
    readonly count: number
    readonly data: readonly number[]
  }[]
  /** How many event names were not counted separately. */
  readonly namesLeftOut: number
}

/** The most series in one query. */
const seriesPerQuery = 20
/** The most names to count separately if none are given. */
const namesMax = 100

const optionOfField = {
  'query.dateRange.date_from': '--from',
  'query.dateRange.date_to': '--to',
  import_job: '--import-job',
}

export function countEvents(options: CountOptions): Promise<void> {
  const runCommand = async (api: PrivateApi) => {
    const counts = await fetchCounts(api, options)
    const { interval, days, results, namesLeftOut } = counts
    if (options.json === true)
      process.stdout.write(`${JSON.stringify({ interval, days, results, names_left_out: namesLeftOut })}\n`)
    else process.stdout.write(`${formatEventCounts(counts, createTerminal(process.stdout)).join('\n')}\n`)
  }
  const scopes = options.importJob === undefined ? 'query:read' : 'query:read and the scope import_job:read'
  return runClient(options, scopes, runCommand, optionOfField)
}

async function fetchCounts(api: PrivateApi, options: CountOptions): Promise<EventCountAnswer> {
  const { names, namesLeftOut } =
    options.event === undefined
      ? await fetchEventNames(api, options.importJob)
      : { names: [...new Set(options.event)], namesLeftOut: 0 }
  const asked = options.event === undefined ? [...names, null] : names
  const dateRange = await findDateRange(api, options)
  const results: EventCountAnswer['results'][number][] = []
  let { interval = 'day' } = options
  let days: readonly string[] = []
  for (let start = 0; start < asked.length; start += seriesPerQuery) {
    const batch = asked.slice(start, start + seriesPerQuery)
    // The first batch decides the interval, since no other one has more series.
    const answer = await fetchTrends(api, options, { interval, series: batch, dateRange })
    interval = answer.interval
    for (const [index, series] of answer.results.entries()) {
      days = series.days as string[]
      results.push({ event: batch[index]!, count: Number(series.count), data: (series.data as unknown[]).map(Number) })
    }
  }
  const all = options.event === undefined ? results.splice(-1) : []
  results.sort((a, b) => b.count - a.count)
  return { interval, days, results: [...results.filter(isNamedOrFound), ...all], namesLeftOut }

  /** Whether to show a name: it has events, or was given with `--event`. */
  function isNamedOrFound({ count }: EventCountAnswer['results'][number]): boolean {
    return count > 0 || options.event !== undefined
  }
}

/** The options' range. Without `--from`, the last 30 days, or the days that a given job reports; all time if it reports none. */
async function findDateRange(api: PrivateApi, { from, to, importJob }: CountOptions): Promise<JsonObject> {
  if (from !== undefined || importJob === undefined)
    return { date_from: from ?? '-30d', ...(to !== undefined && { date_to: to }) }
  // The query refuses an unknown job with a message that names the option.
  const job = await api.get(`/import_jobs/${encodeURIComponent(importJob)}/`).catch((error: unknown) => {
    if (error instanceof ClientError && error.status === 404) return {} as JsonObject
    throw error
  })
  const readMember = (value: JsonValue | undefined, key: string) =>
    isJsonObject(value) ? getOwnValue(value as JsonObject, key) : undefined
  const range = readMember(job.plan, 'range')
  const [first, last] = [readMember(range, 'first'), readMember(range, 'last')]
  const end = to ?? last
  return { date_from: first ?? 'all', ...(end !== undefined && { date_to: end }) }
}

const intervals: readonly Interval[] = ['hour', 'day', 'week', 'month']

/** Repeats the query with longer intervals while the range has too many of them, unless `--interval` is given. */
async function fetchTrends(
  api: PrivateApi,
  options: CountOptions,
  asked: { interval: Interval; series: readonly (string | null)[]; dateRange: JsonObject },
): Promise<{ interval: Interval; results: JsonObject[] }> {
  const { interval, dateRange } = asked
  const series = asked.series.map(event => ({ kind: 'EventsNode', event, math: 'total' }))
  const longer = intervals[intervals.indexOf(interval) + 1]
  try {
    const query = { kind: 'TrendsQuery', series, interval, dateRange }
    const { results } = await api.post('/query/', { query }, { import_job: options.importJob })
    return { interval, results: results as JsonObject[] }
  } catch (error) {
    if (!(error instanceof ClientError && error.attr === 'query.dateRange') || longer === undefined) throw error
    if (options.interval === undefined) return fetchTrends(api, options, { ...asked, interval: longer })
    throw new ClientError(
      `The range has too many bars of one ${interval}: use --interval ${longer}, or a shorter range (--from, --to).`,
    )
  }
}

async function fetchEventNames(
  api: PrivateApi,
  importJob: string | undefined,
): Promise<{ names: string[]; namesLeftOut: number }> {
  const page = await api.get('/event_definitions/', { limit: namesMax })
  const visible = (page.results as JsonObject[]).map(({ name }) => String(name))
  const found = new Set(importJob === undefined ? visible : [...(await fetchNamesOfJob(api, importJob)), ...visible])
  const names = [...found].slice(0, namesMax)
  return { names, namesLeftOut: Math.max(0, Number(page.count) - visible.length + found.size - names.length) }
}

/** The names of the events of a pending job, which are not among the project's event names yet. */
async function fetchNamesOfJob(api: PrivateApi, importJob: string): Promise<string[]> {
  const report = await api.get(`/import_jobs/${encodeURIComponent(importJob)}/report/`)
  return (report.counts as JsonObject[]).map(({ event }) => String(event))
}

const chartWidthMax = 120
const chartWidthMin = 10

interface Row {
  readonly name: string
  readonly count: number
  readonly chart: string
}

export function formatEventCounts(
  { interval, days, results, namesLeftOut }: EventCountAnswer,
  terminal: Terminal,
): string[] {
  const nameWidth = Math.min(
    40,
    Math.max(10, ...results.map(({ event }) => measureTextWidth(toPrintableName(event ?? '')))),
  )
  const widthLeft = terminal.width === null ? chartWidthMax : terminal.width - nameWidth - 18
  const chartWidth = Math.max(chartWidthMin, Math.min(chartWidthMax, widthLeft))
  const summed = results.map(({ data }) => sumNeighbours(data, chartWidth))
  const rows = results.map(({ event, count }, index) => ({
    name: event ?? 'all events',
    count,
    // Each name has a separate scale: a rare one would otherwise be a flat line.
    chart: formatBarChart(summed[index]!.sums),
  }))
  const perSum = summed[0]?.perSum ?? 1
  const bar = perSum === 1 ? `PER ${interval.toUpperCase()}` : `PER ${perSum} ${interval.toUpperCase()}S`
  const columns: readonly Column<Row>[] = [
    { title: 'EVENT', value: ({ name }) => name, widthMin: 10, style: () => 'bold' },
    { title: 'COUNT', value: ({ count }) => count.toLocaleString('en'), align: 'right' },
    { title: bar, value: ({ chart }) => chart, style: () => 'cyan' },
  ]
  const more =
    namesLeftOut === 0
      ? []
      : [
          `${formatCount(namesLeftOut, 'more name is', 'more names are')} included only in "all events": select names with --event.`,
        ]
  const span = days.length === 0 ? [] : [`${days[0]} to ${days.at(-1)}; each row has its own scale`]
  return [...formatTable(columns, rows, terminal), ...[...span, ...more].map(line => terminal.paint('dim', line))]
}
