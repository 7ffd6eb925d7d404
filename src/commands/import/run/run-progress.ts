// Shows the progress of a job: a bar that is redrawn on a terminal, a line every ten seconds elsewhere, JSON for programs.
// Also writes it to `progress.json` for `pennon import status` in another terminal. Source: docs/wire/import.md §2.8.

import { formatProgressBar } from '#commands/client/progress-bar.ts'
import { readTerminalWidth } from '#commands/client/terminal.ts'
import { truncateToWidth } from '#commands/client/text-width.ts'
import { formatBytes } from '#commands/format-bytes.ts'
import { formatCount } from '#core/format-count.ts'
import { toPrintable } from '#core/printable.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import type { Remedy } from '#importer/job/job-paused.ts'
import { type ProgressFigures, ProgressTracker, progressFile, type StageName } from '#importer/job/progress.ts'
import { formatDuration } from '#importer/stages/report/format-figures.ts'

const everyMs = 1_000
const linesEveryMs = 10_000

export interface RunProgressOptions {
  readonly folder: JobFolder
  readonly write?: (text: string) => void
  /** Returns the terminal's width in columns, for each drawing, since windows are resized; null without a terminal. */
  readonly width?: () => number | null
  /** Prints lines of JSON instead of sentences; the last line says how the run ended. */
  readonly isJson?: boolean
}

export function createRunProgress({
  folder,
  write = text => void process.stderr.write(text),
  width: terminalWidth = () => readTerminalWidth(process.stderr),
  isJson = false,
}: RunProgressOptions) {
  const widthNow = () => (isJson ? null : terminalWidth())
  let saidMs = Date.now()
  const clear = () => {
    if (widthNow() !== null) write('\r\u001b[K')
  }
  const tracker = new ProgressTracker({
    nowMs: Date.now,
    say: line => {
      clear()
      write(`${toPrintable(line)}\n`)
    },
  })
  const storeFigures = (figures: ProgressFigures) => {
    try {
      folder.writeJson(progressFile, figures)
    } catch {
      // Ignore the error: the disk is probably full, which the stage itself finds and reports.
    }
  }
  const tick = () => {
    const figures = tracker.figures()
    storeFigures(figures)
    const width = widthNow()
    if (width !== null)
      write(`\r${truncateToWidth(toPrintable(formatTerminalLine(figures, width)), width - 1)}\u001b[K`)
    else if (Date.now() - saidMs >= linesEveryMs) {
      saidMs = Date.now()
      write(isJson ? `${toPrintable(JSON.stringify(figures))}\n` : `${toPrintable(formatProgressLine(figures))}\n`)
    }
  }
  storeFigures(tracker.figures())
  const timer = setInterval(tick, everyMs)
  return {
    tracker,
    end(state: ProgressFigures['state'], message: string | null, remedy: Remedy | null = null): void {
      clearInterval(timer)
      clear()
      const figures = { ...tracker.figures(state, message), ...(remedy !== null && { wayOut: remedy }) }
      storeFigures(figures)
      if (isJson) write(`${toPrintable(JSON.stringify(figures))}\n`)
    },
  }
}

/** Like the time left, the bar shows records or bytes, depending on which total the stage knows. */
function formatTerminalLine(figures: ProgressFigures, width: number): string {
  const { recordsDone, recordsTotal, bytesDone, bytesTotal } = figures
  const [done, total] = recordsTotal === null ? [bytesDone, bytesTotal] : [recordsDone, recordsTotal]
  const line = formatProgressLine(figures)
  return total === null || total === 0 ? line : `${formatProgressBar(done / total, width)}, ${line}`
}

/** Stages that run one after another without a question in between; each run has its own bar. */
const runs: readonly (readonly StageName[])[] = [
  ['stage', 'scan', 'rehearse'],
  ['send', 'verify'],
]

function describeStep(stage: StageName): string {
  const run = runs.find(stages => stages.includes(stage))
  return run === undefined ? '' : ` (${run.indexOf(stage) + 1} of ${run.length})`
}

export function formatProgressLine(figures: ProgressFigures): string {
  const {
    stage,
    day,
    recordsDone,
    recordsTotal,
    unit = 'records',
    bytesDone,
    bytesTotal,
    rejects,
    retries,
    waiting,
    etaSeconds,
  } = figures
  const count = (value: number) => value.toLocaleString('en')
  const of = recordsTotal === null ? '' : ` of ${count(recordsTotal)}`
  const bytesOf = bytesTotal === null ? '' : ` of ${formatBytes(bytesTotal)}`
  const timeLeft = etaSeconds === null ? [] : [`${formatDuration(etaSeconds)} left`]
  return [
    `${stage}${describeStep(stage)}${day === null ? '' : ` ${day}`}`,
    // The reason for waiting comes first, so that it is not truncated even on a narrow terminal.
    ...(waiting === null ? [] : [`waiting: ${waiting}`, ...timeLeft]),
    // A fetch counts parts, since it does not read records yet.
    `${count(recordsDone)}${of} ${stage === 'fetch' ? 'parts' : unit}`,
    ...(bytesDone === 0 ? [] : [`${formatBytes(bytesDone)}${bytesOf}`]),
    ...(stage === 'fetch'
      ? []
      : [`${count(figures.recordsPerSecond)}/s (mean ${count(figures.meanRecordsPerSecond)})`]),
    ...(rejects === 0 ? [] : [`${count(rejects)} rejected`]),
    ...(retries === 0 ? [] : [formatCount(retries, 'retry', 'retries')]),
    ...(waiting === null ? timeLeft : []),
  ].join(', ')
}
