// Prepares the payloads of a flag write for storage: encrypts them when the flag says so, and puts back the stored payload
// for each payload that was sent as the redaction marker. `core/flags/definitions/validate-flag.ts` checks the rest of a
// flag.

import { hasPayload, redactedPayload, replacePayloads } from '#core/flags/definitions/encrypted-payloads.ts'
import type { Flag, FlagFields, WritableFlag } from '#core/flags/definitions/flag.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import { readPayloadText } from '#core/flags/evaluation/prepared-outcomes.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, setOwnValue } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { PayloadCipher } from './payload-cipher.ts'

export interface EncryptedFields<T> {
  readonly fields: T
  /** The fields depend on the flag as it was read, so they may only be written onto that version. */
  readonly restsOnStored: boolean
}

/**
 * @param stored the flag to change; null for a new one.
 * @returns the fields to store, or issues for which even a write without validation is refused. Source: ours,
 *   docs/wire/private-api.md §4.
 */
export async function encryptPayloads<T extends FlagFields>(
  cipher: Pick<PayloadCipher, 'seal'>,
  projectId: number,
  stored: Flag | null,
  fields: T,
): Promise<Result<EncryptedFields<T>, FlagIssue[]>> {
  const wasEncrypted = stored?.hasEncryptedPayloads ?? false
  const isEncrypted = fields.hasEncryptedPayloads ?? wasEncrypted
  if (!isEncrypted) return wasEncrypted ? unsealFields(stored!, fields) : preparePlainFields(fields)
  const filters = fields.filters ?? (wasEncrypted ? undefined : stored?.filters)
  const payloads = filters === undefined ? undefined : getOwnValue(filters, 'payloads')
  if (filters === undefined || !hasPayload(payloads))
    return ok({ fields, restsOnStored: dependsOnStoredPayloads(fields) })
  if (!isJsonObject(payloads)) return err([createIssue('filters.payloads', 'invalid', 'Must be an object or null.')])

  const kept = wasEncrypted ? getOwnValue(stored!.filters, 'payloads') : undefined
  const sealed: JsonObject = {}
  let restsOnStored = dependsOnStoredPayloads(fields)
  for (const valueKey of Object.keys(payloads)) {
    const text = readPayloadText(payloads, valueKey)
    const path = `filters.payloads.${valueKey}`
    if (!hasPayload(text)) {
      setOwnValue(sealed, valueKey, text ?? null)
    } else if (text === redactedPayload) {
      const before = isJsonObject(kept) ? getOwnValue(kept, valueKey) : undefined
      if (!hasPayload(before)) return err([createIssue(path, 'invalid_input', nothingStored)])
      setOwnValue(sealed, valueKey, before)
      restsOnStored = true
    } else {
      const outcome = await cipher.seal(text, { projectId, valueKey })
      if (!outcome.ok) return err([createIssue('has_encrypted_payloads', 'invalid_input', outcome.error)])
      setOwnValue(sealed, valueKey, outcome.value)
    }
  }
  return ok({ fields: { ...fields, filters: replacePayloads(filters, sealed) }, restsOnStored })
}

/**
 * Prepares the fields of an earlier version. An encrypted flag stays encrypted, since its earlier payloads may not be
 * shown to the client that restores it. Encrypted payloads of the version are restored unchanged.
 */
export async function encryptRestoredPayloads(
  cipher: Pick<PayloadCipher, 'seal'>,
  flag: Flag,
  fields: WritableFlag,
): Promise<Result<EncryptedFields<WritableFlag>, FlagIssue[]>> {
  if (fields.hasEncryptedPayloads) return ok({ fields, restsOnStored: false })
  if (!flag.hasEncryptedPayloads) return ok({ fields, restsOnStored: true })
  const sealed = await encryptPayloads(cipher, flag.projectId, null, { ...fields, hasEncryptedPayloads: true })
  return sealed.ok ? ok({ fields: sealed.value.fields, restsOnStored: true }) : sealed
}

/**
 * Whether the fields have payloads without saying if they are encrypted, or the reverse. The stored flag then supplies
 * the missing part.
 */
function dependsOnStoredPayloads({ filters, hasEncryptedPayloads }: FlagFields): boolean {
  if (filters === undefined) return hasEncryptedPayloads !== undefined
  return hasEncryptedPayloads === undefined && hasPayload(getOwnValue(filters, 'payloads'))
}

/** Refuses the redaction marker: it refers to a stored encrypted payload, and this flag has none. */
function preparePlainFields<T extends FlagFields>(fields: T): Result<EncryptedFields<T>, FlagIssue[]> {
  const marked = findMarkedPayload(getOwnValue(fields.filters ?? {}, 'payloads'))
  if (marked !== undefined) return err([createIssue(`filters.payloads.${marked}`, 'invalid_input', nothingStored)])
  return ok({ fields, restsOnStored: dependsOnStoredPayloads(fields) })
}

/** The key of a payload that was sent as the redaction marker. */
function findMarkedPayload(payloads: JsonValue | undefined): string | undefined {
  if (!isJsonObject(payloads)) return undefined
  return Object.keys(payloads).find(valueKey => getOwnValue(payloads, valueKey) === redactedPayload)
}

/** The write ends encryption. Stored payloads stay secret, so the write must contain new payloads. */
function unsealFields<T extends FlagFields>(stored: Flag, fields: T): Result<EncryptedFields<T>, FlagIssue[]> {
  const payloads = getOwnValue(fields.filters ?? stored.filters, 'payloads')
  const isKept = fields.filters === undefined && isJsonObject(payloads) && Object.values(payloads).some(hasPayload)
  if (isKept) return err([createIssue('has_encrypted_payloads', 'invalid_input', staysSecret)])
  const marked = findMarkedPayload(payloads)
  if (marked !== undefined) return err([createIssue(`filters.payloads.${marked}`, 'invalid_input', staysSecret)])
  return ok({ fields, restsOnStored: fields.filters === undefined })
}

const nothingStored = 'This placeholder matches no stored encrypted payload: send the payload itself.'
const staysSecret =
  'Encrypted payloads are never returned. To stop encrypting, send `filters` with plain-text payloads.'

function createIssue(path: string, code: FlagIssue['code'], message: string): FlagIssue {
  return { path, code, message }
}
