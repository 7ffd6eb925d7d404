// The project's key of a capture request: where it is found, and which texts can be a key.
// Source: docs/wire/ingestion.md 2.4.

import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '../wire-error.ts'
import { type ApiKeyFault, captureErrors, createInvalidApiKeyError } from './capture-errors.ts'
import { isObject, type ParsedObject, readTokenIn, tokenFieldOf } from './event-fields.ts'

/**
 * The key of the envelope; else the key that all items agree on, skipping items that are not objects; else `outside`.
 * @param outside the key outside the body.
 * Source: docs/wire/ingestion.md 2.4; docs/wire/clients.md 1 rule 16 for other places of keys.
 */
export function findRequestToken(
  { items, envelope }: { readonly items: readonly unknown[]; readonly envelope: ParsedObject | null },
  outside: string | null,
): Result<string, WireError> {
  let token = envelope === null ? null : tokenFieldOf(envelope)
  if (token === null) {
    for (const item of items) {
      const own = isObject(item) ? readTokenIn(item) : null
      if (own === null || own === token) continue
      if (token !== null) return err(captureErrors.inconsistentApiKeys)
      token = own
    }
  }
  return checkToken(token ?? outside)
}

/** The trimmed key; an error when it is missing or no project can have it. */
export function checkToken(token: string | null): Result<string, WireError> {
  if (token === null) return err(captureErrors.missingApiKey)
  const trimmed = token.trim()
  const fault = findTokenFault(trimmed)
  return fault === null ? ok(trimmed) : err(createInvalidApiKeyError(fault))
}

const tokenBytesMax = 64

export function findTokenFault(token: string): ApiKeyFault | null {
  if (token === '') return 'empty'
  if (Buffer.byteLength(token) > tokenBytesMax) return 'too_long'
  for (let at = 0; at < token.length; at++) if (token.charCodeAt(at) > 0x7f) return 'not_ascii'
  if (token.startsWith('phx_')) return 'personal_api_key'
  return token.includes('\0') ? 'null_byte' : null
}

/** The key that a refused request seems to have: good enough to keep the reject where its project finds it. */
export function guessToken(root: unknown, items: readonly unknown[]): string | null {
  const ofRoot = isObject(root) ? readTokenIn(root) : null
  if (ofRoot !== null) return ofRoot.trim()
  for (const item of items) {
    const own = isObject(item) ? readTokenIn(item) : null
    if (own !== null) return own.trim()
  }
  return null
}
