// The rights and settings of the users that run users' SQL, on either kind of server. The SQL does not decide which
// project's rows they see: a policy on each table compares the rows with a header of the request, which only Pennon writes
// (docs/decisions/0052). Queries that also read a pending import job run as a separate user, over separate views
// (docs/decisions/0079) that no other user can name.

/** The header that names the project whose rows a request of these users may see. Without it, every query fails. */
export const projectHeader = 'Pennon-Project'

/** The header that names the import job whose pending rows a request may see. Without it, queries of pending rows fail. */
export const importJobHeader = 'Pennon-Import-Job'

/** Whether a query sees only the visible events, or also the events of a pending import job. */
export type SqlScope = 'visible' | 'job'
export const sqlScopes: readonly SqlScope[] = ['visible', 'job']

/** The database that contains only the views of a scope. */
export function formatViewsDatabaseName(database: string, scope: SqlScope = 'visible'): string {
  return scope === 'job' ? `${database}_sql_job` : `${database}_sql`
}

interface Login {
  readonly username: string
  readonly password: string
}

/** The user that runs the SQL of a scope. */
export function buildSqlUserLogin({ username, password }: Login, scope: SqlScope): Login {
  return { username: scope === 'job' ? `${username}_job` : username, password }
}

/** System tables from which drivers list tables; each shows a user only the tables that the user may read. */
export const describedBy = ['INFORMATION_SCHEMA.*', 'information_schema.*', 'system.parts']

/** The user as which the views of a scope read the tables. Its password is unknown to all. */
export function formatViewsUserName(scope: SqlScope): string {
  return scope === 'job' ? 'pennon_views_job' : 'pennon_views'
}

/**
 * The policy's condition. The engine applies it before the query's own, so that errors cannot reveal rows of other
 * projects.
 */
const isRowOfProject = `project_id = toUInt32(getClientHTTPHeader('${projectHeader}'))`
const isRowOfJob = `${isRowOfProject} AND import_partition = toUInt32(getClientHTTPHeader('${importJobHeader}'))`

/** The policies of the tables that have rows of several projects, by the name of the table. */
export function buildRowPolicies(scope: SqlScope): Readonly<Record<string, string>> {
  const tables = ['events', 'person_distinct_id_overrides', 'deduplicated_flag_calls', 'persons', 'groups']
  const ofProject = Object.fromEntries(tables.map(table => [table, isRowOfProject]))
  return scope === 'job' ? { ...ofProject, events_pending: isRowOfJob } : ofProject
}

/** The tables that the views of a scope read. */
export function listTablesReadByViews(scope: SqlScope): string[] {
  return [...Object.keys(buildRowPolicies(scope)), 'subject_mirror_fill']
}

/**
 * Settings that make answers correct and limit queries. A client may send the same values but no others, since `readonly` 1
 * refuses every change.
 */
export function buildSqlUserSettings(queryTimeoutSeconds: number, scope: SqlScope = 'visible') {
  return {
    readonly: 1,
    allow_ddl: 0,
    allow_get_client_http_header: 1,
    max_execution_time: queryTimeoutSeconds,
    timeout_overflow_mode: 'throw',
    max_query_size: 262_144,
    cancel_http_readonly_queries_on_client_close: 1,
    send_progress_in_http_headers: 1,
    do_not_merge_across_partitions_select_final: 0,
    enable_automatic_decision_for_merging_across_partitions_for_final: 0,
    defer_partition_pruning_after_final: 1,
    optimize_move_to_prewhere_if_final: 0,
    // Applies the policy before FINAL: otherwise a later copy in another pending job, which it leaves out, would hide this
    // job's copy.
    ...(scope === 'job' && { apply_row_policy_after_final: 0 }),
    // The query cache is off, since all projects would share it.
    use_query_cache: 0,
    use_query_condition_cache: 0,
    allow_introspection_functions: 0,
    enable_http_compression: 1, // for clients that ask for it
    session_timezone: 'UTC',
    date_time_output_format: 'simple',
    // 64-bit numbers and decimals are written as JSON numbers, with all their digits.
    output_format_json_quote_64bit_integers: 0,
    output_format_json_quote_decimals: 0,
    output_format_json_quote_denormals: 0,
  }
}
