// The rows of a page as bytes, which become objects a few at a time: as objects they take ten times as much, for as long as
// the reader of an export is slow.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ResultSet } from '@clickhouse/client'
import { freeBytes } from '#core/free-bytes.ts'
import { checkAnswer } from '../connection/checked-answers.ts'

/**
 * Bytes that become objects at once. Objects that are alive while the export waits for its reader move to V8's old
 * generation, where they stay as garbage for a long time. The fewer there are at once, the slower the heap grows.
 */
const pieceBytes = 64 * 1024
/** Between turns of the event loop, ms. */
const sliceMs = 10

export interface HeldRows<Row> {
  readonly rowCount: number
  /** Null when there is none. */
  readonly last: Row | null
  /** In order, once: what has become objects is held no more, so that the next page finds room. */
  pieces(): Generator<readonly Row[]>
}

/** @throws PortError `unavailable` for an answer that was cut off. */
export async function holdRows<Row>(result: ResultSet<'JSONCompactEachRow'>): Promise<HeldRows<Row>> {
  const held: Buffer[] = []
  let lines: string[] = []
  let chars = 0
  let rowCount = 0
  let last: string | null = null
  const hold = () => {
    if (lines.length > 0) held.push(Buffer.from(lines.join('\n')))
    lines = []
    chars = 0
  }
  let sliceEndMs = performance.now() + sliceMs
  for await (const some of result.stream()) {
    for (const { text } of some) {
      lines.push(text)
      chars += text.length
      rowCount++
      last = text
      if (chars >= pieceBytes) hold()
    }
    if (performance.now() < sliceEndMs) continue
    await nextTurn()
    sliceEndMs = performance.now() + sliceMs
  }
  hold()
  checkAnswer(result.response_headers, rowCount)
  return {
    rowCount,
    last: last === null ? null : (JSON.parse(last) as Row),
    *pieces() {
      for (let bytes = held.shift(); bytes !== undefined; bytes = held.shift()) {
        const lines = bytes.toString().split('\n')
        freeBytes(bytes)
        yield lines.map(line => JSON.parse(line) as Row)
      }
    },
  }
}
