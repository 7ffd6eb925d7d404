// Parses an answer of several megabytes row by row and yields to the event loop in between; parsing it as one text would
// block the event loop.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ResultSet } from '@clickhouse/client'
import { checkAnswerIsComplete } from '../connection/checked-answers.ts'

/** How long to parse before yielding to the event loop. */
const sliceMs = 10

/**
 * @param check called with each row as it is read; when it throws, no further rows are read. @throws PortError
 * `unavailable` for an answer that ended early.
 */
export async function readRowsInSlices<Row>(
  result: ResultSet<'JSONCompactEachRow'>,
  check: (row: Row) => void = () => {},
): Promise<Row[]> {
  const rows: Row[] = []
  let sliceEndMs = performance.now() + sliceMs
  for await (const some of result.stream())
    for (const row of some) {
      const read = row.json() as Row
      check(read)
      rows.push(read)
      if (performance.now() < sliceEndMs) continue
      await nextTurn()
      sliceEndMs = performance.now() + sliceMs
    }
  checkAnswerIsComplete(result.response_headers, rows.length)
  return rows
}
