/**
 * Copies a substring. Without the copy, V8 keeps the whole original text in memory: for example a large request, with an
 * address that must not be remembered.
 */
export function detachSubstring(part: string): string {
  return Buffer.from(part).toString()
}
