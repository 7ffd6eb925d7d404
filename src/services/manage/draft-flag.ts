// A flag as a write would leave it, checked like one, without writing anything.

import { referencesOfFlag } from '#core/flags/definitions/definition-links.ts'
import { changedFlag, type Flag, type FlagFields } from '#core/flags/definitions/flag.ts'
import { type ReferringDefinition, referenceIssues } from '#core/flags/definitions/validate-references.ts'
import { unstoredFlag } from '#core/flags/evaluation/flag-probe.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { DefinitionLinkReader } from '#ports/state/definition-links.ts'
import { type InvalidFlag, prepareFlagFields, prepareNewFlag, type WriteOptions } from './manage-flags.ts'

export interface DraftFlagDeps {
  readonly management: DefinitionLinkReader
  readonly clock: Clock
}

/**
 * @param stored the flag that is changed; null for a new one.
 * @param fields those that the write sets; a new flag needs a key.
 */
export async function draftFlag(
  deps: DraftFlagDeps,
  projectId: number,
  stored: Flag | null,
  fields: FlagFields & { readonly key: string },
  options: Pick<WriteOptions, 'legacyRolloutPercentage'>,
): Promise<Result<Flag, InvalidFlag>> {
  const nowMs = deps.clock.nowMs()
  const draft = draftOf(projectId, stored, fields, { ...options, skipValidation: false, by: '' }, nowMs)
  if (!draft.ok) return draft
  const { id, key, filters } = draft.value
  const self: ReferringDefinition = { kind: 'flag', id: stored === null ? null : id, name: key }
  // As in a write: what stays as it is stored is not checked again.
  const references = stored !== null && fields.filters === undefined ? [] : referencesOfFlag(filters)
  const issues = referenceIssues(self, references, await deps.management.findLinks(projectId))
  return issues.length === 0 ? draft : err({ kind: 'invalid', issues })
}

function draftOf(
  projectId: number,
  stored: Flag | null,
  fields: FlagFields & { readonly key: string },
  options: WriteOptions,
  nowMs: number,
): Result<Flag, InvalidFlag> {
  if (stored === null) {
    const prepared = prepareNewFlag(projectId, fields, options, nowMs)
    return prepared.ok ? ok(unstoredFlag(projectId, prepared.value.flag)) : prepared
  }
  const prepared = prepareFlagFields(stored, fields, options)
  return prepared.ok ? ok(changedFlag(stored, { ...prepared.value.fields, updatedAtMs: nowMs })) : prepared
}
