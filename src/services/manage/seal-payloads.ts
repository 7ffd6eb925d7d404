// Payloads of a flag write as they are stored: encrypted when the flag says so, the stored ones where the marker came back.
// Nothing here decides what else a flag may be (`core/flags/definitions/validate-flag.ts`).

import { holdsPayload, redactedPayload, withPayloads } from '#core/flags/definitions/encrypted-payloads.ts'
import type { Flag, FlagFields } from '#core/flags/definitions/flag.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import { payloadText } from '#core/flags/evaluation/compile-flag.ts'
import { isJsonObject, type JsonObject, ownValue, setOwn } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { PayloadCipher } from './payload-cipher.ts'

export interface SealedFields<T> {
  readonly fields: T
  /** Made of what the flag held when it was read: to be written onto that version alone. */
  readonly restsOnStored: boolean
}

/**
 * @param stored the flag that is changed; null for a new one.
 * @returns what cannot be stored as it was sent; validation that is skipped does not skip this.
 * Source: ours, docs/wire/private-api.md §4.
 */
export async function sealPayloads<T extends FlagFields>(
  cipher: Pick<PayloadCipher, 'seal'>,
  projectId: number,
  stored: Flag | null,
  fields: T,
): Promise<Result<SealedFields<T>, FlagIssue[]>> {
  const wasEncrypted = stored?.hasEncryptedPayloads ?? false
  const isEncrypted = fields.hasEncryptedPayloads ?? wasEncrypted
  if (!isEncrypted) return wasEncrypted ? unsealed(stored!, fields) : ok({ fields, restsOnStored: false })
  const filters = fields.filters ?? (wasEncrypted ? undefined : stored?.filters)
  const payloads = filters === undefined ? undefined : ownValue(filters, 'payloads')
  if (filters === undefined || !holdsPayload(payloads)) return ok({ fields, restsOnStored: false })
  if (!isJsonObject(payloads)) return err([issue('filters.payloads', 'invalid', 'Must be an object or null.')])

  const kept = wasEncrypted ? ownValue(stored!.filters, 'payloads') : undefined
  const sealed: JsonObject = {}
  let restsOnStored = fields.filters === undefined
  for (const valueKey of Object.keys(payloads)) {
    const text = payloadText(payloads, valueKey)
    const path = `filters.payloads.${valueKey}`
    if (!holdsPayload(text)) {
      setOwn(sealed, valueKey, text ?? null)
    } else if (text === redactedPayload) {
      const before = isJsonObject(kept) ? ownValue(kept, valueKey) : undefined
      if (!holdsPayload(before)) return err([issue(path, 'invalid_input', nothingStored)])
      setOwn(sealed, valueKey, before)
      restsOnStored = true
    } else {
      const outcome = await cipher.seal(text, { projectId, valueKey })
      if (!outcome.ok) return err([issue('has_encrypted_payloads', 'invalid_input', outcome.error)])
      setOwn(sealed, valueKey, outcome.value)
    }
  }
  return ok({ fields: { ...fields, filters: withPayloads(filters, sealed) }, restsOnStored })
}

/**
 * Fields of an earlier version: a flag that is encrypted stays so, since what it held before is not shown to whoever restores it.
 * Encrypted payloads of the version come back as they are.
 */
export async function sealRestored(
  cipher: Pick<PayloadCipher, 'seal'>,
  flag: Flag,
  fields: Required<FlagFields>,
): Promise<Result<Required<FlagFields>, FlagIssue[]>> {
  if (!flag.hasEncryptedPayloads || fields.hasEncryptedPayloads) return ok(fields)
  const sealed = await sealPayloads(cipher, flag.projectId, null, { ...fields, hasEncryptedPayloads: true })
  return sealed.ok ? ok(sealed.value.fields) : sealed
}

/** The flag is no longer encrypted: what is stored stays secret, so payloads have to come with the write. */
function unsealed<T extends FlagFields>(stored: Flag, fields: T): Result<SealedFields<T>, FlagIssue[]> {
  const payloads = ownValue(fields.filters ?? stored.filters, 'payloads')
  const isKept = fields.filters === undefined && isJsonObject(payloads) && Object.values(payloads).some(holdsPayload)
  if (isKept) return err([issue('has_encrypted_payloads', 'invalid_input', staysSecret)])
  if (!isJsonObject(payloads)) return ok({ fields, restsOnStored: fields.filters === undefined })
  const marked = Object.keys(payloads).find(valueKey => ownValue(payloads, valueKey) === redactedPayload)
  if (marked !== undefined) return err([issue(`filters.payloads.${marked}`, 'invalid_input', staysSecret)])
  return ok({ fields, restsOnStored: fields.filters === undefined })
}

const nothingStored = 'No encrypted payload is stored here that this could stand for; send the payload itself.'
const staysSecret =
  'Encrypted payloads are never shown; to stop encrypting, send `filters` with payloads in plain text.'

function issue(path: string, code: FlagIssue['code'], message: string): FlagIssue {
  return { path, code, message }
}
