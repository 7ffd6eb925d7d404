/**
 * A copy that has its own memory. A part of a text keeps the whole text in memory, which may be a large request with what
 * nobody may remember.
 */
export function ownCopy(part: string): string {
  return Buffer.from(part).toString()
}
