// Which schema of a database has our tables. One of our own keeps them apart from another application's; an instance from
// before there was one has them where its role's path leads, mostly in `public`, and goes on with them there.

/** When no other name is given. */
const ownSchema = 'pennon'
const formerPath = '"$user",public'

/** What the server shows of a schema to anyone who may connect. */
export interface FoundSchema {
  readonly schema: string
  /** Whatever tables, views and sequences are there, but for those of extensions. */
  readonly tables: readonly string[]
}

export type StateSchema =
  /** `isMade`: it is there. `hasState`: with our tables in it. */
  { readonly schema: string; readonly isMade: boolean; readonly hasState: boolean } | { readonly refusal: string }

/**
 * The URL, whose sessions then find our tables by their bare names.
 * @param schema PENNON_DATABASE_SCHEMA; null for `pennon`, or where an earlier instance has them. A `search_path` in
 *   `options` of the URL itself stays as it is.
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
 * Decides before anything is made, from what is there.
 * @param path `search_path` of the session.
 * @param current `current_schema()`; null when no schema of the path exists.
 * @param found the schemas of the path that are there.
 */
export function judgeSchemas(path: string, current: string | null, found: readonly FoundSchema[]): StateSchema {
  const [first = ''] = path.split(',').map(name => name.trim().replace(/^"(.*)"$/, '$1'))
  // A URL with a path of its own, as it leads.
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

/** Tables that every state has had since the first one; other programs have some of these names, hardly all. */
const stateTables = ['schema_version', 'project', 'personal_api_key', 'log_position', 'chunk_outcome']

function isState(tables: readonly string[]): boolean {
  return stateTables.every(name => tables.includes(name))
}

function someOf(tables: readonly string[]): string {
  return tables.length > 3 ? `${tables.slice(0, 3).join(', ')} and ${tables.length - 3} more` : tables.join(', ')
}
