// UUIDs that derive from a name, RFC 9562.

import { hash } from 'node:crypto'

export function uuidV5(namespace: Buffer, name: string): string {
  const hex = hash('sha1', Buffer.concat([namespace, Buffer.from(name)]), 'hex')
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
