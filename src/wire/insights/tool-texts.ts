// Answers of the tools that agents call, as text: a table of rows, and lists of names and values. Any client chooses
// names and values, so texts that would look like another row or name are written as JSON.
// Source: PostHog's formats of `execute_sql` and `read_taxonomy`; the quoting is ours.

import Type from 'typebox'
import type { EventName, PropertyName, PropertyValues } from '#core/capture/event-and-property-names.ts'
import { type JsonValue, parseJson } from '#core/json.ts'

export const toolAnswerSchema = Type.Object({
  success: Type.Literal(true, { description: 'Tool errors have `success: false` in addition to the usual fields.' }),
  content: Type.String({ description: 'Text for the language model.' }),
  structured_content: Type.Optional(
    Type.Object({}, { description: 'The request, and whether the result is complete.' }),
  ),
})

/** As in PostHog. */
const cellCharsMax = 500
const cutMark = '...truncated'
const nullMark = '(null)'

/** Lines of a table: cells between `|`. Long objects and lists, also those in texts, are truncated if `truncatesValues`. */
export class TableLines {
  readonly #truncatesValues: boolean
  #cutCount = 0

  constructor({ truncatesValues }: { readonly truncatesValues: boolean }) {
    this.#truncatesValues = truncatesValues
  }

  /** How many cells were truncated. */
  get cutCount(): number {
    return this.#cutCount
  }

  /** @param rowJson a JSON list, whose numbers keep all their digits. */
  lineOf(rowJson: string): string {
    return (parseJson(rowJson) as JsonValue[]).map(value => this.#cell(value)).join('|')
  }

  #cell(value: JsonValue): string {
    if (value === null) return nullMark
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    if (this.#truncatesValues && text.length > cellCharsMax && /^[[{]/.test(text)) {
      this.#cutCount++
      return quoteText(`${text.slice(0, cellCharsMax).toWellFormed()}${cutMark}`)
    }
    return typeof value === 'string' ? quoteText(text) : text
  }
}

/** The text itself, or as JSON if it is ambiguous. */
function quoteText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  return text === nullMark || /^"|[|\u0000-\u001f\u007f\u2028\u2029]/.test(text) ? JSON.stringify(text) : text
}

/** A name between backticks. */
function quoteName(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  return /[`\u0000-\u001f\u007f\u2028\u2029]/.test(name) ? JSON.stringify(name) : `\`${name}\``
}

/** @param next the offset of the names that follow; null when there are none. */
export function formatEventsText(events: readonly EventName[], next: number | null): string {
  if (events.length === 0) return 'events: none.'
  const lines = ['events:', ...events.map(({ name }) => `- ${quoteName(name)}`)]
  if (next !== null) lines.push('', `More events are available: use offset ${next}.`)
  return lines.join('\n')
}

/** @param of what the properties belong to, in words that fit into the sentence. */
export function formatPropertiesText(
  properties: readonly PropertyName[],
  { count, of }: { readonly count: number; readonly of: string },
): string {
  const lines = properties.map(
    ({ name, type }) => `- ${quoteName(name)} (${type ?? 'several types, lists or objects'})`,
  )
  const left = count - properties.length
  return [
    'properties:',
    ...lines,
    '',
    ...(left > 0 ? [`${left} more not shown.`] : []),
    `These are the properties of ${of}: rarer ones may be missing.`,
  ].join('\n')
}

/** @param of what the values belong to, in words that fit into the sentence. */
export function formatValuesText({ results, valueCount, isSample }: PropertyValues, of: string): string {
  if (results.length === 0) return 'There are no values of up to 1,000 characters.'
  const left = valueCount - results.length
  const more = left === 0 ? '' : ` and ${left} more distinct ${left === 1 ? 'value' : 'values'}`
  const sampled = isSample ? `\n\nOnly ${of} were examined: rarer values may be missing.` : ''
  return `${results.map(({ valueJson }) => valueJson).join(', ')}${more}${sampled}`
}
