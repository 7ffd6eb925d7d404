// Writes flags for the private API: validates, normalises and versions them, and resolves once this front serves them.
// `core/flags/definitions/validate-flag.ts` decides what may be stored; callers have checked that the key may write.

import type { Change } from '#core/author.ts'
import { type DefinitionReference, listReferencesOfFlag } from '#core/flags/definitions/definition-links.ts'
import { type Flag, type FlagFields, flagDefaults, pickWritableFields } from '#core/flags/definitions/flag.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import { normalizeFilters } from '#core/flags/definitions/normalize-filters.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import { assignRuleIds } from '#core/flags/definitions/rule-ids.ts'
import { type FlagToValidate, findArchivedIssues, validateFlag } from '#core/flags/definitions/validate-flag.ts'
import type { JsonValue } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { FlagPatch, FlagStore, LinkedWrite, NewFlag } from '#ports/state/flag-store.ts'
import type { Written } from '#ports/state/written.ts'
import { encryptPayloads, encryptRestoredPayloads } from './encrypt-payloads.ts'
import type { ReferenceReader } from './find-reference-issues.ts'
import type { PayloadCipher } from './payload-cipher.ts'
import {
  type CheckedWrite,
  checkAndWriteDefinition,
  type DefinitionWrite,
  type FindLinks,
  writeCheckedDefinition,
  writeWithCheckedLinks,
} from './write-with-links.ts'

export interface ManageFlagsDeps {
  readonly management: Pick<FlagStore, 'createFlag' | 'updateFlag' | 'findFlagVersion'> & ReferenceReader
  readonly definitionsReady: (revision: number) => Promise<void>
  readonly newUuid: () => string
  readonly payloadCipher: Pick<PayloadCipher, 'seal'>
}

export interface WriteOptions {
  /** The flag's own percentage in definitions older than `filters.groups`. */
  readonly legacyRolloutPercentage?: JsonValue
  /** Stores the flag even if validation fails, and returns the issues as `warnings`. */
  readonly skipValidation: boolean
  /** Accepts ids and seeds of rules as they are sent, as `skipValidation` does too. */
  readonly keepsIdentity?: boolean
  readonly change: Change
}

type PrepareOptions = Omit<WriteOptions, 'change'>

export interface WrittenFlag {
  readonly flag: Flag
  /** What validation would have refused; empty unless it was skipped. */
  readonly warnings: readonly FlagIssue[]
}

export interface InvalidFlag {
  readonly kind: 'invalid'
  readonly issues: readonly FlagIssue[]
}

export interface StaleVersion {
  readonly kind: 'stale_version'
  readonly sentVersion: number
  readonly current: Flag
}

export type FlagRefusal =
  | InvalidFlag
  | { readonly kind: 'not_found' }
  | { readonly kind: 'key_taken' }
  | { readonly kind: 'flags_too_large' }
  | StaleVersion

/**
 * A flag without filters is on for everyone, like the single set of a legacy definition. A flag with rules of version 2 is
 * inactive unless `active` says otherwise.
 */
export async function createFlag(
  deps: ManageFlagsDeps,
  projectId: number,
  fields: Omit<FlagFields, 'deleted'> & { readonly key: string },
  options: WriteOptions,
): Promise<Result<WrittenFlag, FlagRefusal>> {
  const prepared = prepareNewFlag(deps, projectId, fields, options)
  if (!prepared.ok) return prepared
  const sealed = await encryptPayloads(deps.payloadCipher, projectId, null, prepared.value.flag)
  if (!sealed.ok) return err({ kind: 'invalid', issues: sealed.error })
  const flag = sealed.value.fields
  const written = await writeCheckedDefinition<Written<Flag>, FlagRefusal>(deps.management, {
    projectId,
    self: { kind: 'flag', id: null, name: flag.key },
    references: listReferencesOfFlag(flag.filters),
    issues: prepared.value.warnings,
    skipValidation: options.skipValidation,
    write: async linked => {
      const created = await deps.management.createFlag(flag, options.change, linked)
      if (created.ok) return created
      return err(created.error === 'definitions_changed' ? created.error : { kind: created.error })
    },
  })
  return written.ok ? waitUntilServed(deps, written.value) : written
}

/** Adds defaults to a new flag and validates it; also used for flags that are stored together with their owner. */
export function prepareNewFlag(
  deps: Pick<ManageFlagsDeps, 'newUuid'>,
  projectId: number,
  fields: Omit<FlagFields, 'deleted'> & { readonly key: string },
  options: PrepareOptions,
): Result<{ readonly flag: NewFlag; readonly warnings: readonly FlagIssue[] }, InvalidFlag> {
  const defaults = hasRules(fields) ? { ...flagDefaults, active: false } : flagDefaults
  const prepared = prepareFields(deps, null, { ...defaults, ...fields }, options)
  if (!prepared.ok) return prepared
  const whole = prepared.value
  const issues = [...validateFlag(whole), ...findArchivedIssues(fields)]
  if (issues.length > 0 && !options.skipValidation) return err({ kind: 'invalid', issues })
  return ok({ flag: { ...whole, projectId }, warnings: issues })
}

/** Writes the given fields and adds 1 to the version. Only the given fields are validated. */
export function updateFlag(
  deps: ManageFlagsDeps,
  flag: Flag,
  fields: FlagFields,
  options: UpdateOptions,
): Promise<Result<WrittenFlag, FlagRefusal>> {
  return writeFlagWithRetry(deps, flag, read => prepareChange(deps, read, fields, options), options)
}

type UpdateOptions = WriteOptions & {
  /** The version that the caller saw; without it, the change applies to the newest version. */
  readonly expectedVersion?: number | undefined
}

/** What to write onto the flag that was read. */
export interface PreparedChange<E> {
  readonly fields: FlagFields
  /** Issues of the fields themselves. */
  readonly warnings: readonly FlagIssue[]
  readonly expectedVersion?: number | undefined
  readonly refuse?: DefinitionWrite<never, E>['refuse']
}

/** Checks the fields against the flag that was read. */
export async function prepareChange(
  deps: ManageFlagsDeps,
  flag: Flag,
  fields: FlagFields,
  options: Omit<UpdateOptions, 'change'>,
): Promise<Result<PreparedChange<never>, InvalidFlag | StaleVersion>> {
  const { expectedVersion: sentVersion } = options
  // The caller saw another version: compared with the rules of the current version, the ids in the document would seem
  // wrong.
  if (hasRules(fields) && sentVersion !== undefined && sentVersion !== flag.version)
    return err({ kind: 'stale_version', sentVersion, current: flag })
  const prepared = prepareFlagFields(deps, flag, fields, options)
  if (!prepared.ok) return prepared
  const { warnings } = prepared.value
  const sealed = await encryptPayloads(deps.payloadCipher, flag.projectId, flag, prepared.value.fields)
  if (!sealed.ok) return err({ kind: 'invalid', issues: sealed.error })
  const restsOnStored = sealed.value.restsOnStored || hasRules(fields)
  const expectedVersion = sentVersion ?? (restsOnStored ? flag.version : undefined)
  return ok({ fields: sealed.value.fields, warnings, expectedVersion })
}

/**
 * Normalises and validates the fields of a change; also used when a flag's owner is stored together with the change.
 */
export function prepareFlagFields(
  deps: Pick<ManageFlagsDeps, 'newUuid'>,
  flag: Flag,
  fields: FlagFields,
  options: PrepareOptions,
): Result<{ readonly fields: FlagFields; readonly warnings: readonly FlagIssue[] }, InvalidFlag> {
  const prepared = prepareFields(deps, flag, fields, options)
  if (!prepared.ok) return prepared
  const patch = prepared.value
  // An unchanged key is not validated again: it may be older than the rules for keys.
  const { key, ...others } = patch
  const toValidate: FlagToValidate = key === flag.key ? others : patch
  const issues = [...validateFlag(toValidate, flag.filters), ...findArchivedIssues(fields, flag)]
  if (issues.length > 0 && !options.skipValidation) return err({ kind: 'invalid', issues })
  return ok({ fields: patch, warnings: issues })
}

/** Takes the flag out of every answer and frees its key; its history stays. */
export function deleteFlag(
  deps: ManageFlagsDeps,
  flag: Flag,
  change: Change,
): Promise<Result<WrittenFlag, FlagRefusal>> {
  const deletion = ok({ fields: { deleted: true }, warnings: [] })
  return writeFlagWithRetry(deps, flag, async () => deletion, { change, skipValidation: false })
}

/**
 * Makes an earlier version the newest one, as it was stored then. Only its references are validated again: what it
 * refers to may be deleted, or refer to the flag itself.
 */
export async function restoreFlag(
  deps: ManageFlagsDeps,
  flag: Flag,
  version: number,
  options: Pick<WriteOptions, 'skipValidation' | 'change'>,
): Promise<Result<WrittenFlag, FlagRefusal>> {
  const snapshot = await deps.management.findFlagVersion(flag.projectId, flag.id, version)
  if (snapshot === null) return err({ kind: 'not_found' })
  const prepare = async (read: Flag) => {
    const sealed = await encryptRestoredPayloads(deps.payloadCipher, read, pickWritableFields(snapshot.flag))
    if (!sealed.ok) return err({ kind: 'invalid', issues: sealed.error } as const)
    const { fields, restsOnStored } = sealed.value
    return ok({ fields, warnings: [], ...(restsOnStored && { expectedVersion: read.version }) })
  }
  return writeFlagWithRetry(deps, flag, prepare, options)
}

function hasRules({ filters }: FlagFields): boolean {
  return filters !== undefined && readConfigVersion(filters) === 2
}

/**
 * The fields with `filters` as they are stored: version 1 in the current form, version 2 with ids and seeds.
 * @param stored the flag to change; null for a new one.
 */
function prepareFields<T extends FlagFields>(
  { newUuid }: Pick<ManageFlagsDeps, 'newUuid'>,
  stored: Flag | null,
  fields: T,
  { legacyRolloutPercentage, skipValidation, keepsIdentity }: PrepareOptions,
): Result<T, InvalidFlag> {
  const { filters } = fields
  if (filters === undefined) return ok(fields)
  // Rules are not prepared for a flag of version 1: validation refuses to change its version. A stored document of an
  // unknown version may be replaced by one with rules.
  const mayHaveRules = stored === null || readConfigVersion(stored.filters) !== 1
  if (!hasRules(fields) || !mayHaveRules || skipValidation || keepsIdentity)
    return ok({ ...fields, filters: normalizeFilters(filters, legacyRolloutPercentage) })
  const identified = assignRuleIds(filters, stored?.filters ?? null, newUuid)
  return identified.ok
    ? ok({ ...fields, filters: identified.value })
    : err({ kind: 'invalid', issues: [identified.error] })
}

/**
 * @param prepare called again if another writer came first, with the newest flag if that flag was changed. A caller that
 * expects a version gets a refusal instead when the flag was changed.
 */
export async function writeFlagWithRetry<E extends { readonly kind: string } = never>(
  deps: ManageFlagsDeps,
  flag: Flag,
  prepare: (read: Flag) => Promise<Result<PreparedChange<E>, FlagRefusal | E>>,
  options: Pick<UpdateOptions, 'expectedVersion' | 'skipValidation' | 'change'>,
): Promise<Result<WrittenFlag, FlagRefusal | E>> {
  const { projectId, id } = flag
  const { skipValidation, change } = options
  let read = flag
  const tryOnce = async (findLinks: FindLinks) => {
    const prepared = await prepare(read)
    if (!prepared.ok) return prepared
    const { fields, warnings: issues, expectedVersion, refuse } = prepared.value
    const self = { kind: 'flag', id, name: fields.key ?? read.key } as const
    const references = listReferencesToCheck(read, fields)
    const write = (linked: LinkedWrite) => saveFlag(deps, read, fields, { expectedVersion, change, ...linked })
    const definition = { projectId, self, references, issues, skipValidation, refuse, write }
    const written = await checkAndWriteDefinition<Written<Flag>, FlagRefusal | E>(
      deps.management,
      findLinks,
      definition,
    )
    if (!written.ok && isStale(written.error)) read = written.error.current
    return written
  }
  const isRetryable = (refusal: FlagRefusal | E) => options.expectedVersion === undefined && isStale(refusal)
  const written = await writeWithCheckedLinks(deps.management, projectId, tryOnce, isRetryable)
  return written.ok ? waitUntilServed(deps, written.value) : written
}

function isStale(refusal: { readonly kind: string } | string): refusal is StaleVersion {
  return typeof refusal === 'object' && refusal.kind === 'stale_version'
}

/** The references to check after a change. Inactive flags are checked too, so switching one on needs no new check. */
export function listReferencesToCheck(flag: Flag, fields: FlagFields): readonly DefinitionReference[] {
  if (fields.deleted ?? flag.deleted) return []
  return fields.filters !== undefined || flag.deleted ? listReferencesOfFlag(fields.filters ?? flag.filters) : []
}

async function saveFlag(
  deps: ManageFlagsDeps,
  flag: Flag,
  patch: FlagPatch,
  options: LinkedWrite & { readonly expectedVersion?: number | undefined; readonly change: Change },
): Promise<Result<Written<Flag>, FlagRefusal | 'definitions_changed'>> {
  const { expectedVersion, linksRevision, change } = options
  const written = await deps.management.updateFlag(flag.projectId, flag.id, patch, change, {
    ...(expectedVersion === undefined ? {} : { expectedVersion }),
    ...(linksRevision === undefined ? {} : { linksRevision }),
  })
  if (written.ok) return written
  if (written.error === 'definitions_changed') return err('definitions_changed')
  if (typeof written.error === 'string') return err({ kind: written.error })
  // Without an expected version, the version that was read is expected, so only a concurrent change leads here.
  return err({
    kind: 'stale_version',
    sentVersion: expectedVersion ?? flag.version,
    current: written.error.staleVersion,
  })
}

async function waitUntilServed(
  deps: ManageFlagsDeps,
  { written, warnings }: CheckedWrite<Written<Flag>>,
): Promise<Result<WrittenFlag, never>> {
  await deps.definitionsReady(written.revision)
  return ok({ flag: written.value, warnings })
}
