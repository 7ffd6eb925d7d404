// Reads a table of persons that people exported elsewhere: finds the column that names them, and its ids. Works in
// steps, since a table of a few mebibytes may have a million cells.

import { type CsvDelimiter, csvDelimiters, readQuotedText } from '#core/csv.ts'
import type { MemberIds } from '#core/flags/evaluation/member-ids.ts'
import { err, ok, type Result } from '#core/result.ts'

/** The most rows with an id in a table; clients send a larger table in several requests. */
export const tableRowsMax = 100_000
/** The most characters of a cell, more than any id of a person can have. */
const cellCharsMax = 10_000
const columnsMax = 1_000
/** How much is read in a step. */
const perStep = { cells: 256, chars: 128 * 1024 }

/**
 * The kinds of ids by column header, the most specific first: a `uuid` column next to a column of another kind may hold
 * uuids of events. Headers are in lower case, without blanks, dots, hyphens and underscores: `Person .id` is one of
 * PostHog's. `uuid` is the header in our own export of persons.
 */
const kindOfHead: ReadonlyMap<string, MemberIds['kind']> = new Map([
  ['personid', 'person'],
  ['personuuid', 'person'],
  ['distinctid', 'distinct_id'],
  ['uuid', 'person'],
])
const headNames = [...kindOfHead.keys()]
/** Excel names the separator in a first line. */
const separatorLine = /^sep=([,;\t|])(?:\r\n|\r|\n|$)/i
const separatorLineCharsMax = 10

/**
 * Reads RFC 4180, with or without a header. A column whose header is `person_id`, `distinct_id` or `uuid` (in any
 * spelling) holds the ids. The separator is named by a first line such as `sep=;`, or else taken from the header. A
 * single column without such a header holds ids from its first row on; an unknown header is therefore reported as an id
 * without a person. Empty rows are skipped.
 * @returns the ids as written, trimmed; or a sentence about what cannot be read.
 */
export function* readMemberTable(text: string): Generator<undefined, Result<MemberIds, string>> {
  let at = text.startsWith('\ufeff') ? 1 : 0
  const [line, said] = separatorLine.exec(text.slice(at, at + separatorLineCharsMax)) ?? []
  at += line?.length ?? 0
  /** Starts at 1; empty rows count. */
  let rowNumber = line === undefined ? 1 : 2
  const delimiter = (said as CsvDelimiter | undefined) ?? findDelimiter(text.slice(at, at + headCharsMax))
  const quoting = { end: text.length, delimiter, escapes: 'none', charsMax: cellCharsMax } as const
  const cellEnd = new RegExp(`[${delimiter}\\r\\n]`, 'g')
  const refuse = (what: string) => err(`Row ${rowNumber} ${what}`)
  const ids: string[] = []
  let head: Head | null = null
  let cells: string[] = []
  for (let [cellCount, stepAt] = [0, at]; at < text.length; ) {
    if (cells.length >= columnsMax) return refuse(`has more than ${columnsMax} columns.`)
    const quoted = text[at] === '"' ? readQuotedText(text, at, quoting) : null
    const from = quoted?.next ?? at
    cellEnd.lastIndex = from
    const end = cellEnd.test(text) ? cellEnd.lastIndex - 1 : text.length
    if (quoted?.fault === 'unclosed') return refuse('is malformed: unmatched quotation mark.')
    if (quoted?.fault === 'too_long' || (quoted === null && end - from > cellCharsMax))
      return refuse(`has a cell of more than ${cellCharsMax} characters.`)
    if (quoted !== null && end > from) return refuse('is malformed: text after a closing quotation mark.')
    cells.push((quoted?.text ?? text.slice(from, end)).trim())
    at = end + 1
    if (text[end] !== delimiter || at === text.length) {
      if (text[end] === '\r' && text[at] === '\n') at++
      if (cells.some(cell => cell !== '')) {
        const found: Head | null = head === null && ids.length === 0 ? findHead(cells) : null
        if (found !== null) head = found
        else if (head === null && cells.length > 1) {
          return refuse(
            `has ${cells.length} columns, and the header row has no column distinct_id or person_id. ` +
              'Put ids that contain a comma in quotation marks.',
          )
        } else if (ids.length >= tableRowsMax) return refuse(`exceeds the limit of ${tableRowsMax} ids per request.`)
        else ids.push(cells[head?.column ?? 0] ?? '')
      }
      cells = []
      rowNumber++
    }
    if (++cellCount % perStep.cells > 0 && at - stepAt < perStep.chars) continue
    stepAt = at
    yield
  }
  return ok({ kind: head?.kind ?? 'any', ids })
}

interface Head {
  readonly column: number
  readonly kind: MemberIds['kind']
}

function findHead(cells: readonly string[]): Head | null {
  const heads = cells.map(normalizeHead)
  const name = headNames.find(name => heads.includes(name))
  return name === undefined ? null : { column: heads.indexOf(name), kind: kindOfHead.get(name)! }
}

/** What separates the columns of a header that names ids; a comma when the text does not begin with such a header. */
function findDelimiter(text: string): CsvDelimiter {
  const head = text.trimStart().split(/[\r\n]/, 1)[0]!
  const splitHead = (separator: string) => head.split(separator).map(cell => normalizeHead(cell.replaceAll('"', '')))
  return csvDelimiters.find(separator => splitHead(separator).some(cell => kindOfHead.has(cell))) ?? ','
}

/** The separator is searched for only in a header of at most this many characters. */
const headCharsMax = 100_000

function normalizeHead(head: string): string {
  return head.length > 40 ? head : head.toLowerCase().replaceAll(/[\s._-]/g, '')
}
