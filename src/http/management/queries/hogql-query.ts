// SQL as PostHog's scripts send it. The answer has PostHog's fields; the SQL is ClickHouse's own.

import { isJsonObject, type JsonObject } from '#core/json.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import type { Project } from '#core/project.ts'
import type { Result } from '#core/result.ts'
import { addPropertyHint } from '#core/sql/property-hint.ts'
import type { EventScope } from '#ports/events/event-queries.ts'
import type { ClosableTable, SqlFailure, SqlQuery, SqlRows } from '#ports/events/sql-queries.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import {
  type Answer,
  createInvalidError,
  createInvalidInputError,
  createPermissionDeniedError,
  createRequiredError,
  listAnswer,
  refusal,
} from '../kit/answers.ts'
import { type Caller, createMissingScopeError, hasScope } from '../kit/authenticate.ts'
import type { ManagementDeps } from '../kit/deps.ts'

/** A request to `POST …/query/`, with a query of any kind. */
export interface HogQLRequest extends Pick<EventScope, 'importJobId'> {
  readonly project: Project
  readonly query: JsonObject
  /** Whether the worker has processed all accepted events; reported in the answer. */
  readonly isComplete: boolean
  readonly closedTables: readonly ClosableTable[]
}

/** The tables of SQL that the caller lacks the scope for. */
export function listClosedTables(caller: Caller): readonly ClosableTable[] {
  return closableTables.filter(table => !hasScope(caller, tableScopes[table]))
}

const tableScopes = { persons: 'person:read', groups: 'group:read' } as const satisfies Record<ClosableTable, string>
const closableTables = Object.keys(tableScopes) as readonly ClosableTable[]

/** The most rows that SQL returns: `default` without a LIMIT, `max` with a LIMIT. As in PostHog. */
const rowCounts = { default: 100, max: 50_000 }

/** See `AnswerQuery`. */
export async function answerHogQLQuery(
  { events }: ManagementDeps,
  { project, query, isComplete: complete, importJobId, closedTables }: HogQLRequest,
  signal: AbortSignal,
): Promise<Answer> {
  const { query: sql, values = {} } = query
  if (sql === undefined || sql === null) return refusal(createRequiredError('query.query'))
  if (typeof sql !== 'string') return refusal(createInvalidError('query.query', 'The SQL must be a string.'))
  if (values !== null && !isJsonObject(values))
    return refusal(createInvalidError('query.values', 'values must be an object with a value for each placeholder.'))
  const ran = await runHogQL(
    events,
    omitUndefined({ projectId: project.id, importJobId, sql, values: values ?? {}, closedTables }),
    signal,
  )
  if (!ran.ok) return refusal(toSqlWireError(ran.error, sql))
  const { columns, types, rows, hasMore, rowCountMax } = ran.value
  const head = {
    columns,
    types: columns.map((column, index) => [column, types[index]]),
    hasMore,
    limit: rowCountMax,
    offset: 0,
    error: null,
    complete,
  }
  return listAnswer(head, rows)
}

/** Runs SQL with PostHog's row limits. */
export function runHogQL(
  events: ManagementDeps['events'],
  query: Omit<SqlQuery, 'defaultRowCount' | 'rowCountMax'>,
  signal: AbortSignal,
): Promise<Result<SqlRows, SqlFailure>> {
  return events.runSql({ ...query, defaultRowCount: rowCounts.default, rowCountMax: rowCounts.max }, signal)
}

/**
 * The error for a query that must be changed.
 * @param attr the field that holds the SQL.
 */
export function toSqlWireError(failure: SqlFailure, sql: string, attr = 'query.query'): WireError {
  switch (failure.kind) {
    case 'refused': {
      const place = failure.at === null ? '' : ` (${formatPlace(sql, failure.at)})`
      return createInvalidInputError(attr, addPropertyHint(failure, sql, `${failure.detail}${place}`))
    }
    case 'failed':
      return wireError(400, 'invalid_query', addPropertyHint(failure, sql), attr)
    case 'too_large':
      return wireError(400, 'query_too_large', failure.detail, attr)
    case 'forbidden':
      if (failure.table !== undefined) return createClosedTableError(failure.table)
      return createPermissionDeniedError(
        'Not allowed: queries may only read the tables events, persons, groups and flag_calls.',
      )
    case 'not_set_up':
      return wireError(503, 'sql_not_set_up', failure.detail)
  }
}

function createClosedTableError(table: ClosableTable): WireError {
  const reason = `The table ${table} requires it. If ${table} is a column here, give it another name.`
  return createMissingScopeError(tableScopes[table], reason)
}

function formatPlace(sql: string, at: number): string {
  const before = sql.slice(0, at).split('\n')
  return `line ${before.length}, col ${before.at(-1)!.length + 1}`
}
