// Progress of a fetch: a bar that is redrawn on a terminal, a line every ten seconds elsewhere.

import { formatProgressBar } from '#commands/client/progress-bar.ts'
import { truncateToWidth } from '#commands/client/text-width.ts'
import { formatBytes } from '#commands/format-bytes.ts'
import { formatCount } from '#core/format-count.ts'
import { toPrintable } from '#core/printable.ts'
import { computeLeastDurationMs } from '#importer/fetch/call-limits.ts'
import type { FetchProgress } from '#importer/fetch/fetch-reporter.ts'
import type { CallLimits } from '#importer/fetch/fetch-source.ts'
import { describeWait, formatWaitSpan, sourceLimit } from '#importer/fetch/waiting.ts'

export interface FetchProgressOptions {
  readonly write: (text: string) => void
  /** Returns the terminal's width in columns, for each drawing; null if the output is not a terminal. */
  readonly width: () => number | null
  /** Whether to print lines of JSON for programs. */
  readonly isJson: boolean
  readonly nowMs: () => number
  readonly limits: CallLimits
  readonly callsPerPart: number
}

const lineEveryMs = 10_000
const terminalEveryMs = 200
/** How often to check whether a line is due while nothing happens, as in a wait of minutes. */
const tickEveryMs = 1_000

export function createFetchProgress({
  write,
  width: widthNow,
  isJson,
  nowMs,
  limits,
  callsPerPart,
}: FetchProgressOptions) {
  const startMs = nowMs()
  const isTerminal = widthNow() !== null
  const everyMs = isTerminal ? terminalEveryMs : lineEveryMs
  let shownMs = isTerminal ? 0 : startMs
  let first: FetchProgress | null = null
  let latest: FetchProgress | null = null
  const draw = () => {
    const atMs = nowMs()
    if (first === null || latest === null || atMs - shownMs < everyMs) return
    shownMs = atMs
    if (isJson)
      return write(`${toPrintable(JSON.stringify({ stage: 'export', at: new Date(atMs).toISOString(), ...latest }))}\n`)
    const { partsDone, partsTotal } = latest
    const spentMs = atMs - startMs
    const leastMs = computeLeastDurationMs((partsTotal - partsDone) * callsPerPart, limits)
    const pace = { nowMs: atMs, spentMs, doneHere: partsDone - first.partsDone, leastMs }
    const text = toPrintable(formatFetchProgress(latest, pace))
    const width = widthNow()
    if (width === null) return write(`${text}\n`)
    const bar = formatProgressBar(partsDone / Math.max(1, partsTotal), width)
    write(`\r${truncateToWidth(`${bar}, ${text}`, width - 1)}\u001b[K`)
  }
  const clear = () => {
    if (isTerminal) write('\r\u001b[K')
  }
  const timer = setInterval(draw, tickEveryMs)
  return {
    show(progress: FetchProgress): void {
      first ??= progress
      latest = progress
      draw()
    },
    /** Clears the line, so that something else can be printed. */
    clear,
    end(): void {
      clearInterval(timer)
      clear()
    },
  }
}

interface Pace {
  readonly nowMs: number
  readonly spentMs: number
  /** How many parts this run has fetched. */
  readonly doneHere: number
  /** The shortest time in which the source's rate limits allow the remaining parts to be fetched. */
  readonly leastMs: number
}

export function formatFetchProgress(progress: FetchProgress, { nowMs, spentMs, doneHere, leastMs }: Pace): string {
  const { partsDone, partsTotal, partsEmpty, bytesReceived, retries, waiting } = progress
  const left = partsTotal - partsDone
  // While the source fails, any estimate would be a guess.
  const isStuck = (waiting !== null && waiting.reason !== sourceLimit) || (doneHere === 0 && retries > 0)
  const leftMs = Math.max(doneHere === 0 ? 0 : (spentMs / doneHere) * left, leastMs)
  return [
    `${partsDone.toLocaleString('en')} of ${formatCount(partsTotal, 'part')}`,
    ...(partsEmpty === 0 ? [] : [`${partsEmpty} without data`]),
    formatBytes(bytesReceived),
    ...(retries === 0 ? [] : [formatCount(retries, 'retry', 'retries')]),
    ...(waiting === null ? [] : [describeWait(waiting, nowMs)]),
    ...(left === 0 || leftMs === 0 || isStuck ? [] : [`about ${formatWaitSpan(leftMs)} left`]),
  ].join(', ')
}
