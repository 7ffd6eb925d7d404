// Splits a JSON list into the original text of its elements, so that numbers keep their literals.

/** @returns each element on one line; null when the text is no list. */
export function splitJsonList(text: string): string[] | null {
  const open = /^\s*\[/.exec(text)
  if (open === null) return null
  const elements: string[] = []
  let depth = 0
  let from = open[0].length
  // A string is matched as one token, so that brackets in it do not count.
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},]/gs
  tokens.lastIndex = from
  for (let token = tokens.exec(text); token !== null; token = tokens.exec(text)) {
    const mark = token[0]
    if (mark === '{' || mark === '[') depth++
    else if ((mark === ',' || mark === ']') && depth === 0) {
      const element = text.slice(from, token.index).trim()
      if (element !== '') elements.push(removeLineBreaks(element))
      if (mark === ']') return elements
      from = token.index + 1
    } else if (mark === '}' || mark === ']') depth--
  }
  return null
}

/** JSON has line breaks only between its tokens. */
function removeLineBreaks(text: string): string {
  return text.replace(/[\r\n]+/g, ' ')
}
