// Keeps the rows of a page as the bytes that the store sent. Each row becomes an object only when it is needed: while a
// slow reader takes the export, objects would take ten times as much memory, and objects that live that long become
// old-generation garbage, which V8 collects late.

import type { Readable } from 'node:stream'
import type { ExecResult } from '@clickhouse/client'
import { releaseBytesMemory } from '#core/release-bytes.ts'
import { checkAnswerIsComplete, createIncompleteAnswerError } from '../connection/checked-answers.ts'

/** The size of the blocks in which bytes are held. Thousands of small buffers would fragment the process's memory. */
const blockBytes = 1024 * 1024
const lineFeed = 0x0a

export interface BufferedRows<Row> {
  readonly rowCount: number
  /**
   * Yields the batches in order, once; a batch must be read before the next is requested. Bytes that have become rows are
   * released, so that the next page has space.
   */
  batches(): Generator<Iterable<Row>>
}

/**
 * @param answer to a query in the format JSONCompactEachRow. @param read converts the parsed JSON of a row to a `Row`.
 * @throws PortError `unavailable` for an answer that ended early.
 */
export async function bufferAnswerRows<Row>(
  answer: ExecResult<Readable>,
  read: (json: unknown) => Row,
): Promise<BufferedRows<Row>> {
  const blocks: Buffer[] = []
  let rowCount = 0
  let [byteCount, lastByte] = [0, lineFeed]
  for await (const bytes of answer.stream as AsyncIterable<Buffer>) {
    for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) rowCount++
    lastByte = bytes.at(-1) ?? lastByte
    for (let from = 0; from < bytes.length; ) {
      const used = byteCount % blockBytes
      if (used === 0) blocks.push(Buffer.allocUnsafeSlow(blockBytes))
      const copied = bytes.copy(blocks.at(-1)!, used, from)
      from += copied
      byteCount += copied
    }
    releaseBytesMemory(bytes)
  }
  if (lastByte !== lineFeed) throw createIncompleteAnswerError('an answer ended within a row')
  checkAnswerIsComplete(answer.response_headers, rowCount)
  return {
    rowCount,
    *batches() {
      const begun: Buffer[] = []
      for (let block = blocks.shift(); block !== undefined; block = blocks.shift()) {
        yield parseRows(block, Math.min(byteCount, blockBytes), begun, read)
        byteCount -= blockBytes
      }
    },
  }
}

/**
 * @param begun the beginning of a row that the previous block did not finish. Afterwards it contains the beginning of the
 * row that this block does not finish.
 */
function* parseRows<Row>(block: Buffer, used: number, begun: Buffer[], read: (json: unknown) => Row): Generator<Row> {
  const bytes = block.subarray(0, used)
  let from = 0
  for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, from)) {
    // Decodes row by row: each row of one long string would be a slice that keeps V8 from freeing the whole string.
    const isWhole = begun.length === 0
    const line = isWhole
      ? bytes.toString('utf8', from, end)
      : Buffer.concat([...begun, bytes.subarray(0, end)]).toString()
    begun.length = 0
    from = end + 1
    yield read(JSON.parse(line))
  }
  if (from < used) begun.push(Buffer.from(bytes.subarray(from)))
  releaseBytesMemory(block)
}
