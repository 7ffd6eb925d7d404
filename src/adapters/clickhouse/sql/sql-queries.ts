// Runs users' SQL: checks it, binds its values, and reads as many rows as an answer takes. The engine stops when enough
// rows are read.

import type { ResponseHeaders } from '@clickhouse/client'
import type { ProjectQueue } from '#core/project-queue.ts'
import { err, ok, type Result } from '#core/result.ts'
import { checkSql, findTableRead, mentionsSystemTables } from '#core/sql/check-sql.ts'
import { stripClientAdditions } from '#core/sql/client-additions.ts'
import { bindValues } from '#core/sql/sql-values.ts'
import type { EventScope } from '#ports/events/event-queries.ts'
import type { SqlAnswer, SqlFailure, SqlQueries, SqlRows } from '#ports/events/sql-queries.ts'
import { PortError } from '#ports/port-error.ts'
import { createIncompleteAnswerError, readRowCount } from '../connection/checked-answers.ts'
import type { ClickHouseClient, ClickHouseClients } from '../connection/clickhouse-clients.ts'
import { importJobHeader, projectHeader, type SqlScope } from '../connection/sql-users.ts'
import { splitIntoLists } from '../parameters/split-into-lists.ts'
import type { SqlSetUp } from './set-up.ts'
import { incompleteQuery, isFormatError, toSqlFailure } from './sql-errors.ts'

/** The client appends this format to the query. */
const answerFormat = 'JSONCompactEachRowWithNamesAndTypes'

/** A query with values is sent as a form field, for which the server accepts 128 KiB including the appended format. */
const queryFieldBytesMax = 131_000

/** The most bytes of rows in one answer: a front holds them all in memory. */
const answerBytesMax = 32 * 1024 * 1024

interface SqlQueriesDeps {
  readonly clients: ClickHouseClients
  readonly setUp: SqlSetUp
  readonly queue: ProjectQueue
  readonly queryTimeoutSeconds: number
}

export function createSqlQueries(deps: SqlQueriesDeps): SqlQueries {
  const { clients, setUp, queue } = deps

  /**
   * Runs a call that sees only the events of this scope. If the views are missing (a new store), creates them and repeats
   * the call.
   */
  async function runInScope<T>(
    { projectId, importJobId }: EventScope,
    signal: AbortSignal,
    call: (client: ClickHouseClient, headers: Record<string, string>) => Promise<Result<T, SqlFailure>>,
  ): Promise<Result<T, SqlFailure>> {
    const scope: SqlScope = importJobId === undefined ? 'visible' : 'job'
    const headers = {
      [projectHeader]: String(projectId),
      ...(importJobId !== undefined && { [importJobHeader]: String(importJobId) }),
    }
    for (let attempt = 0; ; attempt++) {
      const { lacking } = await setUp.ready(scope)
      if (lacking !== null) return err({ kind: 'not_set_up', detail: lacking })
      try {
        return await clients.analyse(scope, async (client, database) => {
          try {
            return await call(client, headers)
          } catch (error) {
            if (attempt === 0 && isViewMissing(error)) throw error
            return err(toSqlFailure(error, database))
          }
        })
      } catch (error) {
        if (signal.aborted) throw signal.reason
        if (!isViewMissing(error)) throw error
        setUp.forget(scope)
      }
    }
  }

  return {
    async runSql({ sql, values, defaultRowCount, rowCountMax, closedTables, ...seen }, signal) {
      const checked = checkSql(sql, await setUp.functions(), 'query')
      if (!checked.ok) return err({ kind: 'refused', ...checked.error })
      // Refuses lists of tables and columns: only clients of the read-only port need them; users of this API have the docs.
      if (mentionsSystemTables(checked.value)) return err({ kind: 'forbidden' })
      const table = findTableRead(checked.value, closedTables)
      if (table !== null) return err({ kind: 'forbidden', table })
      const bound = bindValues(checked.value, values, splitIntoLists)
      if (!bound.ok) return err({ kind: 'refused', ...bound.error })
      const bytes = Buffer.byteLength(bound.value.sql)
      if (Object.keys(bound.value.params).length > 0 && bytes > queryFieldBytesMax)
        return err({
          ...{ kind: 'refused', at: null },
          detail: `With its values, the query has ${bytes} bytes; at most ${queryFieldBytesMax} are allowed.`,
        })
      const rowsMax = checked.value.hasLimit ? rowCountMax : defaultRowCount
      const ran = await queue.run(seen.projectId, signal, () =>
        runLimited(signal, deps.queryTimeoutSeconds, either =>
          runInScope(seen, either, async (client, http_headers) => {
            const result = await client.query({
              query: bound.value.sql,
              query_params: bound.value.params as Record<string, unknown>,
              use_multipart_params: true,
              format: answerFormat,
              http_headers,
              abort_signal: either,
            })
            const stream = result.stream()
            if (result.response_headers['x-clickhouse-format'] === answerFormat) return readRows(stream, rowsMax)
            stream.destroy()
            return err(incompleteQuery)
          }),
        ),
      )
      return !ran.ok && isFormatError(ran.error, answerFormat, sql) ? err(incompleteQuery) : ran
    },

    async forwardSql({ projectId, sql, params, acceptEncoding }, signal) {
      const checked = checkSql(stripClientAdditions(sql), await setUp.functions(), 'read')
      if (!checked.ok) return err({ kind: 'refused', ...checked.error })
      const typed = bindValues(checked.value, null)
      if (!typed.ok) return err({ kind: 'refused', ...typed.error })
      // The query keeps its place in the queue until the client has read the last byte.
      const held = Promise.withResolvers<void>()
      // A body that is never read does not end, so the caller's signal also frees the place in the queue.
      signal.addEventListener('abort', () => held.resolve(), { once: true })
      return new Promise<Result<SqlAnswer, SqlFailure>>((resolve, reject) => {
        queue
          .run(projectId, signal, async () => {
            const answered = await runInScope({ projectId }, signal, async (client, headers) => {
              const result = await client.exec({
                query: typed.value.sql,
                clickhouse_settings: Object.fromEntries(params),
                http_headers: { ...headers, ...(acceptEncoding !== null && { 'Accept-Encoding': acceptEncoding }) },
                abort_signal: signal,
                decompress_response_stream: false,
              })
              const pieces = result.stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
              const first = await pieces.next()
              if (first.done && hasRows(result.response_headers))
                throw createIncompleteAnswerError('an answer with rows came empty')
              return ok({
                headers: selectPassedHeaders(result.response_headers),
                body: readThenRelease(result.stream, first, pieces, held.resolve),
              })
            })
            resolve(answered)
            if (answered.ok) await held.promise
          })
          .catch(reject)
      })
    },
  }
}

const unknownTable = '60'
const unknownDatabase = '81'

function isViewMissing(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === unknownDatabase ||
      (error.code === unknownTable && /'(?:events|persons|groups|flag_calls)'/.test(error.message)))
  )
}

/** Runs a query and ends it with a PortError `timeout` if the server's own time limit does not end it. */
async function runLimited<T>(
  signal: AbortSignal | undefined,
  timeoutSeconds: number,
  run: (either: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = AbortSignal.timeout(timeoutSeconds * 1000 + 500)
  try {
    return await run(signal === undefined ? limit : AbortSignal.any([signal, limit]))
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    throw limit.aborted ? new PortError('event-store', 'timeout', error) : error
  }
}

interface TextRow {
  readonly text: string
}

async function readRows(
  stream: AsyncIterable<readonly TextRow[]> & { destroy(): unknown },
  rowCountMax: number,
): Promise<Result<SqlRows, SqlFailure>> {
  const head: string[][] = []
  const rows: string[] = []
  let bytes = 0
  let hasMore = false
  try {
    for await (const page of stream) {
      for (const { text } of page) {
        if (head.length < 2) {
          head.push(JSON.parse(text) as string[])
          continue
        }
        hasMore = rows.length === rowCountMax
        if (hasMore) break
        bytes += text.length
        if (bytes > answerBytesMax)
          return err({
            kind: 'too_large',
            detail: `The result exceeds ${answerBytesMax / 1024 / 1024} MB. Select fewer columns or rows.`,
          })
        rows.push(text)
      }
      if (hasMore) break
    }
  } finally {
    stream.destroy()
  }
  const [columns = [], types = []] = head
  return ok({ columns, types, rows, rowCountMax, hasMore })
}

/** The headers of the server's answer that are passed on, since clients of ClickHouse read them. */
const passedHeaders = [
  'content-type',
  'content-encoding',
  'x-clickhouse-format',
  'x-clickhouse-timezone',
  'x-clickhouse-exception-tag',
]

function selectPassedHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const name of passedHeaders) {
    const value = headers[name]
    if (typeof value === 'string') passed[name] = value
  }
  const summary = selectSummaryParts(headers['x-clickhouse-summary'])
  if (summary !== null) passed['x-clickhouse-summary'] = summary
  return passed
}

/**
 * Keeps only the counts of the result: the count of rows that were read may include neighbouring rows of other projects.
 */
function selectSummaryParts(header: string | string[] | undefined): string | null {
  if (typeof header !== 'string') return null
  const parts = header.match(/"(?:result_rows|result_bytes|elapsed_ns)":"\d+"/g)
  return parts === null ? null : `{${parts.join(',')}}`
}

/**
 * Whether the headers announce rows, to detect an answer that wrongly came empty. An answer that waits for the end of its
 * query is buffered in a file, and only such an answer has its row count in its headers. Without disk space for the file,
 * the engine answers 200 and sends no byte; with too little space, the answer breaks off.
 */
function hasRows(headers: ResponseHeaders): boolean {
  return headers['x-clickhouse-format'] !== 'Null' && (readRowCount(headers) ?? 0) > 0
}

async function* readThenRelease(
  stream: { destroy(): unknown },
  first: IteratorResult<Uint8Array>,
  rest: AsyncIterator<Uint8Array>,
  release: () => void,
) {
  try {
    for (let piece = first; !piece.done; piece = await rest.next()) yield piece.value
  } finally {
    stream.destroy()
    release()
  }
}
