// Measures how deep JSON text nests, and whether it holds very many values, without parsing it, so that recursive code (a reviver, JSON.stringify, a validator)
// never gets a text that overflows the stack.

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/** Whether lists and objects nest more than `depthMax` deep. The text need not be valid JSON. */
export function nestsDeeperThan(text: string, depthMax: number): boolean {
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (inString) {
      if (unit === backslash) index++
      else if (unit === quote) inString = false
    } else if (unit === quote) inString = true
    else if (unit === openBracket || unit === openBrace) {
      depth++
      if (depth > depthMax) return true
    } else if (unit === closeBracket || unit === closeBrace) depth--
  }
  return false
}

/** Whether it holds more values than that, each of which takes tens of bytes once it is parsed, however short its text. */
export function holdsMoreValuesThan(text: string, valuesMax: number): boolean {
  // A value is a character at least, and another one separates it from the next.
  if (text.length < 2 * valuesMax) return false
  let values = 1
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit === quote) index = endOfString(text, index)
    else if (unit === comma || unit === openBracket || unit === openBrace) {
      if (++values > valuesMax) return true
    }
  }
  return false
}

/** @returns the index of the quote that ends the string that begins at `start`, or of the end of the text. */
function endOfString(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit === backslash) index++
    else if (unit === quote) return index
  }
  return text.length
}
