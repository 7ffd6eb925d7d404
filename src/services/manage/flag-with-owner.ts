// What services share that write a flag together with the thing it belongs to: keys made from names, and a second attempt
// when somebody else changed the flag in between.

import { referencesOfFlag } from '#core/flags/definitions/definition-links.ts'
import type { Flag, FlagFields } from '#core/flags/definitions/flag.ts'
import { flagKeyLengthMax } from '#core/flags/definitions/validate-flag.ts'
import { referenceIssues } from '#core/flags/definitions/validate-references.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { CohortStore } from '#ports/cohort-store.ts'
import type { FlagWrite, FlagWriteRefusal } from '#ports/flag-write.ts'
import type { FlagStore } from '#ports/management-store.ts'
import { type InvalidFlag, prepareFlagFields } from './manage-flags.ts'

/** Each round one writer comes through, so this many may write at the same moment without any of them failing. */
const attemptCountMax = 30
const cameLate: ReadonlySet<unknown> = new Set<FlagWriteRefusal>(['key_taken', 'flag_changed', 'definitions_changed'])

/**
 * Runs a write again, from its reading on, while it is refused because another one came first.
 * The last refusal stands.
 */
export async function retryingFlagWrite<T, E>(attempt: () => Promise<Result<T, E>>): Promise<Result<T, E>> {
  let result = await attempt()
  for (let count = 1; count < attemptCountMax && !result.ok; count++) {
    if (!cameLate.has(result.error)) break
    result = await attempt()
  }
  return result
}

/** The flag with this id when it is one of the project's that is not deleted. */
export async function findLivingFlag(
  management: Pick<FlagStore, 'findFlag'>,
  projectId: number,
  flagId: number,
): Promise<Flag | null> {
  const flag = await management.findFlag(projectId, String(flagId))
  return flag === null || flag.id !== flagId || flag.deleted ? null : flag
}

const keyCharsMax = 100

/**
 * A key that no flag of the project has, made of a name: lower-case letters, digits and hyphens, a number behind it where
 * the plain one is taken. `feature` when the name has no such character.
 */
export async function freeFlagKey(
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

/** The write, which then holds only while all that its filters refer to is as it was found, without a cycle. */
export async function relyingOnReferences(
  management: Pick<CohortStore, 'findLinks'>,
  projectId: number,
  flagKey: string,
  write: FlagWrite,
): Promise<Result<FlagWrite, InvalidFlag>> {
  const filters = write.kind === 'create' ? write.flag.filters : write.patch.filters
  const references = filters === undefined ? [] : referencesOfFlag(filters)
  if (references.length === 0) return ok(write)
  const links = await management.findLinks(projectId)
  const self = { kind: 'flag', id: write.kind === 'create' ? null : write.flagId, name: flagKey } as const
  const issues = referenceIssues(self, references, links)
  return issues.length > 0 ? err({ kind: 'invalid', issues }) : ok({ ...write, linksRevision: links.revision })
}

/** Who writes a feature, a survey or an experiment, and what the key may do with flags that were not made for it. */
export interface Writer {
  /** Label of the key that writes. */
  readonly by: string
  readonly mayReadFlags: boolean
  readonly mayWriteFlags: boolean
}

export interface Change {
  /** Label of the key that writes. */
  readonly by: string
  readonly nowMs: number
}

/** A change of a flag with filters that somebody wrote, checked. */
export function checkedChange(flag: Flag, fields: FlagFields, change: Change): Result<FlagWrite, InvalidFlag> {
  const prepared = prepareFlagFields(flag, fields, { skipValidation: false, by: change.by })
  return prepared.ok ? ok(changeOf(flag, prepared.value.fields, change)) : err(prepared.error)
}

/** A change of ours, from the version that was read. Not checked: what else stands in the flag was stored before. */
export function changeOf(
  flag: Flag,
  fields: FlagFields & { readonly hasExperiment?: boolean },
  { by, nowMs }: Change,
): FlagWrite {
  const patch = { ...fields, updatedAtMs: nowMs }
  return { kind: 'change', flagId: flag.id, expectedVersion: flag.version, patch, changedBy: by }
}
