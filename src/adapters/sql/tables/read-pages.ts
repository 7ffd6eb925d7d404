// Pages of items that may be large: definitions of up to 1 MiB each, persons and groups of 640 KiB. A page that would take
// too much of a front's memory is shortened before it is read.

import type { RawBuilder, Selectable, SelectQueryBuilder } from 'kysely'
import type { StateSchema } from './schema.ts'

/** Bytes of one page; a page of a single item may have more. */
const pageBytesMax = 1024 * 1024

/** How many rows, from the first on, fit into one page: at least one, if there is any. */
export function countFittingRows(rows: readonly { readonly bytes: number }[], bytesMax = pageBytesMax): number {
  let bytes = 0
  for (const [index, row] of rows.entries()) {
    bytes += Number(row.bytes)
    if (bytes > bytesMax && index > 0) return index
  }
  return rows.length
}

type Rows<T extends keyof StateSchema> = SelectQueryBuilder<StateSchema, T, object>

/** @param rows the query for all rows, in the order of the pages. @param bytes the SQL expression for a row's bytes. */
export async function readPage<T extends keyof StateSchema, Item>(
  rows: Rows<T>,
  bytes: RawBuilder<number>,
  { limit, offset }: { readonly limit: number; readonly offset: number },
  toItem: (row: Selectable<StateSchema[T]>) => Item,
): Promise<{ readonly count: number; readonly results: readonly Item[] }> {
  const count = await countRows(rows.clearOrderBy())
  const page = rows.offset(offset)
  const sizes = await page.select(bytes.as('bytes')).limit(limit).execute()
  const found = await page.selectAll().limit(countFittingRows(sizes)).execute()
  return { count, results: found.map(row => toItem(row as Selectable<StateSchema[T]>)) }
}

export async function countRows<T extends keyof StateSchema>(rows: Rows<T>): Promise<number> {
  const { count } = await rows.select(({ fn }) => fn.countAll().as('count')).executeTakeFirstOrThrow()
  return Number(count)
}

/** The engines accept far more parameters, but each list length is a different statement. */
const valuesPerStatement = 500

export function* splitIntoSlices<T>(all: readonly T[], length = valuesPerStatement): Generator<T[]> {
  for (let from = 0; from < all.length; from += length) yield all.slice(from, from + length)
}

/** Reads rows for a long list of values slice by slice, and returns the rows of all slices. */
export async function readInSlices<T, Row>(all: readonly T[], read: (some: T[]) => Promise<Row[]>): Promise<Row[]> {
  const rows: Row[] = []
  for (const some of splitIntoSlices(all)) for (const row of await read(some)) rows.push(row)
  return rows
}
