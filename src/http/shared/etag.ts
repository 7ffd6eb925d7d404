// Entity tags, and whether a client already has the answer. `If-None-Match` is compared weakly, since some SDKs echo tags
// verbatim, and others without quotes or without the `W/`. Source: docs/wire/evaluation.md 7.1; RFC 9110 13.1.2.

import { createHash } from 'node:crypto'

/** The 22 characters inside a tag; they change with the contents. */
export function computeContentHash(contents: string): string {
  return createHash('sha256').update(contents).digest('base64url').slice(0, 22)
}

/** @param ifNoneMatch the header as sent: one tag, several separated by commas, or `*`. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch === etag) return true
  const wanted = stripEtagMarks(etag)
  return ifNoneMatch.split(',').some(tag => tag.trim() === '*' || stripEtagMarks(tag.trim()) === wanted)
}

function stripEtagMarks(tag: string): string {
  const strong = tag.startsWith('W/') ? tag.slice(2) : tag
  return strong.startsWith('"') && strong.endsWith('"') && strong.length > 1 ? strong.slice(1, -1) : strong
}
