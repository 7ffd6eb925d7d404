// Flags as the private API writes them: validated, normalised, versioned, and served by this front before the answer.
// What may be stored is decided in `core/flags/definitions/validate-flag.ts`; who may write, before we are called.

import { type DefinitionReference, referencesOfFlag } from '#core/flags/definitions/definition-links.ts'
import type { Flag, FlagFields } from '#core/flags/definitions/flag.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import { normalizeFilters } from '#core/flags/definitions/normalize-filters.ts'
import { type FlagToValidate, validateFlag } from '#core/flags/definitions/validate-flag.ts'
import type { JsonValue } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { CohortStore, LinkedWrite } from '#ports/cohort-store.ts'
import type { FlagPatch, FlagStore, NewFlag, Written } from '#ports/management-store.ts'
import type { PayloadCipher } from './payload-cipher.ts'
import { sealPayloads, sealRestored } from './seal-payloads.ts'
import { type CheckedWrite, writeDefinition } from './write-with-links.ts'

export interface ManageFlagsDeps {
  readonly management: FlagStore & Pick<CohortStore, 'findLinks'>
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
  const flag = sealed.value.fields
  const written = await writeDefinition<Written<Flag>, FlagRefusal>(deps.management, {
    projectId,
    self: { kind: 'flag', id: null, name: flag.key },
    references: referencesOfFlag(flag.filters),
    issues: prepared.value.warnings,
    skipValidation: options.skipValidation,
    write: async linked => {
      const created = await deps.management.createFlag(flag, linked)
      if (created.ok) return created
      return err(created.error === 'key_taken' ? { kind: 'key_taken' } : created.error)
    },
  })
  return written.ok ? serve(deps, written.value) : written
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
  const expectedVersion = options.expectedVersion ?? (sealed.value.restsOnStored ? flag.version : undefined)
  return saveChecked(deps, flag, sealed.value.fields, { ...options, expectedVersion }, prepared.value.warnings)
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
  return saveChecked(deps, flag, { deleted: true }, { by, skipValidation: false }, [])
}

/**
 * Makes an earlier version the newest one, as it was stored then: not validated again, but for what it refers to, which may be
 * gone by now or refer to the flag itself.
 */
export async function restoreFlag(
  deps: ManageFlagsDeps,
  flag: Flag,
  version: number,
  options: Pick<WriteOptions, 'skipValidation' | 'by'>,
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
  const sealed = await sealRestored(deps.payloadCipher, flag, fields)
  if (!sealed.ok) return err({ kind: 'invalid', issues: sealed.error })
  return saveChecked(deps, flag, sealed.value, options, [])
}

function prepareFields<T extends FlagFields>(fields: T, options: WriteOptions): T {
  if (fields.filters === undefined) return fields
  return { ...fields, filters: normalizeFilters(fields.filters, options.legacyRolloutPercentage) }
}

/** @param warnings what is wrong with the fields by themselves. */
async function saveChecked(
  deps: ManageFlagsDeps,
  flag: Flag,
  fields: FlagFields,
  options: { readonly expectedVersion?: number | undefined; readonly skipValidation: boolean; readonly by: string },
  warnings: readonly FlagIssue[],
): Promise<Result<WrittenFlag, FlagRefusal>> {
  const patch: FlagPatch = { ...fields, updatedAtMs: deps.clock.nowMs() }
  const written = await writeDefinition<Written<Flag>, FlagRefusal>(deps.management, {
    projectId: flag.projectId,
    self: { kind: 'flag', id: flag.id, name: fields.key ?? flag.key },
    references: changedReferences(flag, fields),
    issues: warnings,
    skipValidation: options.skipValidation,
    write: linked => save(deps, flag, patch, { ...options, ...linked }),
  })
  return written.ok ? serve(deps, written.value) : written
}

/** What may be wrong about references after a change. Inactive flags count, so switching one on changes nothing. */
function changedReferences(flag: Flag, fields: FlagFields): readonly DefinitionReference[] {
  if (fields.deleted ?? flag.deleted) return []
  return fields.filters !== undefined || flag.deleted ? referencesOfFlag(fields.filters ?? flag.filters) : []
}

async function save(
  deps: ManageFlagsDeps,
  flag: Flag,
  patch: FlagPatch,
  options: LinkedWrite & { readonly expectedVersion?: number | undefined; readonly by: string },
): Promise<Result<Written<Flag>, FlagRefusal | 'definitions_changed'>> {
  const { expectedVersion, linksRevision, by } = options
  const written = await deps.management.updateFlag(flag.projectId, flag.id, patch, {
    ...(expectedVersion === undefined ? {} : { expectedVersion }),
    ...(linksRevision === undefined ? {} : { linksRevision }),
    changedBy: by,
  })
  if (written.ok) return written
  if (written.error === 'definitions_changed') return err('definitions_changed')
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
  { written, warnings }: CheckedWrite<Written<Flag>>,
): Promise<Result<WrittenFlag, never>> {
  await deps.definitionsReady(written.revision)
  return ok({ flag: written.value, warnings })
}
