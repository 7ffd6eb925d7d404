// Ids for items without stored ids, derived from their names: the same name has the same id in every process.

import { hash } from 'node:crypto'

/** A UUID (version 8) derived from any text. */
export function deriveUuid(text: string): string {
  const hex = hash('sha256', text, 'hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
