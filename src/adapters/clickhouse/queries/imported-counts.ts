// Counts the stored events of an import job, each identity once. Detecting repeated rows takes memory and time per row, so
// a large job is counted by several queries, each for several days or for a part of one day.

import { type ImportedCount, type ImportedRowCounts, idBucketCount } from '#core/imports/imported-counts.ts'
import type { ImportedCountsQuery } from '#ports/events/imported-rows.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'

// Implicit jobs share partition 1, most of which the condition on the project skips; other jobs have separate partitions.
export const jobCondition = `PREWHERE import_partition IN (1, {job:UInt32})
  AND project_id = {project:UInt32} AND import_job_id = {job:UInt32}`

export interface JobParams extends Record<string, number> {
  readonly project: number
  readonly job: number
}

/** Runs one query, as soon as its project may run another query, under the query limit. */
export type RunPieceQuery = <T>(query: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>) => Promise<T>

/** A fifth of the rows that two cores of the embedded engine can count within a query's limits of time and memory. */
const pieceRowsMax = 2_000_000
/** The most days whose rows one query counts. */
const daysMax = 20_000

/**
 * The rows that one query counts: all rows of these days or, for a single day, only those whose uuid falls into one of
 * several parts.
 */
interface Piece {
  readonly from: string
  readonly to: string
  readonly part: number
  readonly parts: number
}

export async function countRowsOfImport(
  ask: RunPieceQuery,
  job: JobParams,
  rowsMax = pieceRowsMax,
): Promise<ImportedRowCounts> {
  const idBuckets = Array<number>(idBucketCount).fill(0)
  for await (const piece of listPieces(ask, job, null, rowsMax))
    for (const [bucket, rows] of await ask((client, signal) => countByBucket(client, job, piece, signal)))
      idBuckets[bucket]! += Number(rows)
  return { rows: idBuckets.reduce((sum, rows) => sum + rows, 0), idBuckets }
}

/** Lists the job's counts per event name and day, ordered by day and name, beginning after `after`. */
export async function listRowCountsOfImport(
  ask: RunPieceQuery,
  { projectId, importJobId, after, limit }: ImportedCountsQuery,
  rowsMax = pieceRowsMax,
): Promise<ImportedCount[]> {
  const job = { project: projectId, job: importJobId }
  const counts: ImportedCount[] = []
  let ofDay: readonly ImportedCount[] = []
  for await (const piece of listPieces(ask, job, after, rowsMax)) {
    const found = await ask((client, signal) => countByEvent(client, job, piece, { after, limit }, signal))
    // Each part returns its first counts, so the first counts of the whole day are among them.
    ofDay = piece.part === 0 ? found : selectFirstCounts([...ofDay, ...found], limit)
    if (piece.part < piece.parts - 1) continue
    counts.push(...ofDay)
    if (counts.length >= limit) break
  }
  return counts.slice(0, limit)
}

async function* listPieces(
  ask: RunPieceQuery,
  job: JobParams,
  after: ImportedCountsQuery['after'],
  rowsMax: number,
): AsyncGenerator<Piece> {
  let open: { from: string; to: string; rows: number } | null = null
  for (let last = after?.day ?? null, isMore = true; isMore; ) {
    const days: readonly DayRow[] = await ask((client, signal) =>
      countRowsByDay(client, job, { last, after: last === after?.day ? after : null }, signal),
    )
    for (const [day, count] of days) {
      const rows = Number(count)
      if (open !== null && open.rows + rows > rowsMax) {
        yield* divideIntoParts(open, rowsMax)
        open = null
      }
      open = open === null ? { from: day, to: day, rows } : { from: open.from, to: day, rows: open.rows + rows }
    }
    last = days.at(-1)?.[0] ?? last
    isMore = days.length === daysMax
  }
  if (open !== null) yield* divideIntoParts(open, rowsMax)
}

function* divideIntoParts(
  { from, to, rows }: { from: string; to: string; rows: number },
  rowsMax: number,
): Generator<Piece> {
  const parts = Math.ceil(rows / rowsMax)
  for (let part = 0; part < parts; part++) yield { from, to, part, parts }
}

type DayRow = [day: string, rows: number | string]

/**
 * Counts the rows of each day, repeats included. @param last the last day that was counted; null to begin at the first day.
 * Continues with the next day or, given `after`, with the rest of the last day.
 */
async function countRowsByDay(
  client: ClickHouseClient,
  job: JobParams,
  { last, after }: { readonly last: string | null } & Pick<ImportedCountsQuery, 'after'>,
  signal: AbortSignal,
): Promise<DayRow[]> {
  const from = last === null ? '' : `AND toDate32(timestamp) ${after === null ? '>' : '>='} {last:Date32}`
  const source = unionSql('SELECT toDate32(timestamp) AS day', `${from} ${afterCursorSql(after)}`)
  return readRows<DayRow>(client, signal, {
    query: `SELECT toString(day), count() FROM (${source}) GROUP BY day ORDER BY day LIMIT ${daysMax}`,
    query_params: { ...job, ...(last !== null && { last }), ...after },
  })
}

async function countByBucket(
  client: ClickHouseClient,
  job: JobParams,
  piece: Piece,
  signal: AbortSignal,
): Promise<[bucket: number, rows: number | string][]> {
  return readRows<[number, number | string]>(client, signal, {
    query: `SELECT CRC32(distinct_id) % ${idBucketCount} AS bucket, count() FROM (${distinctRowsSql(piece)}) GROUP BY bucket`,
    query_params: { ...job, ...piece },
  })
}

async function countByEvent(
  client: ClickHouseClient,
  job: JobParams,
  piece: Piece,
  { after, limit }: Pick<ImportedCountsQuery, 'after' | 'limit'>,
  signal: AbortSignal,
): Promise<ImportedCount[]> {
  const rows = await readRows<[day: string, event: string, uuids: number | string]>(client, signal, {
    query: `SELECT toString(day), event, count() FROM (${distinctRowsSql(piece, afterCursorSql(after))})
      GROUP BY day, event ORDER BY day, event LIMIT {limit:UInt32}`,
    query_params: { ...job, ...piece, limit, ...after },
  })
  return rows.map(([day, event, uuids]) => ({ day, event, uuids: Number(uuids) }))
}

function afterCursorSql(after: ImportedCountsQuery['after']): string {
  return after === null ? '' : 'WHERE (toDate32(timestamp), event) > ({day:Date32}, {event:String})'
}

/** SQL of the rows without repeats. Repeated rows have the same identity, which is the whole sort key. */
function distinctRowsSql({ parts }: Piece, where = ''): string {
  const days = 'AND toDate32(timestamp) >= {from:Date32} AND toDate32(timestamp) <= {to:Date32}'
  const isOfPart = parts === 1 ? '' : 'AND cityHash64(uuid) % {parts:UInt32} = {part:UInt32}'
  const source = unionSql('SELECT toDate32(timestamp) AS day, event, distinct_id, uuid', `${days} ${isOfPart} ${where}`)
  return `SELECT DISTINCT day, event, distinct_id, uuid FROM (${source})`
}

/** While a job is being published, its rows are in `events_pending`, in `events`, or in both. */
function unionSql(select: string, where: string): string {
  return ['events_pending', 'events']
    .map(table => `${select} FROM ${table} ${jobCondition} ${where}`)
    .join(' UNION ALL ')
}

/** The first counts of one day in the byte order of their event names, which is the engine's order. */
function selectFirstCounts(counts: readonly ImportedCount[], limit: number): ImportedCount[] {
  const byName = new Map<string, { readonly name: Buffer; readonly count: ImportedCount }>()
  for (const count of counts) {
    const known = byName.get(count.event)
    if (known === undefined) byName.set(count.event, { name: Buffer.from(count.event), count })
    else byName.set(count.event, { ...known, count: { ...count, uuids: known.count.uuids + count.uuids } })
  }
  return [...byName.values()]
    .toSorted((a, b) => Buffer.compare(a.name, b.name))
    .slice(0, limit)
    .map(({ count }) => count)
}
