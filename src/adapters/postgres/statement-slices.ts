// Runs a statement whose parameters are lists, one per column, for any number of rows, in slices small enough for the
// server and for this process.

import { assertRowCount } from '#adapters/sql/processing/chunk-queries.ts'
import type { Session } from './open-postgres.ts'

const sliceRowsMax = 2_000
const sliceCharsMax = 16 * 2 ** 20

/** @returns the number of changed rows and the returned rows, of all slices together. @throws what the driver throws. */
export async function runStatementInSlices<Answer extends object>(
  session: Session,
  statement: string,
  rows: readonly (readonly (string | number)[])[],
): Promise<{ rowCount: number; rows: Answer[] }> {
  let rowCount = 0
  let answers: Answer[] = []
  for (let start = 0; start < rows.length; ) {
    const end = findSliceEnd(rows, start)
    const result = await session.query<Answer>(statement, toColumns(rows, start, end))
    rowCount += result.rowCount ?? 0
    answers = answers.length === 0 ? result.rows : answers.concat(result.rows)
    start = end
  }
  return { rowCount, rows: answers }
}

/** Runs a statement that has to find or change one row for each given row. @throws CommitRefused when it does not. */
export async function runStatementForEach<Answer extends object>(
  session: Session,
  statement: string,
  rows: readonly (readonly (string | number)[])[],
): Promise<Answer[]> {
  const answer = await runStatementInSlices<Answer>(session, statement, rows)
  assertRowCount(answer.rowCount, rows.length)
  return answer.rows
}

function findSliceEnd(rows: readonly (readonly (string | number)[])[], start: number): number {
  let chars = 0
  let end = start
  while (end < rows.length && end - start < sliceRowsMax) {
    for (const value of rows[end]!) if (typeof value === 'string') chars += value.length
    if (chars > sliceCharsMax && end > start) break
    end++
  }
  return end
}

function toColumns(rows: readonly (readonly (string | number)[])[], start: number, end: number): unknown[][] {
  const columns: unknown[][] = rows[start]!.map(() => [])
  for (let index = start; index < end; index++) {
    const row = rows[index]!
    for (let column = 0; column < row.length; column++) columns[column]!.push(row[column])
  }
  return columns
}
