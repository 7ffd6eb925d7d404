// Decides which schema of a database has our tables. A separate schema isolates them from other applications.

/** The default name. */
const ownSchema = 'pennon'
const rolePath = '"$user",public'

/** What any role that may connect can see of a schema. */
export interface VisibleSchema {
  readonly schema: string
  /** All tables, views and sequences except those of extensions. */
  readonly tables: readonly string[]
}

export type SchemaChoice =
  /** `isMade`: the schema exists. `hasState`: it has our tables. */
  { readonly schema: string; readonly isMade: boolean; readonly hasState: boolean } | { readonly refusal: string }

/**
 * Adds a search path to the URL, so that its sessions find our tables by their bare names.
 * @param schema PENNON_DATABASE_SCHEMA; null for `pennon` followed by the role's own path, where a state may have been
 * created under another setting. A `search_path` in the URL's own `options` stays as it is.
 */
export function addSearchPath(url: string, schema: string | null): string {
  const place = new URL(url)
  const given = place.searchParams.get('options') ?? ''
  if (given.includes('search_path')) return url
  const path = schema === null ? `${ownSchema},${rolePath}` : `"${schema}"`
  place.searchParams.set('options', `${given} -c search_path=${path}`.trim())
  return place.href
}

/**
 * Decides which schema to use, from what exists, before anything is created.
 * @param path `search_path` of the session.
 * @param current `current_schema()`; null when no schema of the path exists.
 * @param found the existing schemas of the path.
 */
export function chooseSchema(path: string, current: string | null, found: readonly VisibleSchema[]): SchemaChoice {
  const [first = ''] = path.split(',').map(name => name.trim().replace(/^"(.*)"$/, '$1'))
  // The wanted schema is the first of the search path, also if the URL sets the path.
  const wanted = first === '$user' ? (current ?? 'public') : first
  const there = found.find(({ schema }) => schema === wanted)
  if (there !== undefined && hasStateTables(there.tables)) return { schema: wanted, isMade: true, hasState: true }
  if (there !== undefined && there.tables.length > 0)
    return {
      refusal: `its schema ${wanted} has tables of another program (${formatSomeTables(there.tables)}). Set PENNON_DATABASE_SCHEMA to a schema for Pennon only, or set another database in DATABASE_URL`,
    }
  const other = found.find(({ schema, tables }) => schema !== wanted && hasStateTables(tables))
  if (other === undefined) return { schema: wanted, isMade: there !== undefined, hasState: false }
  // Refuses, since a new state in the wanted schema would hide the existing state.
  return {
    refusal: `its state is in the schema ${other.schema}, not in ${wanted}. Set PENNON_DATABASE_SCHEMA=${other.schema}`,
  }
}

/** Tables that every version of the state has. Other programs may have some of these names, but hardly all of them. */
const stateTables = ['schema_version', 'project', 'personal_api_key', 'log_position', 'chunk_outcome']

function hasStateTables(tables: readonly string[]): boolean {
  return stateTables.every(name => tables.includes(name))
}

function formatSomeTables(tables: readonly string[]): string {
  return tables.length > 3 ? `${tables.slice(0, 3).join(', ')} and ${tables.length - 3} more` : tables.join(', ')
}
