// SQL written by users, over views of one project (docs/decisions/0052): `events`, `persons`, `groups`, `flag_calls`.

import type { JsonObject } from '#core/json.ts'
import type { Result } from '#core/result.ts'
import type { SqlRefusal } from '#core/sql/sql-tokens.ts'
import type { EventScope } from './event-queries.ts'

export interface SqlQuery extends EventScope {
  readonly sql: string
  /** The values of the placeholders. */
  readonly values: JsonObject
  /** Maximum rows of an answer whose query has no limit. */
  readonly defaultRowCount: number
  /** Maximum rows of any answer; more may exist. */
  readonly rowCountMax: number
  /** Tables that the caller may not read; a query that may read one of them is `forbidden`. */
  readonly closedTables: readonly ClosableTable[]
}

export type ClosableTable = 'persons' | 'groups'

export interface SqlRows {
  readonly columns: readonly string[]
  readonly types: readonly string[]
  /** Each row is the text of a JSON array whose numbers have all their digits. */
  readonly rows: readonly string[]
  /** The row limit that applied, and whether there are more rows. */
  readonly rowCountMax: number
  readonly hasMore: boolean
}

/** Why a query is not answered although the store works: the query must change. */
export type SqlFailure =
  | ({ readonly kind: 'refused' } & SqlRefusal)
  /** The engine's own message, without internal details. */
  | { readonly kind: 'failed'; readonly detail: string }
  /** `table` is the table that needs another scope; it is absent if no scope allows reading the table. */
  | { readonly kind: 'forbidden'; readonly table?: ClosableTable }
  | { readonly kind: 'too_large'; readonly detail: string }
  /** The store's user lacks the rights to create the views, or to create the user that reads them. */
  | { readonly kind: 'not_set_up'; readonly detail: string }

export interface SqlQueries {
  /**
   * Runs in the project's queue, whose length is limited. Returns each identity once, and current persons.
   * @throws PortError like `EventQueries`; `MirrorFillingError` for persons and groups while they are copied.
   */
  runSql(query: SqlQuery, signal?: AbortSignal): Promise<Result<SqlRows, SqlFailure>>
  /**
   * Forwards a query of a ClickHouse client, and streams its answer back in the format that the query requests.
   * @throws PortError, also in the middle of the body, which then ends early.
   */
  forwardSql(query: ForwardedSqlQuery, signal: AbortSignal): Promise<Result<SqlAnswer, SqlFailure>>
}

export interface ForwardedSqlQuery {
  readonly projectId: number
  readonly sql: string
  /** Parameters of ClickHouse's HTTP interface, none of which can extend access rights. */
  readonly params: readonly (readonly [name: string, value: string])[]
  readonly acceptEncoding: string | null
}

export interface SqlAnswer {
  /** The headers that clients read. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
}
