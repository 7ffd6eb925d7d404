// SQL that people write, over views of one project (docs/decisions/0052): `events`, `persons`, `groups`, `flag_calls`.

import type { JsonObject } from '#core/json.ts'
import type { Result } from '#core/result.ts'
import type { SqlRefusal } from '#core/sql/sql-tokens.ts'

export interface SqlQuery {
  readonly projectId: number
  readonly sql: string
  /** For the placeholders. */
  readonly values: JsonObject
  /** Rows of an answer whose query has no limit of its own. */
  readonly defaultRowCount: number
  /** Rows of any answer; there may be more. */
  readonly rowCountMax: number
}

export interface SqlRows {
  readonly columns: readonly string[]
  readonly types: readonly string[]
  /** Each a JSON array with all digits of its numbers. */
  readonly rows: readonly string[]
  /** How many rows the answer could have had, and whether there are more. */
  readonly rowCountMax: number
  readonly hasMore: boolean
}

/** Why a query is not answered although the store works: the query has to change. */
export type SqlFailure =
  | ({ readonly kind: 'refused' } & SqlRefusal)
  /** The engine's own message, without what is inside. */
  | { readonly kind: 'failed'; readonly detail: string }
  /** It reads something else than the views. */
  | { readonly kind: 'forbidden' }
  | { readonly kind: 'too_large'; readonly detail: string }
  /** The store's user may not make the views and their user. */
  | { readonly kind: 'not_set_up'; readonly detail: string }

export interface SqlQueries {
  /**
   * Runs in the project's turn; those who wait are bounded. Sees each identity once, and the persons of today.
   * @throws PortError like `EventQueries`; `MirrorFillingError` for persons and groups while they are copied.
   */
  runSql(query: SqlQuery, signal?: AbortSignal): Promise<Result<SqlRows, SqlFailure>>
  /**
   * Passes a query of a ClickHouse client on, and its answer back as it comes, in the format that the query asks for.
   * @throws PortError, also in the middle of the body, which then ends without its end.
   */
  passSql(query: SqlPassage, signal: AbortSignal): Promise<Result<SqlAnswer, SqlFailure>>
}

export interface SqlPassage {
  readonly projectId: number
  readonly sql: string
  /** Parameters of ClickHouse's HTTP interface: none of them can widen rights. */
  readonly params: readonly (readonly [name: string, value: string])[]
  readonly acceptEncoding: string | null
}

export interface SqlAnswer {
  /** Those that a client reads. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
}
