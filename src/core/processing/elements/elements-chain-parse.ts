// Reads an `elements_chain`, the one-line text of the elements under a click, from the element itself outwards
// (`elements-chain.ts` writes it). Unreadable text ends the list; nothing is ever thrown.

/** One element. Fields that the element lacks are null; `attributes` has all other keys as sent, including `attr__…`. */
export interface ChainElement {
  readonly tagName: string | null
  readonly text: string | null
  readonly href: string | null
  readonly attrId: string | null
  readonly classes: readonly string[]
  readonly nthChild: number | null
  readonly nthOfType: number | null
  readonly attributes: ReadonlyMap<string, string>
}

/** At most this many elements are read; real pages nest far less deeply. */
const elementCountMax = 500

/**
 * Parses elements joined by `;`. Each has a tag name, `.class` for each class, `:`, then `key="value"` pairs without
 * separators; in values a backslash escapes quotes and backslashes.
 * Source: docs/wire/ingestion.md 6.8.
 */
export function parseElementsChain(chain: string): ChainElement[] {
  const elements: ChainElement[] = []
  let index = 0
  while (index < chain.length && elements.length < elementCountMax) {
    const headEnd = findHeadEnd(chain, index)
    const [tagName, ...classes] = chain.slice(index, headEnd).split('.')
    const attributes = new Map<string, string>()
    index = chain[headEnd] === ':' ? readAttributes(chain, headEnd + 1, attributes) : headEnd
    elements.push(toElement(tagName ?? '', classes, attributes))
    while (index < chain.length && chain[index] !== ';') index++
    index++
  }
  return elements
}

/**
 * Where the tag and class part ends: before the `:` that starts the attributes, or before `;`. A class may contain a colon
 * (`md:flex`), so the last colon before the first `key="` counts.
 */
function findHeadEnd(chain: string, start: number): number {
  let end = start
  while (end < chain.length && chain[end] !== ';' && chain[end] !== '"') end++
  if (chain[end] !== '"') return chain[end - 1] === ':' && end > start ? end - 1 : end
  const colon = chain.lastIndexOf(':', end)
  return colon < start ? end : colon
}

function readAttributes(chain: string, start: number, into: Map<string, string>): number {
  let index = start
  while (index < chain.length && chain[index] !== ';') {
    const equals = chain.indexOf('="', index)
    if (equals === -1) return chain.length
    const key = chain.slice(index, equals)
    let value = ''
    index = equals + 2
    while (index < chain.length && chain[index] !== '"') {
      if (chain[index] === '\\' && index + 1 < chain.length) index++
      value += chain[index]
      index++
    }
    index++
    into.set(key, value)
  }
  return index
}

function toElement(tagName: string, classes: readonly string[], all: ReadonlyMap<string, string>): ChainElement {
  const attributes = new Map<string, string>()
  for (const [key, value] of all) if (!namedKeys.has(key)) attributes.set(key, value)
  return {
    tagName: tagName === '' ? null : tagName,
    text: all.get('text') ?? null,
    href: all.get('href') ?? null,
    attrId: all.get('attr_id') ?? null,
    classes: classes.filter(name => name !== ''),
    nthChild: parseWholeNumber(all.get('nth-child')),
    nthOfType: parseWholeNumber(all.get('nth-of-type')),
    attributes,
  }
}

const namedKeys = new Set(['text', 'href', 'attr_id', 'nth-child', 'nth-of-type'])

function parseWholeNumber(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null
}
