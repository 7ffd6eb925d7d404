// Entity tags, and whether a client has the answer already: `If-None-Match` against an entity tag, compared weakly, since SDKs echo tags
// verbatim, bare or without the `W/`. Source: docs/wire/evaluation.md 7.1; RFC 9110 13.1.2.

import { createHash } from 'node:crypto'

/** What a tag is made of: 22 characters that change with the contents. */
export function contentHash(contents: string): string {
  return createHash('sha256').update(contents).digest('base64url').slice(0, 22)
}

/** @param ifNoneMatch the header as sent: one tag, several after commas, or `*`. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch === etag) return true
  const wanted = opaqueTag(etag)
  return ifNoneMatch.split(',').some(tag => tag.trim() === '*' || opaqueTag(tag.trim()) === wanted)
}

function opaqueTag(tag: string): string {
  const strong = tag.startsWith('W/') ? tag.slice(2) : tag
  return strong.startsWith('"') && strong.endsWith('"') && strong.length > 1 ? strong.slice(1, -1) : strong
}
