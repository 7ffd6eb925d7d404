// Finds escapes of lone surrogates in JSON text: `JSON.parse` accepts them, but databases and other parsers do not.

const surrogateEscape = /\\u[dD][89a-fA-F]/
const lowSurrogateEscape = /\\u[dD][c-fC-F][0-9a-fA-F]{2}/y

/**
 * Whether valid JSON text holds the escape of a lone UTF-16 surrogate (`"\ud800"`). One native search for text without
 * any surrogate escape; linear otherwise.
 * Source: docs/wire/ingestion.md 2.2.
 */
export function hasLoneSurrogateEscape(json: string): boolean {
  if (!json.includes('\\') || !surrogateEscape.test(json)) return false
  for (let at = json.indexOf('\\'); at !== -1; at = json.indexOf('\\', at)) {
    if (json.charCodeAt(at + 1) !== lowerU) {
      at += 2
      continue
    }
    const unit = Number.parseInt(json.slice(at + 2, at + 6), 16)
    at += 6
    if (unit >= 0xdc00 && unit <= 0xdfff) return true
    if (unit >= 0xd800 && unit <= 0xdbff) {
      lowSurrogateEscape.lastIndex = at
      if (!lowSurrogateEscape.test(json)) return true
      at += 6
    }
  }
  return false
}

const lowerU = 0x75
