// Lists the losses of a log, one JSON line each, in a file next to its streams. Operators remove the file once they
// have dealt with it. Only the process that processes the log writes it; any process that reports lost records reads
// it.
//
// The file has a size limit. When it is reached, the older half becomes one line per stream with the number of records
// missing within a span. So the count stays exact, and the newest losses stay in full.

import { appendFileSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LogLoss } from '#ports/log/event-log.ts'
import { syncFile, syncSegmentFolder } from './segment-file.ts'

/** In `<PENNON_DATA>/log`. */
export const lostRecordsFile = 'lost-records.jsonl'

/** Enough for about 350 damaged records with all of their bytes, or for 60,000 spans. */
const fileBytesMax = 8 * 1024 * 1024

/** Every method @throws system errors. */
export class LostRecords {
  readonly #folder: string
  readonly #path: string
  readonly #bytesMax: number
  #counted = { version: '', count: 0 }

  /** @param folder of the log. */
  constructor(folder: string, bytesMax = fileBytesMax) {
    this.#folder = folder
    this.#path = join(folder, lostRecordsFile)
    this.#bytesMax = bytesMax
  }

  /** Adds losses that are not yet listed, in one write: thousands may be lost at the same place. */
  keep(losses: readonly LogLoss[]): void {
    const kept = this.list()
    const places = new Set(kept.map(formatPlace))
    const sums = kept.filter(isSum)
    const isStored = (loss: LogLoss) => places.has(formatPlace(loss)) || sums.some(sum => coversLoss(sum, loss))
    const fresh = losses.filter(loss => !isStored(loss))
    if (fresh.length === 0) return
    const text = fresh.map(formatLoss).join('')
    const size = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0
    if (size + Buffer.byteLength(text) > this.#bytesMax)
      this.#replace(shortenLosses([...kept, ...fresh], this.#bytesMax / 2))
    else {
      appendFileSync(this.#path, text, { mode: 0o600 })
      syncFile(this.#path)
    }
  }

  /** The listed losses. Skips truncated lines and lines that another program wrote. */
  list(): readonly LogLoss[] {
    if (statSync(this.#path, { throwIfNoEntry: false }) === undefined) return []
    return readFileSync(this.#path, 'utf8').split('\n').flatMap(parseLoss)
  }

  /** The number of lost records. Reads the file only when it has changed, since every health probe calls this. */
  count(): number {
    const stats = statSync(this.#path, { throwIfNoEntry: false, bigint: true })
    if (stats === undefined) return 0
    const version = [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join()
    if (version !== this.#counted.version)
      this.#counted = { version, count: this.list().reduce((sum, loss) => sum + countLostRecords(loss), 0) }
    return this.#counted.count
  }

  #replace(losses: readonly LogLoss[]): void {
    const draft = `${this.#path}.new`
    rmSync(draft, { force: true })
    writeFileSync(draft, losses.map(formatLoss).join(''), { flag: 'wx', mode: 0o600 })
    syncFile(draft)
    renameSync(draft, this.#path)
    syncSegmentFolder(this.#folder)
  }
}

/** One line per stream that sums up the older losses, then the newest losses that fit. */
function shortenLosses(losses: readonly LogLoss[], bytesMax: number): LogLoss[] {
  let bytes = 0
  let from = losses.length
  while (from > 0 && !isSum(losses[from - 1]!)) {
    bytes += Buffer.byteLength(formatLoss(losses[from - 1]!))
    if (bytes > bytesMax) break
    from--
  }
  const older = losses.slice(0, from)
  const sums = [...Map.groupBy(older, ({ stream }) => stream).values()].map(combineLosses)
  return [...sums, ...losses.slice(from)]
}

/** Combines the losses of one stream into one. @param losses at least one. */
function combineLosses(losses: readonly LogLoss[]): LogLoss {
  const last = losses.at(-1)!
  let [fromOffset, toOffset, recordCount] = [last.fromOffset, last.toOffset, 0]
  for (const loss of losses) {
    fromOffset = Math.min(fromOffset, loss.fromOffset)
    toOffset = Math.max(toOffset, loss.toOffset)
    recordCount += countLostRecords(loss)
  }
  return { stream: last.stream, fromOffset, toOffset, file: null, noticedAtMs: last.noticedAtMs, recordCount }
}

function isSum({ recordCount }: LogLoss): boolean {
  return recordCount !== undefined
}

function coversLoss(sum: LogLoss, { stream, fromOffset, toOffset }: LogLoss): boolean {
  return stream === sum.stream && fromOffset >= sum.fromOffset && toOffset <= sum.toOffset
}

function countLostRecords({ fromOffset, toOffset, recordCount }: LogLoss): number {
  return recordCount ?? toOffset - fromOffset
}

/** Operators read the file, so it calls a stream `lane`, as the private API does. */
function formatLoss({ stream, ...loss }: LogLoss): string {
  return `${JSON.stringify({ lane: stream, ...loss })}\n`
}

function formatPlace({ stream, fromOffset, toOffset }: LogLoss): string {
  return `${stream} ${fromOffset} ${toOffset}`
}

function parseLoss(line: string): LogLoss[] {
  try {
    const { lane: stream, ...loss } = JSON.parse(line) as Omit<LogLoss, 'stream'> & { lane: string }
    const { recordCount = 0 } = loss
    return [loss.fromOffset, loss.toOffset, recordCount].every(Number.isSafeInteger) ? [{ stream, ...loss }] : []
  } catch {
    return [] // truncated by a crash; the loss will be detected again
  }
}
