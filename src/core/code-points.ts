/** The first code points of a text. */
export function truncateToCodePoints(text: string, codePointCountMax: number): string {
  if (text.length <= codePointCountMax) return text
  let end = 0
  for (let count = 0; count < codePointCountMax && end < text.length; count++) {
    end += text.codePointAt(end)! > 0xffff ? 2 : 1
  }
  return text.slice(0, end)
}
