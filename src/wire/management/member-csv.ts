// A table of persons, as people export it from elsewhere: which column names them, and what stands in it.

import type { MemberIds } from '#core/cohorts/member-ids.ts'
import { err, ok, type Result } from '#core/result.ts'

/** Heads by what they mean, folded: lower case, without spaces, hyphens and underscores. */
const kindOfHead: ReadonlyMap<string, MemberIds['kind']> = new Map([
  ['distinctid', 'distinct_id'],
  ['personid', 'person'],
  ['personuuid', 'person'],
])

/** One cell and what ends it. Each part begins where the last one ended, so a table takes linear time. */
const cellForm = /("[^"]*(?:""[^"]*)*"|[^",\r\n][^,\r\n]*|)(,|\r?\n|\r|$)/y

/**
 * Reads RFC 4180, with or without a head. A column whose head is `distinct_id` or `person_id` (however it is spelt) holds the
 * ids; a single column without such a head is ids throughout, its first row included: a head of another name is then an id
 * that leads to nobody, and is told as such. Empty lines are nothing.
 * @returns the ids as they stand there, without spaces around them; or a sentence about what cannot be read.
 */
export function parseMemberCsv(text: string): Result<MemberIds, string> {
  const rows = readRows(text.startsWith('\ufeff') ? text.slice(1) : text)
  if (!rows.ok) return rows
  const [head, ...others] = rows.value
  if (head === undefined) return ok({ kind: 'any', ids: [] })
  const column = head.cells.findIndex(cell => kindOfHead.has(folded(cell)))
  const kind = kindOfHead.get(folded(head.cells[column] ?? ''))
  if (kind !== undefined) return ok({ kind, ids: others.map(({ cells }) => cells[column] ?? '') })
  const wide = rows.value.find(({ cells }) => cells.length > 1)
  if (wide !== undefined)
    return err(
      `Row ${wide.number} has ${wide.cells.length} columns, and the first row names none of them distinct_id or person_id. ` +
        'An id that holds a comma stands in quotation marks.',
    )
  return ok({ kind: 'any', ids: rows.value.map(({ cells }) => cells[0]!) })
}

interface Row {
  /** From 1; empty ones count. */
  readonly number: number
  readonly cells: readonly string[]
}

function readRows(text: string): Result<Row[], string> {
  const rows: Row[] = []
  let cells: string[] = []
  let number = 1
  cellForm.lastIndex = 0
  while (cellForm.lastIndex < text.length) {
    const match = cellForm.exec(text)
    if (match === null) return err(`Row ${number} cannot be read: a quotation mark stands alone.`)
    const [, cell = '', end = ''] = match
    cells.push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"').trim() : cell.trim())
    if (end === ',' && cellForm.lastIndex < text.length) continue
    if (cells.some(value => value !== '')) rows.push({ number, cells })
    cells = []
    number++
  }
  return ok(rows)
}

function folded(head: string): string {
  return head.toLowerCase().replaceAll(/[\s_-]/g, '')
}
