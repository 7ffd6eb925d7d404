// Lists that are too long for one statement.

/** The engines take far more parameters, but each length is a different statement. */
const valuesPerStatement = 500

export function* splitIntoSlices<T>(all: readonly T[], length = valuesPerStatement): Generator<T[]> {
  for (let from = 0; from < all.length; from += length) yield all.slice(from, from + length)
}

/** The rows of all slices. */
export async function readInSlices<T, Row>(all: readonly T[], read: (some: T[]) => Promise<Row[]>): Promise<Row[]> {
  const rows: Row[] = []
  for (const some of splitIntoSlices(all)) for (const row of await read(some)) rows.push(row)
  return rows
}
