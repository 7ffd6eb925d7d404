// Ids that follow from what they name, so that every worker and every replay makes the same ones: the person of a
// distinct id, and the reject of a log record.

import { hash } from 'node:crypto'

/** Source: docs/wire/ingestion.md 6.3. */
const personNamespace = Buffer.from('932979b465c3442484670b66ec27bc22', 'hex')
/** Source: ours. */
const rejectNamespace = Buffer.from('5d1c2a0e0b7e4f6c9a415e0d8f6b7c33', 'hex')

/** UUIDv5 of `<project id>:<distinct id>`. Source: docs/wire/ingestion.md 6.3; vectors. */
export function personUuid(projectId: number, distinctId: string): string {
  return uuidV5(personNamespace, `${projectId}:${distinctId}`)
}

/** The id of the reject that a log record becomes; the same in every replay. Source: ours. */
export function rejectUuid(lane: string, offset: number, receivedAtMs: number): string {
  return uuidV5(rejectNamespace, `${lane}:${offset}:${receivedAtMs}`)
}

function uuidV5(namespace: Buffer, name: string): string {
  const hex = hash('sha1', Buffer.concat([namespace, Buffer.from(name)]), 'hex')
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
