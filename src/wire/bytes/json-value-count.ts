// Counts the values of JSON text before it is parsed: a body of a few megabytes can have a million of them, and parsing
// those would hold the event loop for longer than any request may.

/**
 * Whether the text has more than `valuesMax` separators (commas and opening brackets) outside strings, which bounds its
 * values and its depth. One pass that stops as soon as it knows; exact for valid JSON, and never costly for other text.
 */
export function hasMoreValuesThan(text: string, valuesMax: number): boolean {
  let count = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === quote) inString = !inString
    else if (inString) {
      if (unit === backslash) at++
    } else if ((unit === comma || unit === openBracket || unit === openBrace) && ++count > valuesMax) return true
  }
  return false
}

const quote = 0x22
const comma = 0x2c
const openBracket = 0x5b
const backslash = 0x5c
const openBrace = 0x7b
