// Builds and checks the flag that a write would store, without writing anything.

import { listReferencesOfFlag } from '#core/flags/definitions/definition-links.ts'
import { applyFlagChange, type Flag, type FlagFields } from '#core/flags/definitions/flag.ts'
import type { ReferringDefinition } from '#core/flags/definitions/validate-references.ts'
import { createUnstoredFlag } from '#core/flags/evaluation/flag-probe.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import { findReferenceIssues, type ReferenceReader } from './find-reference-issues.ts'
import {
  type FlagRefusal,
  type InvalidFlag,
  listReferencesToCheck,
  prepareFlagFields,
  prepareNewFlag,
  type WriteOptions,
} from './manage-flags.ts'

export interface DraftFlagDeps {
  readonly management: ReferenceReader
  readonly clock: Clock
  readonly newUuid: () => string
}

export interface DraftFlag {
  readonly flag: Flag
  /** The minimum revision of the definitions that the flag was checked against. */
  readonly revision: number
}

export type DraftRefusal = InvalidFlag | Extract<FlagRefusal, { kind: 'key_taken' }>

/**
 * @param stored the flag to change; null for a new one.
 * @param fields the fields that the write sets; a new flag needs a key.
 */
export async function createFlagDraft(
  deps: DraftFlagDeps,
  projectId: number,
  stored: Flag | null,
  fields: FlagFields & { readonly key: string },
  options: Pick<WriteOptions, 'legacyRolloutPercentage' | 'keepsIdentity'>,
): Promise<Result<DraftFlag, DraftRefusal>> {
  const draft = buildDraft(deps, projectId, stored, fields, { ...options, skipValidation: false })
  if (!draft.ok) return draft
  const { key, filters, deleted } = draft.value
  const self: ReferringDefinition = { kind: 'flag', id: stored?.id ?? null, name: key }
  const references = stored === null ? listReferencesOfFlag(filters) : listReferencesToCheck(stored, fields)
  const links = await deps.management.findLinks(projectId)
  const issues = await findReferenceIssues(deps.management, projectId, self, references, links)
  if (issues.length > 0) return err({ kind: 'invalid', issues })
  if (!deleted && links.flags.some(({ id, name }) => name === key && id !== self.id)) return err({ kind: 'key_taken' })
  return ok({ flag: draft.value, revision: links.revision })
}

function buildDraft(
  deps: DraftFlagDeps,
  projectId: number,
  stored: Flag | null,
  fields: FlagFields & { readonly key: string },
  options: Omit<WriteOptions, 'change'>,
): Result<Flag, InvalidFlag> {
  if (stored === null) {
    const prepared = prepareNewFlag(deps, projectId, fields, options)
    return prepared.ok
      ? ok(createUnstoredFlag(projectId, { ...prepared.value.flag, createdAtMs: deps.clock.nowMs() }))
      : prepared
  }
  const prepared = prepareFlagFields(deps, stored, fields, options)
  return prepared.ok
    ? ok(applyFlagChange(stored, { ...prepared.value.fields, updatedAtMs: deps.clock.nowMs() }))
    : prepared
}
