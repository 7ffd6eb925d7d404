// Which of the precompressed packings a client accepts.

import type { ScriptPacking } from '#ports/browser-scripts.ts'

/** The packings that an `Accept-Encoding` accepts, smallest first. `q=0` refuses one. */
export function listAcceptedPackings(header: string | string[] | undefined): ScriptPacking[] {
  const refused = /^\s*(?:br|gzip)\s*;\s*q=0(?:\.0*)?\s*$/i
  const offers = String(header ?? '')
    .split(',')
    .filter(offer => !refused.test(offer))
    .map(offer => offer.split(';', 1)[0]!.trim().toLowerCase())
  return (['br', 'gzip'] as const).filter(packing => offers.includes(packing))
}
