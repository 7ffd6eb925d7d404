// Explains to users who write a property as in HogQL (`properties.price`) how to read it here.

/** Only matches at the beginning of a name: trying each letter of a long name would take minutes. */
const path = String.raw`(?<![\w$.])((?:[\w$]+\.)*)(person_properties|properties)`
const inMessage = new RegExp(`['\`]${path}\\.([^'\`]+)['\`]`)
const beforePlace = new RegExp(`${path}\\.$`)
const inBrackets = new RegExp(`${path}\\s*\\[\\s*'([^'\\\\]+)'\\s*\\]`)

/** @returns the error's message, followed by how to read a property if the error is about a property. */
export function addPropertyHint(
  error: { readonly detail: string; readonly at?: number | null },
  sql: string,
  said = error.detail,
): string {
  const hint = findPropertyHint({ detail: error.detail, at: error.at ?? null }, sql)
  return hint === null ? said : `${said}${said.endsWith('.') ? '' : '.'} ${hint}`
}

/**
 * @param error the refusal, and the position in the SQL that it is about, in UTF-16 units.
 * @returns null for an error about something else.
 */
export function findPropertyHint(
  error: { readonly detail: string; readonly at: number | null },
  sql: string,
): string | null {
  const found = findPropertyInError(error, sql)
  if (found === null) return null
  const [table, column, name] = found
  const keys = name.split('.').map(key => `'${key}'`)
  const isPerson = column === 'person_properties' || table.endsWith('person.')
  const of = `${table.replace(/person\.$/, '')}${isPerson ? 'person_properties' : 'properties'}`
  const read = (as: string) => `JSONExtract${as}(${of}, ${keys.join(', ')})`
  const today = isPerson
    ? ' These are the properties at the time of the event; for current ones, join persons by person_id.'
    : ''
  return `Properties must be read with functions: ${read('String')}, or for numbers ${read('Float')}.${today}`
}

type Found = readonly [table: string, column: string, name: string]

function findPropertyInError(
  { detail, at }: { readonly detail: string; readonly at: number | null },
  sql: string,
): Found | null {
  const named = inMessage.exec(detail)
  if (named !== null) return [named[1]!, named[2]!, named[3]!]
  if (/'arrayElement'/.test(detail)) {
    const bracketed = inBrackets.exec(sql)
    if (bracketed !== null) return [bracketed[1]!, bracketed[2]!, bracketed[3]!]
  }
  const before = at === null ? null : beforePlace.exec(sql.slice(0, at))
  const name = at === null ? null : /^[\w$]+/.exec(sql.slice(at))
  return before === null || name === null ? null : [before[1]!, before[2]!, name[0]]
}
