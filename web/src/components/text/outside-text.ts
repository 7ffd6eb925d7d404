// How text from outside (keys, names, ids, property values) is shown: as itself, except for characters that cannot be
// seen or that would rearrange what is around them, and without its middle if it is long.

/** A stretch of the text as it is, or the picture of a character that cannot be seen. */
export interface TextPart {
  readonly text: string
  /** The code point that the picture stands for, such as `U+202E`. */
  readonly codePoint?: string
}

export interface OutsideParts {
  readonly parts: readonly TextPart[]
  /** Whether the middle was left out. */
  readonly isTruncated: boolean
}

export interface OutsideOptions {
  /** The most characters that are shown. */
  readonly charsMax?: number
  /** Line breaks stay line breaks, and tabs stay tabs. */
  readonly isMultiline?: boolean
}

const ellipsis = '…'
/** How far from its place the text is truncated to keep a character and its combining marks in one piece. */
const clusterCharsMax = 16

const names: Readonly<Record<number, string>> = {
  1564: 'ALM',
  8203: 'ZWSP',
  8206: 'LRM',
  8207: 'RLM',
  8232: 'LS',
  8233: 'PS',
  8234: 'LRE',
  8235: 'RLE',
  8236: 'PDF',
  8237: 'LRO',
  8238: 'RLO',
  8288: 'WJ',
  8294: 'LRI',
  8295: 'RLI',
  8296: 'FSI',
  8297: 'PDI',
  65279: 'BOM',
}

// Joiners (U+200C, U+200D) are left alone: Persian words and emoji need them.
const invisible =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that are looked for
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]|\p{Surrogate}|^ +| +$/gu

export function showOutsideText(text: string, options: OutsideOptions = {}): OutsideParts {
  const { charsMax = 80, isMultiline = false } = options
  const whole = { parts: [...splitParts(text, isMultiline)], isTruncated: false }
  if (text.length <= charsMax) return whole
  const headChars = findBreak(text, Math.ceil((charsMax - 1) / 2))
  const tailFrom = findBreak(text, text.length - Math.floor((charsMax - 1) / 2))
  const head = splitParts(text.slice(0, headChars), isMultiline)
  const tail = splitParts(text.slice(tailFrom), isMultiline)
  return { parts: [...head, { text: ellipsis }, ...tail], isTruncated: true }
}

/** The same in one string, for titles and labels. */
export function formatOutsideText(text: string, options: OutsideOptions = {}): string {
  return showOutsideText(text, options)
    .parts.map(part => part.text)
    .join('')
}

function* splitParts(text: string, isMultiline: boolean): Generator<TextPart> {
  let shownTo = 0
  for (const { 0: found, index } of text.matchAll(invisible)) {
    if (isMultiline && (found === '\n' || found === '\t')) continue
    if (index > shownTo) yield { text: text.slice(shownTo, index) }
    const code = found.codePointAt(0)!
    yield { text: drawCharacter(code).repeat(code === 0x20 ? found.length : 1), codePoint: formatCodePoint(code) }
    shownTo = index + found.length
  }
  if (shownTo < text.length) yield { text: text.slice(shownTo) }
}

function drawCharacter(code: number): string {
  if (code <= 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x7f) return '␡'
  return `[${names[code] ?? formatCodePoint(code)}]`
}

function formatCodePoint(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

const clusters = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** The start of the user-perceived character at this place, unless it is absurdly long. */
function findBreak(text: string, at: number): number {
  const from = Math.max(0, at - clusterCharsMax)
  const near = clusters.segment(text.slice(from, at + clusterCharsMax)).containing(at - from)
  const start = near === undefined ? at : from + near.index
  if (start > from || from === 0) return start
  return text.codePointAt(at - 1)! > 0xffff ? at - 1 : at
}
