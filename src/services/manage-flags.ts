// Flags as the private API writes them: validated, normalised, versioned, and served by this front before the answer.
// What may be stored is decided in `core/flags/validate-flag.ts`; who may write, before we are called.

import type { Flag, FlagFields } from '#core/flags/flag.ts'
import type { FlagIssue } from '#core/flags/flag-issue.ts'
import { normalizeFilters } from '#core/flags/normalize-filters.ts'
import { type FlagToValidate, validateFlag } from '#core/flags/validate-flag.ts'
import type { JsonValue } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { FlagPatch, FlagStore, NewFlag, Written } from '#ports/management-store.ts'
import type { PayloadCipher } from './payload-cipher.ts'
import { sealPayloads } from './seal-payloads.ts'

export interface ManageFlagsDeps {
  readonly management: FlagStore
  readonly definitionsReady: (revision: number) => Promise<void>
  readonly clock: Clock
  readonly payloadCipher: Pick<PayloadCipher, 'seal'>
}

export interface WriteOptions {
  /** The flag's own percentage in definitions older than `filters.groups`. */
  readonly legacyRolloutPercentage?: JsonValue
  /** Store it whatever the validation says; what it says comes back as `warnings`. */
  readonly skipValidation: boolean
  /** Label of the key that writes. */
  readonly by: string
}

export interface WrittenFlag {
  readonly flag: Flag
  /** What validation would have refused; empty unless it was skipped. */
  readonly warnings: readonly FlagIssue[]
}

export interface InvalidFlag {
  readonly kind: 'invalid'
  readonly issues: readonly FlagIssue[]
}

export type FlagRefusal =
  | InvalidFlag
  | { readonly kind: 'not_found' }
  | { readonly kind: 'key_taken' }
  | { readonly kind: 'stale_version'; readonly sentVersion: number; readonly current: Flag }

const flagDefaults = {
  name: '',
  filters: {},
  active: true,
  ensureExperienceContinuity: false,
  bucketingIdentifier: null,
  evaluationRuntime: 'all',
  evaluationContexts: [],
  hasEncryptedPayloads: false,
  isRemoteConfiguration: false,
  tags: [],
} as const

/** Without filters the flag is on for everyone: the one set of a legacy definition. */
export async function createFlag(
  deps: ManageFlagsDeps,
  projectId: number,
  fields: Omit<FlagFields, 'deleted'> & { readonly key: string },
  options: WriteOptions,
): Promise<Result<WrittenFlag, FlagRefusal>> {
  const prepared = prepareNewFlag(projectId, fields, options, deps.clock.nowMs())
  if (!prepared.ok) return prepared
  const sealed = await sealPayloads(deps.payloadCipher, projectId, null, prepared.value.flag)
  if (!sealed.ok) return err({ kind: 'invalid', issues: sealed.error })
  const written = await deps.management.createFlag(sealed.value.fields)
  if (!written.ok) return err({ kind: 'key_taken' })
  return serve(deps, written.value, prepared.value.warnings)
}

/** A flag as the store takes it, with defaults and checked: also for what is stored together with a flag of its own. */
export function prepareNewFlag(
  projectId: number,
  fields: Omit<FlagFields, 'deleted'> & { readonly key: string },
  options: WriteOptions,
  nowMs: number,
): Result<{ readonly flag: NewFlag; readonly warnings: readonly FlagIssue[] }, InvalidFlag> {
  const whole = prepareFields({ ...flagDefaults, ...fields }, options)
  const issues = validateFlag(whole)
  if (issues.length > 0 && !options.skipValidation) return err({ kind: 'invalid', issues })
  return ok({ flag: { ...whole, projectId, createdAtMs: nowMs, createdBy: options.by }, warnings: issues })
}

/** Writes the fields that are there and adds 1 to the version. Only they are validated. */
export async function updateFlag(
  deps: ManageFlagsDeps,
  flag: Flag,
  fields: FlagFields,
  options: WriteOptions & { readonly expectedVersion?: number },
): Promise<Result<WrittenFlag, FlagRefusal>> {
  const prepared = prepareFlagFields(flag, fields, options)
  if (!prepared.ok) return prepared
  const sealed = await sealPayloads(deps.payloadCipher, flag.projectId, flag, prepared.value.fields)
  if (!sealed.ok) return err({ kind: 'invalid', issues: sealed.error })
  const { by } = options
  const expectedVersion = options.expectedVersion ?? (sealed.value.restsOnStored ? flag.version : undefined)
  return save(deps, flag, sealed.value.fields, { expectedVersion, by }, prepared.value.warnings)
}

/** Fields of a change as the store takes them, checked: also for what is stored together with a change of its flag. */
export function prepareFlagFields(
  flag: Flag,
  fields: FlagFields,
  options: WriteOptions,
): Result<{ readonly fields: FlagFields; readonly warnings: readonly FlagIssue[] }, InvalidFlag> {
  const patch = prepareFields(fields, options)
  // A key that stays is not looked at again: it may be older than the rules.
  const toValidate: FlagToValidate = patch.key === flag.key ? { ...patch, key: undefined } : patch
  const issues = validateFlag(toValidate)
  if (issues.length > 0 && !options.skipValidation) return err({ kind: 'invalid', issues })
  return ok({ fields: patch, warnings: issues })
}

/** Takes the flag out of every answer and frees its key; its history stays. */
export function deleteFlag(deps: ManageFlagsDeps, flag: Flag, by: string): Promise<Result<WrittenFlag, FlagRefusal>> {
  return save(deps, flag, { deleted: true }, { by }, [])
}

/** Makes an earlier version the newest one, as it was stored then: not validated again. */
export async function restoreFlag(
  deps: ManageFlagsDeps,
  flag: Flag,
  version: number,
  by: string,
): Promise<Result<WrittenFlag, FlagRefusal>> {
  const snapshot = await deps.management.findFlagVersion(flag.projectId, flag.id, version)
  if (snapshot === null) return err({ kind: 'not_found' })
  const then = snapshot.flag
  const fields: Required<FlagFields> = {
    key: then.key,
    name: then.name,
    filters: then.filters,
    active: then.active,
    deleted: then.deleted,
    ensureExperienceContinuity: then.ensureExperienceContinuity,
    bucketingIdentifier: then.bucketingIdentifier,
    evaluationRuntime: then.evaluationRuntime,
    evaluationContexts: then.evaluationContexts,
    hasEncryptedPayloads: then.hasEncryptedPayloads,
    isRemoteConfiguration: then.isRemoteConfiguration,
    tags: then.tags,
  }
  return save(deps, flag, fields, { by }, [])
}

function prepareFields<T extends FlagFields>(fields: T, options: WriteOptions): T {
  if (fields.filters === undefined) return fields
  return { ...fields, filters: normalizeFilters(fields.filters, options.legacyRolloutPercentage) }
}

async function save(
  deps: ManageFlagsDeps,
  flag: Flag,
  fields: FlagFields,
  options: { readonly expectedVersion?: number; readonly by: string },
  warnings: readonly FlagIssue[],
): Promise<Result<WrittenFlag, FlagRefusal>> {
  const patch: FlagPatch = { ...fields, updatedAtMs: deps.clock.nowMs() }
  const { expectedVersion, by } = options
  const written = await deps.management.updateFlag(flag.projectId, flag.id, patch, {
    ...(expectedVersion === undefined ? {} : { expectedVersion }),
    changedBy: by,
  })
  if (written.ok) return serve(deps, written.value, warnings)
  if (written.error === 'not_found') return err({ kind: 'not_found' })
  if (written.error === 'key_taken') return err({ kind: 'key_taken' })
  // Without an expected version only a change at the same moment ends here: then the one we read was the expected one.
  return err({
    kind: 'stale_version',
    sentVersion: expectedVersion ?? flag.version,
    current: written.error.staleVersion,
  })
}

async function serve(
  deps: ManageFlagsDeps,
  written: Written<Flag>,
  warnings: readonly FlagIssue[],
): Promise<Result<WrittenFlag, never>> {
  await deps.definitionsReady(written.revision)
  return ok({ flag: written.value, warnings })
}
