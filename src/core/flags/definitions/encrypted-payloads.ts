// Replaces the payloads of flags with `has_encrypted_payloads` wherever they must not be seen.
// `services/manage/payload-cipher.ts` encrypts them; `services/manage/encrypt-payloads.ts` decides which writes keep, seal
// or refuse them.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, setOwnValue } from '../../json.ts'
import type { Flag } from './flag.ts'

/** The redaction marker: JSON text, like every payload. Source: PostHog's own marker, docs/wire/evaluation.md 7.3. */
export const redactedPayload = '"********* (encrypted)"'

/** The flag's filters as answers show them. */
export function redactEncryptedPayloads(flag: Pick<Flag, 'filters' | 'hasEncryptedPayloads'>): JsonObject {
  return flag.hasEncryptedPayloads ? redactPayloads(flag.filters) : flag.filters
}

/** The filters with the marker in place of every payload that is not empty. */
export function redactPayloads(filters: JsonObject): JsonObject {
  const payloads = getOwnValue(filters, 'payloads')
  if (!hasPayload(payloads)) return filters
  return replacePayloads(
    filters,
    isJsonObject(payloads) ? mapPayloads(payloads, () => redactedPayload) : redactedPayload,
  )
}

/** Null and the empty text are not payloads. */
export function hasPayload<T extends JsonValue | undefined>(payload: T): payload is T & NonNullable<T> {
  return payload !== undefined && payload !== null && payload !== ''
}

export function replacePayloads(filters: JsonObject, payloads: JsonValue): JsonObject {
  const copy: JsonObject = {}
  for (const key of Object.keys(filters)) setOwnValue(copy, key, filters[key]!)
  copy.payloads = payloads
  return copy
}

function mapPayloads(payloads: JsonObject, replace: (payload: JsonValue) => JsonValue): JsonObject {
  const mapped: JsonObject = {}
  for (const valueKey of Object.keys(payloads)) {
    const payload = payloads[valueKey]!
    setOwnValue(mapped, valueKey, hasPayload(payload) ? replace(payload) : payload)
  }
  return mapped
}
