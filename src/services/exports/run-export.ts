// Writes an export to its reader: a batch is requested when the previous batch has been taken, so a slow reader holds one
// batch in memory and nothing in a store.

import { setImmediate as nextTurn } from 'node:timers/promises'

export interface ExportTarget {
  /**
   * Writes the bytes, which belong to the target from now on. Resolves when the target can take more. If the write rejects
   * because the reader is too slow, the reader may still receive the bytes.
   */
  write(bytes: Uint8Array): Promise<void>
  /** Sends what is buffered: the next bytes may take a while. */
  flush?(): void
}

export interface ExportEncoding<Row> {
  begin(): string | Uint8Array
  encode(rows: Iterable<Row>): ExportPieces
  end(next: string | null): ExportPieces
  /** Whether the file should end here, although more rows are left. */
  isFull?(): boolean
}

export type ExportPieces = Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>

export interface ExportProgress {
  rowCount: number
  /** Names the last row that was written, even if its batch was only partly written. */
  cursor: string | null
}

/** Why an export may not continue. */
export class ExportStopped extends Error {
  readonly code: 'access_ended' | 'project_deleted' | 'too_slow'

  constructor(code: ExportStopped['code']) {
    super(code)
    this.code = code
  }
}

export interface RunExportOptions<Row> {
  /** Each batch is read once, before the next one is requested. */
  readonly batches: AsyncIterator<Iterable<Row>>
  readonly encoding: ExportEncoding<Row>
  readonly target: ExportTarget
  /** The maximum number of rows; the export then ends, although more may be left. */
  readonly limit: number
  readonly cursorOf: (row: Row) => string
  /** Called before each batch. */
  readonly findStopReason: () => Promise<ExportStopped['code'] | null>
  /** Kept up to date, even when the export fails. */
  readonly progress: ExportProgress
}

/** Maximum characters written at once. */
const pieceCharsMax = 64 * 1024
/** How long the export works before it yields to the event loop, ms. */
const sliceMs = 10

/** @returns where a further export continues; null when nothing remains. */
export async function runExport<Row>(options: RunExportOptions<Row>): Promise<string | null> {
  const { batches, encoding, limit, cursorOf, progress } = options
  let rows = takeRows<Row>([], 0)
  let rowsBefore = 0
  const updateProgress = () => {
    if (rows.last !== null) progress.cursor = cursorOf(rows.last)
    progress.rowCount = rowsBefore + rows.count
  }
  const out = new Pieces(options.target, updateProgress)
  await out.add(encoding.begin())
  let next: string | null = null
  for (;;) {
    const reason = await options.findStopReason()
    if (reason !== null) throw new ExportStopped(reason)
    const { done, value: batch } = await batches.next()
    if (done === true) break
    rowsBefore = progress.rowCount
    rows = takeRows(batch, limit - rowsBefore)
    for await (const piece of encoding.encode(rows)) await out.add(piece)
    await out.flush()
    options.target.flush?.()
    updateProgress()
    if (progress.rowCount < limit && encoding.isFull?.() !== true) continue
    const isMore = rows.isMore() || (await batches.next()).done !== true
    next = isMore ? progress.cursor : null
    break
  }
  for await (const piece of encoding.end(next)) await out.add(piece)
  await out.flush()
  return next
}

/**
 * Yields the first rows of a batch, one at a time, so that none is kept while the next batch is awaited: V8 would move kept
 * rows to its old generation, which is costly to clean.
 */
function takeRows<Row>(batch: Iterable<Row>, limit: number) {
  const rest = batch[Symbol.iterator]()
  const taken = {
    count: 0,
    last: null as Row | null,
    *[Symbol.iterator](): Generator<Row> {
      while (taken.count < limit) {
        const { done, value } = rest.next()
        if (done === true) return
        taken.count++
        taken.last = value
        yield value
      }
    },
    isMore: () => rest.next().done !== true,
  }
  return taken
}

/** Gathers texts, and yields to the event loop now and then. */
class Pieces {
  readonly #target: ExportTarget
  readonly #beforeTexts: () => void
  #texts: string[] = []
  #chars = 0
  #sliceEndMs = performance.now() + sliceMs

  /** @param beforeTexts called when all texts that were added are about to be written. */
  constructor(target: ExportTarget, beforeTexts: () => void) {
    this.#target = target
    this.#beforeTexts = beforeTexts
  }

  async add(piece: string | Uint8Array): Promise<void> {
    if (typeof piece === 'string') {
      this.#texts.push(piece)
      this.#chars += piece.length
      if (this.#chars >= pieceCharsMax) await this.flush()
    } else {
      await this.flush()
      await this.#target.write(piece)
    }
    if (performance.now() < this.#sliceEndMs) return
    await nextTurn()
    this.#sliceEndMs = performance.now() + sliceMs
  }

  async flush(): Promise<void> {
    if (this.#chars === 0) return
    const bytes = Buffer.from(this.#texts.join(''))
    this.#texts = []
    this.#chars = 0
    this.#beforeTexts()
    await this.#target.write(bytes)
  }
}
