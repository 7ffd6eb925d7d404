// Decides which schema of a database has our tables. A schema of our own keeps them apart from other applications;
// older instances have them in the first schema of their role's path, mostly `public`, and continue there.

/** The default name. */
const ownSchema = 'pennon'
const formerPath = '"$user",public'

/** What any role that may connect can see of a schema. */
export interface FoundSchema {
  readonly schema: string
  /** All tables, views and sequences except those of extensions. */
  readonly tables: readonly string[]
}

export type StateSchema =
  /** `isMade`: the schema exists. `hasState`: it has our tables. */
  { readonly schema: string; readonly isMade: boolean; readonly hasState: boolean } | { readonly refusal: string }

/**
 * Adds a search path to the URL, so that its sessions find our tables by their bare names.
 * @param schema PENNON_DATABASE_SCHEMA; null for `pennon`, or the schema in which an earlier instance has its tables. A
 *   `search_path` in the URL's own `options` stays as it is.
 */
export function withStateSchema(url: string, schema: string | null): string {
  const place = new URL(url)
  const given = place.searchParams.get('options') ?? ''
  if (given.includes('search_path')) return url
  const path = schema === null ? `${ownSchema},${formerPath}` : `"${schema}"`
  place.searchParams.set('options', `${given} -c search_path=${path}`.trim())
  return place.href
}

/**
 * Decides from what exists, before anything is created.
 * @param path `search_path` of the session.
 * @param current `current_schema()`; null when no schema of the path exists.
 * @param found the existing schemas of the path.
 */
export function judgeSchemas(path: string, current: string | null, found: readonly FoundSchema[]): StateSchema {
  const [first = ''] = path.split(',').map(name => name.trim().replace(/^"(.*)"$/, '$1'))
  // A URL with its own path is followed.
  const wanted = first === '$user' ? (current ?? 'public') : first
  const there = found.find(({ schema }) => schema === wanted)
  if (there !== undefined && isState(there.tables)) return { schema: wanted, isMade: true, hasState: true }
  if (there !== undefined && there.tables.length > 0)
    return {
      refusal: `its schema ${wanted} has tables of another program (${someOf(there.tables)}). Set PENNON_DATABASE_SCHEMA to a schema of Pennon's own, or name another database in DATABASE_URL`,
    }
  const former = found.find(({ schema, tables }) => schema !== wanted && isState(tables))
  if (former === undefined) return { schema: wanted, isMade: there !== undefined, hasState: false }
  if (there === undefined) return { schema: former.schema, isMade: true, hasState: true }
  return {
    refusal: `its state is in the schema ${former.schema}, and the schema ${wanted} is there too, but empty. Drop that, or set PENNON_DATABASE_SCHEMA=${former.schema}`,
  }
}

/** Tables that every version of the state has. Other programs may have some of these names, but hardly all. */
const stateTables = ['schema_version', 'project', 'personal_api_key', 'log_position', 'chunk_outcome']

function isState(tables: readonly string[]): boolean {
  return stateTables.every(name => tables.includes(name))
}

function someOf(tables: readonly string[]): string {
  return tables.length > 3 ? `${tables.slice(0, 3).join(', ')} and ${tables.length - 3} more` : tables.join(', ')
}
