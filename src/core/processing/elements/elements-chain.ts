// Writes the one-line text of the elements under a click from `$elements`. `elements-chain-parse.ts` reads it back.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, toComparableText } from '#core/json.ts'

const textLengthMax = 400
const hrefLengthMax = 2048

/** Sorts upper case next to lower case, the same way as in chains that clients write themselves. */
const byKey = new Intl.Collator('en').compare

/**
 * Elements joined by `;`, innermost first: tag name, `.class` for each class (sorted), `:`, then `key="value"` by key.
 * Source: docs/wire/ingestion.md 6.8; vectors.
 */
export function formatElementsChain(elements: readonly JsonValue[]): string {
  return escapeLoneSurrogates(elements.filter(isJsonObject).map(formatElement).join(';'))
}

function formatElement(element: JsonObject): string {
  const classes = readClasses(element)
  const attributes = new Map<string, string>()
  for (const key of Object.keys(element))
    if (key.startsWith('attr__') && element[key] !== null) attributes.set(key, toComparableText(element[key]!))
  // A list of classes is written as its sorted names, in the same order as the `.class` names.
  if (Array.isArray(getOwnValue(element, 'attr__class'))) attributes.set('attr__class', classes.join(','))
  const text = getOwnValue(element, '$el_text')
  if (typeof text === 'string' && text !== '') attributes.set('text', text.slice(0, textLengthMax))
  const href = getOwnValue(element, 'attr__href')
  if (typeof href === 'string' && href !== '') attributes.set('href', href.slice(0, hrefLengthMax))
  const id = getOwnValue(element, 'attr__id')
  if (id !== undefined && id !== null && id !== '') attributes.set('attr_id', toComparableText(id))
  attributes.set('nth-child', toComparableText(getOwnValue(element, 'nth_child') ?? 0))
  attributes.set('nth-of-type', toComparableText(getOwnValue(element, 'nth_of_type') ?? 0))
  const keys = [...attributes.keys()].sort(byKey)
  const tagName = getOwnValue(element, 'tag_name')
  const tag = typeof tagName === 'string' ? tagName : ''
  const classText = classes.map(name => `.${name.replaceAll('"', '')}`).join('')
  return `${tag}${classText}:${keys.map(key => `${escapeQuotes(key)}="${escapeQuotes(attributes.get(key)!)}"`).join('')}`
}

function readClasses(element: JsonObject): string[] {
  const value = getOwnValue(element, 'attr__class') ?? null
  const classes = Array.isArray(value)
    ? value.map(toComparableText)
    : typeof value === 'string'
      ? value.split(/\s+/)
      : []
  return classes.filter(name => name !== '').sort()
}

function escapeQuotes(text: string): string {
  return text.replaceAll('"', '\\"')
}

/** Writes half characters, which truncating a text may leave behind, as escapes, because stores reject them. */
function escapeLoneSurrogates(text: string): string {
  if (text.isWellFormed()) return text
  return text.replace(/[\ud800-\udfff]/gu, half => `\\u${half.charCodeAt(0).toString(16)}\\`)
}
