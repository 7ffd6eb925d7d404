// Finds which compressions (packings) of precompressed scripts a client accepts.

import type { ScriptCompression } from '#ports/browser-scripts.ts'

/** The compressions that an `Accept-Encoding` accepts, smallest result first. `q=0` excludes one. */
export function listAcceptedCompressions(header: string | string[] | undefined): ScriptCompression[] {
  const refused = /^\s*(?:br|gzip)\s*;\s*q=0(?:\.0*)?\s*$/i
  const offers = String(header ?? '')
    .split(',')
    .filter(offer => !refused.test(offer))
    .map(offer => offer.split(';', 1)[0]!.trim().toLowerCase())
  return (['br', 'gzip'] as const).filter(packing => offers.includes(packing))
}
