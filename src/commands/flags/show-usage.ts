// `pennon flags usage`: shows how often a flag was called, with a one-line chart for each value.

import { formatCount } from '#core/format-count.ts'
import { formatBarChart, sumNeighbours } from '../client/bar-chart.ts'
import type { PrivateApi } from '../client/private-api.ts'
import { type ClientOptions, runClient } from '../client/run-client.ts'
import { type Column, formatTable } from '../client/table.ts'
import { createTerminal, plainTerminal, type Terminal } from '../client/terminal.ts'
import { measureTextWidth } from '../client/text-width.ts'
import { buildFlagPath, requestWithFlagHint } from './find-flag.ts'
import { printJson, printLines } from './output.ts'

export interface UsageOptions extends ClientOptions {
  readonly from: string
  readonly to?: string
  readonly interval: 'day' | 'hour'
}

/** The response of the private API. Calls and persons are per bucket; a bucket is named by its start. */
export interface FlagUsageAnswer {
  readonly last_called_at: string | null
  readonly results: readonly {
    readonly value: string
    readonly calls: readonly number[]
    readonly persons: readonly number[]
    readonly buckets: readonly string[]
  }[]
}

export function showUsage(key: string, options: UsageOptions): Promise<void> {
  const runCommand = async (api: PrivateApi) => {
    const { from, to, interval } = options
    const query = { date_from: from, date_to: to, interval }
    const usage = await requestWithFlagHint(api, key, () => api.get(buildFlagPath(key, 'usage/'), query))
    if (options.json === true) printJson(usage)
    else {
      const isOpen = to === undefined
      printLines(formatUsage(usage as unknown as FlagUsageAnswer, interval, createTerminal(process.stdout), isOpen))
    }
  }
  return runClient(options, 'feature_flag:read', runCommand, { date_from: '--from', date_to: '--to' })
}

/** Enough for half a year of days, or a week of hours, if the width of the output is unknown. */
const chartWidthMax = 186
const chartWidthMin = 10

/** PostHog's names for calls without a value, and for the remaining values. */
const valueNames: Readonly<Record<string, string>> = {
  $$_posthog_breakdown_null_$$: '(no value)',
  $$_posthog_breakdown_other_$$: '(others)',
}

interface Row {
  readonly value: string
  readonly calls: string
  readonly persons: string
  readonly chart: string
}

/** @param isOpen whether the last bucket's time has not ended yet, so that its bar may still grow. */
export function formatUsage(
  usage: FlagUsageAnswer,
  interval: 'day' | 'hour',
  terminal: Terminal,
  isOpen = false,
): string[] {
  const lastCall = usage.last_called_at === null ? 'no call recorded' : `last called ${usage.last_called_at}`
  if (usage.results.length === 0)
    return [
      usage.last_called_at === null
        ? 'No call of this flag has been recorded.'
        : `No calls in this period; ${lastCall}.`,
    ]
  const rows = usage.results.map(({ value, calls, persons }) => ({
    value: valueNames[value] ?? value,
    calls: groupDigits(calls.reduce((sum, count) => sum + count, 0)),
    persons: groupDigits(persons.reduce((max, count) => Math.max(max, count), 0)),
    chart: '',
  }))
  const besides = Math.max(...formatTable(buildColumns(''), rows, plainTerminal).map(measureTextWidth)) + 2
  const widthLeft = terminal.width === null ? chartWidthMax : Math.min(chartWidthMax, terminal.width - besides)
  const summed = usage.results.map(({ calls }) => sumNeighbours(calls, Math.max(chartWidthMin, widthLeft)))
  const tallest = Math.max(...summed.flatMap(({ sums }) => sums))
  const charted = rows.map((row, index) => ({ ...row, chart: formatBarChart(summed[index]!.sums, tallest) }))
  const { perSum } = summed[0]!
  const bar = perSum === 1 ? `PER ${interval.toUpperCase()}` : `PER ${perSum} ${interval.toUpperCase()}S`
  const { buckets } = usage.results[0]!
  const formatBucket = (bucket: string) => bucket.slice(0, interval === 'day' ? 10 : 16).replace('T', ' ')
  const lastCount = buckets.length % perSum
  const last = [
    ...(isOpen ? ['still in progress'] : []),
    ...(lastCount === 0 ? [] : [`the last bar covers ${formatCount(lastCount, interval, `${interval}s`)}`]),
  ]
  return [
    ...formatTable(buildColumns(bar), charted, { ...terminal, width: null }),
    terminal.paint(
      'dim',
      `${formatBucket(buckets[0]!)} to ${[formatBucket(buckets.at(-1)!), ...last].join(', ')}; a full bar is ${formatCount(tallest, 'call')}; ${lastCall}`,
    ),
  ]
}

function buildColumns(bar: string): readonly Column<Row>[] {
  return [
    { title: 'VALUE', value: ({ value }) => value, style: () => 'bold' },
    { title: 'CALLS', value: ({ calls }) => calls, align: 'right' },
    { title: 'PERSONS', value: ({ persons }) => persons, align: 'right' },
    { title: bar, value: ({ chart }) => chart, style: () => 'cyan' },
  ]
}

function groupDigits(count: number): string {
  return count.toLocaleString('en')
}
