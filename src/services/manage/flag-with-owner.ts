// Shared by services that write a flag together with the feature, survey or experiment it belongs to: makes keys from
// names, and tries again when the flag was changed in between.

import type { Change } from '#core/author.ts'
import { listReferencesOfFlag } from '#core/flags/definitions/definition-links.ts'
import type { Flag, FlagFields } from '#core/flags/definitions/flag.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import { flagKeyLengthMax } from '#core/flags/definitions/validate-flag.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { FlagStore, FlagWrite, FlagWriteRefusal, NewFlag } from '#ports/state/flag-store.ts'
import type { Written } from '#ports/state/written.ts'
import { writeOptimistically } from '../shared/write-optimistically.ts'
import { waitUntilServed } from './definition-writes.ts'
import { encryptPayloads } from './encrypt-payloads.ts'
import { findReferenceIssues, type ReferenceReader } from './find-reference-issues.ts'
import { type InvalidFlag, prepareFlagFields, prepareNewFlag } from './manage-flags.ts'
import type { PayloadCipher } from './payload-cipher.ts'

const retriedRefusals: ReadonlySet<unknown> = new Set<FlagWriteRefusal>([
  'key_taken',
  'flag_changed',
  'definitions_changed',
])

/** Dependencies of a service that writes a definition together with its flags. */
export interface FlagOwnerDeps {
  /** Resolves when this front serves everything up to the revision. */
  readonly definitionsReady: (revision: number) => Promise<void>
  readonly newUuid: () => string
  readonly payloadCipher: Pick<PayloadCipher, 'seal'>
}

/**
 * Writes a definition together with its flags. `attempt` reads what is stored, decides, and writes definition and flags in
 * one transaction. It is called again while other writers come first; after too many tries, the last refusal is returned.
 * Resolves when the flags are served.
 */
export async function writeDefinitionWithFlags<T, E>(
  deps: Pick<FlagOwnerDeps, 'definitionsReady'>,
  attempt: () => Promise<Result<Written<T>, E>>,
): Promise<Result<T, E>> {
  const written = await writeOptimistically(attempt, tried => !tried.ok && retriedRefusals.has(tried.error))
  return waitUntilServed(deps, written)
}

/** The project's flag with this id, which may be deleted; null when there is none. */
export async function findFlagById(
  management: Pick<FlagStore, 'findFlag'>,
  projectId: number,
  flagId: number,
): Promise<Flag | null> {
  const flag = await management.findFlag(projectId, String(flagId))
  return flag?.id === flagId ? flag : null
}

/** The project's flag with this id; null when there is none or it is deleted. */
export async function findUndeletedFlag(
  management: Pick<FlagStore, 'findFlag'>,
  projectId: number,
  flagId: number,
): Promise<Flag | null> {
  const flag = await findFlagById(management, projectId, flagId)
  return flag?.deleted === true ? null : flag
}

const keyCharsMax = 100

/**
 * Makes a key from a name, one that no flag of the project has: lower-case letters, digits, underscores and hyphens, with a
 * number appended when the plain key is taken. The key is `feature` when the name has no such character.
 */
export async function findFreeFlagKey(
  management: Pick<FlagStore, 'findFlag'>,
  projectId: number,
  name: string,
): Promise<string> {
  const plain = name
    .slice(0, flagKeyLengthMax)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, '-')
    .slice(0, keyCharsMax)
    .replace(/^-+/, '')
    .replace(/-+$/, '')
  // Digits alone would read as an id.
  const stem = plain === '' || /^\d+$/.test(plain) ? `feature${plain === '' ? '' : `-${plain}`}` : plain
  for (let count = 1; ; count++) {
    const key = count === 1 ? stem : `${stem}-${count}`
    const holder = await management.findFlag(projectId, key)
    if (holder === null || holder.key !== key) return key
  }
}

/** Checks what the write's filters refer to; the returned write succeeds only while all of it is unchanged. */
export async function addReferenceCheck(
  management: ReferenceReader,
  projectId: number,
  flagKey: string,
  write: FlagWrite,
): Promise<Result<FlagWrite, InvalidFlag>> {
  const filters = write.kind === 'create' ? write.flag.filters : write.patch.filters
  const references = filters === undefined ? [] : listReferencesOfFlag(filters)
  if (references.length === 0) return ok(write)
  const links = await management.findLinks(projectId)
  const self = { kind: 'flag', id: write.kind === 'create' ? null : write.flagId, name: flagKey } as const
  const issues = await findReferenceIssues(management, projectId, self, references, links)
  return issues.length > 0 ? err({ kind: 'invalid', issues }) : ok({ ...write, linksRevision: links.revision })
}

/**
 * The personal API key that writes a feature, survey or experiment, and its permissions for flags that were not made for
 * that item.
 */
export interface WriterAccess {
  readonly change: Change
  readonly mayReadFlags: boolean
  readonly mayWriteFlags: boolean
}

/** Validates a change of a flag whose fields a caller wrote, and prepares its payloads for storage. */
export async function prepareCheckedChange(
  { payloadCipher, newUuid }: FlagOwnerDeps,
  flag: Flag,
  fields: FlagFields,
): Promise<Result<FlagWrite, InvalidFlag>> {
  const unsupported = findRuleVersionIssues(fields)
  if (unsupported.length > 0) return err({ kind: 'invalid', issues: unsupported })
  const prepared = prepareFlagFields({ newUuid }, flag, fields, { skipValidation: false })
  if (!prepared.ok) return prepared
  const sealed = await encryptPayloads(payloadCipher, flag.projectId, flag, prepared.value.fields)
  return sealed.ok ? ok(toFlagChange(flag, sealed.value.fields)) : err({ kind: 'invalid', issues: sealed.error })
}

/** Validates a new flag whose fields a caller wrote, and prepares its payloads for storage. */
export async function prepareCheckedNewFlag(
  { payloadCipher, newUuid }: FlagOwnerDeps,
  projectId: number,
  fields: Parameters<typeof prepareNewFlag>[2],
): Promise<Result<NewFlag, InvalidFlag>> {
  const unsupported = findRuleVersionIssues(fields)
  if (unsupported.length > 0) return err({ kind: 'invalid', issues: unsupported })
  const prepared = prepareNewFlag({ newUuid }, projectId, fields, { skipValidation: false })
  if (!prepared.ok) return prepared
  const sealed = await encryptPayloads(payloadCipher, projectId, null, prepared.value.flag)
  return sealed.ok ? ok(sealed.value.fields) : err({ kind: 'invalid', issues: sealed.error })
}

/** Features, surveys and experiments set condition sets and variants, so their flags have documents of version 1. */
function findRuleVersionIssues({ filters }: FlagFields): FlagIssue[] {
  if (filters === undefined || readConfigVersion(filters) === 1) return []
  const message = 'The flag of an early access feature, survey or experiment must have version 1 filters.'
  return [{ path: 'filters.version', code: 'unsupported_config_version', message }]
}

/**
 * Makes the write that changes the version that was read. The result is not validated, because the rest of the flag is
 * already stored.
 */
export function toFlagChange(flag: Flag, patch: FlagFields & { readonly hasExperiment?: boolean }): FlagWrite {
  return { kind: 'change', flagId: flag.id, expectedVersion: flag.version, patch }
}
