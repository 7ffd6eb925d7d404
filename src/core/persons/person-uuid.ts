// A person's uuid derives from its distinct id, so that every worker makes the same one.

import { hash } from 'node:crypto'

/** Source: docs/wire/ingestion.md 6.3. */
const personNamespace = Buffer.from('932979b465c3442484670b66ec27bc22', 'hex')

/** UUIDv5 of `<project id>:<distinct id>`. Source: docs/wire/ingestion.md 6.3; vectors. */
export function personUuid(projectId: number, distinctId: string): string {
  return uuidV5(personNamespace, `${projectId}:${distinctId}`)
}

/** UUIDv5 of a name, RFC 9562. */
export function uuidV5(namespace: Buffer, name: string): string {
  const hex = hash('sha1', Buffer.concat([namespace, Buffer.from(name)]), 'hex')
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
