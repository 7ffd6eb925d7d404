/**
 * A copy of a text that was cut out of another one. The part itself would keep the whole text in memory: for example a large
 * request, with an address that must not be remembered.
 */
export function detachSubstring(part: string): string {
  return Buffer.from(part).toString()
}
