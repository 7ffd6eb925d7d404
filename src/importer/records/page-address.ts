// What the address of a page says: the properties that live events have too, so that one filter finds both.
// Source: docs/wire/import.md §1.1 to §1.7.

import type { JsonObject } from '#core/json.ts'
import { put } from './record-fields.ts'

/** Parts that a source names in fields of its own are left to those. */
export interface AddressParts {
  readonly host: boolean
  readonly path: boolean
}

/**
 * Sets `$current_url`, and `$host` and `$pathname` where they are wanted. An address that cannot be read, such as a path
 * alone, is kept as it is and gives no parts.
 */
export function putAddress(properties: JsonObject, url: string | null, parts: AddressParts): void {
  if (url === null) return
  put(properties, '$current_url', url)
  const address = URL.parse(url)
  if (address === null) return
  if (parts.host) put(properties, '$host', address.host)
  if (parts.path) put(properties, '$pathname', address.pathname)
}
