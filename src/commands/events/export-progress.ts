// Progress of an export: a bar on a terminal, a line every ten seconds elsewhere.

import { formatCount } from '#core/format-count.ts'
import { formatProgressBar } from '../client/progress-bar.ts'
import { formatBytes } from '../format-bytes.ts'

export interface ExportProgressOptions {
  readonly write: (text: string) => void
  readonly isTerminal: boolean
  readonly monotonicNowMs: () => number
  /** The number of rows to expect; null if unknown. */
  readonly rowCountMax: number | null
}

const barEveryMs = 100
const lineEveryMs = 10_000

/** @returns functions that show this run's rows and bytes, and that clear the line when the run ends. */
export function createExportProgress({ write, isTerminal, monotonicNowMs, rowCountMax }: ExportProgressOptions) {
  const startMs = monotonicNowMs()
  const everyMs = isTerminal ? barEveryMs : lineEveryMs
  let shownMs = isTerminal ? Number.NEGATIVE_INFINITY : startMs
  return {
    /** @param rowCount null if rows are not counted. */
    show(rowCount: number | null, bytes: number): void {
      const nowMs = monotonicNowMs()
      if (nowMs - shownMs < everyMs) return
      shownMs = nowMs
      const seconds = Math.max(0.001, (nowMs - startMs) / 1_000)
      const rate = `${formatBytes(Math.round(bytes / seconds))}/s`
      const parts = [formatBytes(bytes), rate]
      if (rowCount !== null) {
        const most = rowCountMax === null || rowCountMax === 0 ? '' : ` of at most ${rowCountMax.toLocaleString('en')}`
        parts.unshift(most === '' ? formatCount(rowCount, 'row') : `${rowCount.toLocaleString('en')}${most} rows`)
      }
      if (rowCount !== null && rowCountMax !== null && rowCountMax > 0) {
        const part = Math.min(1, rowCount / rowCountMax)
        if (rowCount > 0) parts.push(`${formatDuration((seconds / part) * (1 - part))} left`)
        if (isTerminal) parts.unshift(formatProgressBar(part))
      }
      write(isTerminal ? `\r${parts.join(', ')}\u001b[K` : `${parts.join(', ')}\n`)
    },
    end(): void {
      if (isTerminal) write('\r\u001b[K')
    },
  }
}

function formatDuration(seconds: number): string {
  const whole = Math.ceil(seconds)
  const [hours, minutes] = [Math.floor(whole / 3_600), Math.floor(whole / 60) % 60]
  const padToTwo = (value: number) => String(value).padStart(2, '0')
  return hours > 0 ? `${hours}:${padToTwo(minutes)}:${padToTwo(whole % 60)}` : `${minutes}:${padToTwo(whole % 60)}`
}
