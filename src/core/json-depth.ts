// Measures how deep JSON text nests without parsing it, so that recursive code (a reviver, JSON.stringify, a validator)
// never gets a text that overflows the stack.

const quote = 0x22
const backslash = 0x5c
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
