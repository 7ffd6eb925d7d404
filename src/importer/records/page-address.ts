// Splits page URLs into the properties that live events have, so that one filter matches both.
// Source: docs/wire/import.md §1.1 to §1.7.

import type { JsonObject } from '#core/json.ts'
import { putProperty } from './record-fields.ts'

/** Which parts to set; false for parts that the source has in separate fields. */
export interface AddressParts {
  readonly host: boolean
  readonly path: boolean
}

/**
 * Sets `$current_url`, and the wanted parts `$host` and `$pathname`. A text that is no absolute URL, such as a path, is kept
 * in `$current_url` without parts.
 */
export function putAddress(properties: JsonObject, url: string | null, parts: AddressParts): void {
  if (url === null) return
  putProperty(properties, '$current_url', url)
  const address = URL.parse(url)
  if (address === null) return
  if (parts.host) putProperty(properties, '$host', address.host)
  if (parts.path) putProperty(properties, '$pathname', address.pathname)
}
