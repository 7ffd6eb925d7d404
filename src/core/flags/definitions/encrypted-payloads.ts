// Payloads of flags with `has_encrypted_payloads`: what stands in their place wherever they are not to be seen.
// How they are encrypted is `services/manage/payload-cipher.ts`; which writes keep, seal or refuse them, `services/manage/seal-payloads.ts`.

import { isJsonObject, type JsonObject, type JsonValue, ownValue, setOwn } from '../../json.ts'

/** JSON text, as every payload. Source: PostHog's own marker, docs/wire/evaluation.md 7.3. */
export const redactedPayload = '"********* (encrypted)"'

/** The filters with the marker in the place of every payload that holds something. */
export function redactPayloads(filters: JsonObject): JsonObject {
  const payloads = ownValue(filters, 'payloads')
  if (!holdsPayload(payloads)) return filters
  return withPayloads(filters, isJsonObject(payloads) ? mapPayloads(payloads, () => redactedPayload) : redactedPayload)
}

/** Null and the empty text say that there is no payload. */
export function holdsPayload<T extends JsonValue | undefined>(payload: T): payload is T & NonNullable<T> {
  return payload !== undefined && payload !== null && payload !== ''
}

export function withPayloads(filters: JsonObject, payloads: JsonValue): JsonObject {
  const copy: JsonObject = {}
  for (const key of Object.keys(filters)) setOwn(copy, key, filters[key]!)
  copy.payloads = payloads
  return copy
}

function mapPayloads(payloads: JsonObject, replace: (payload: JsonValue) => JsonValue): JsonObject {
  const mapped: JsonObject = {}
  for (const valueKey of Object.keys(payloads)) {
    const payload = payloads[valueKey]!
    setOwn(mapped, valueKey, holdsPayload(payload) ? replace(payload) : payload)
  }
  return mapped
}
