// The rights and settings of the user that runs users' SQL, on either kind of server. Which project's rows it sees is
// not in the SQL: a policy on each table compares them with a header of the request, which only Pennon writes
// (docs/decisions/0052).

/** The header that names the project whose rows a request of this user may see. Without it, every query fails. */
export const projectHeader = 'Pennon-Project'

/** The database that contains only the views. */
export function viewsDatabase(database: string): string {
  return `${database}_sql`
}

/** System tables from which drivers list tables: each shows only what its reader may read. */
export const describedBy = ['INFORMATION_SCHEMA.*', 'information_schema.*', 'system.parts']

/** The user as which the views read the tables. Its password is unknown to all. */
export const viewsUser = 'pennon_views'

/** The tables of `viewedTables` that have rows of several projects. */
export const rowsOfProjects = ['events', 'person_distinct_id_overrides', 'deduplicated_flag_calls', 'persons', 'groups']

export const viewedTables = [...rowsOfProjects, 'subject_mirror_fill']

/**
 * The policy: applied to rows before any condition of the query, so that errors cannot reveal rows of other projects.
 */
export const isRowOfProject = `project_id = toUInt32(getClientHTTPHeader('${projectHeader}'))`

/**
 * Settings that make answers correct, bound them, and cannot be changed: `readonly` 1 refuses every change. A client
 * may only repeat the values.
 */
export function analystSettings(queryTimeoutSeconds: number) {
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
    // Caches are shared by all projects.
    use_query_cache: 0,
    use_query_condition_cache: 0,
    allow_introspection_functions: 0,
    enable_http_compression: 1, // for clients that ask for it
    session_timezone: 'UTC',
    date_time_output_format: 'simple',
    // 64-bit numbers and decimals are written with all their digits.
    output_format_json_quote_64bit_integers: 0,
    output_format_json_quote_decimals: 0,
    output_format_json_quote_denormals: 0,
  }
}
