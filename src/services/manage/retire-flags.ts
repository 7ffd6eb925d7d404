// Deletes or archives many flags in one call. Each flag is written separately, as a new version; it stays unchanged when
// something uses it. A flag that is used only by other flags of the same call is included: its users are retired first.
// Source: PostHog's bulk_delete; what it leaves open is ours, docs/wire/private-api.md §4.

import type { Change } from '#core/author.ts'
import type { DefinitionLinks } from '#core/flags/definitions/definition-links.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import type { Clock } from '#ports/clock.ts'
import type { DefinitionLinkReader, FlagStore } from '#ports/state/flag-store.ts'
import { writeOptimistically } from '../shared/write-optimistically.ts'
import { queueDefinitionWrite } from './definition-writes.ts'

export interface RetireFlagsDeps {
  readonly management: Pick<FlagStore, 'listFlagsById' | 'listFlagUses' | 'updateFlag'> & DefinitionLinkReader
  /** Resolves when this front serves everything up to the revision. */
  readonly definitionsReady: (revision: number) => Promise<void>
  readonly clock: Clock
}

/** What uses a flag. */
export interface FlagDependent {
  readonly kind: 'feature_flag' | 'cohort' | 'experiment' | 'survey' | 'early_access_feature'
  readonly id: number | string
  /** The key of a flag, the name of anything else. */
  readonly name: string
}

export interface RetiredFlag {
  readonly flagId: number
  /** Null when the project has no such flag, or it is deleted. */
  readonly flag: Flag | null
  /** `in_use` has at least one user. `busy`: the project's definitions kept changing; a retry may work. */
  readonly refused:
    | null
    | { readonly kind: 'not_found' }
    | { readonly kind: 'busy' }
    | { readonly kind: 'in_use'; readonly by: FlagDependent[] }
}

/**
 * Deletes or archives the given flags that nothing uses. A flag that is already archived gets no new version. Resolves when
 * the result is served.
 * @returns an entry for each id, in their order.
 */
export async function retireFlags(
  deps: RetireFlagsDeps,
  projectId: number,
  flagIds: readonly number[],
  how: 'delete' | 'archive',
  change: Change,
): Promise<readonly RetiredFlag[]> {
  const results = new Map<number, RetiredFlag>()
  let revision: number | null = null
  const flags = await queueDefinitionWrite(deps.management, projectId, async () => {
    for (;;) {
      const round = await writeOptimistically(
        async () => runRound(deps, await startRound(deps, projectId, flagIds, how), results, change),
        ({ hasLostRace, revision: written }) => hasLostRace && written === null,
      )
      revision = round.revision ?? revision
      if (!round.hasLostRace || round.revision === null) return round.flags
    }
  })
  if (revision !== null) await deps.definitionsReady(revision)
  return flagIds.map(flagId => {
    const flag = flags.get(flagId) ?? null
    return results.get(flagId) ?? { flagId, flag, refused: { kind: flag === null ? 'not_found' : 'busy' } }
  })
}

/** The project as of one revision. */
interface Round {
  readonly projectId: number
  readonly how: 'delete' | 'archive'
  /** The ids that exist, with their flags. */
  readonly flags: ReadonlyMap<number, Flag>
  readonly usersOf: ReadonlyMap<number, readonly FlagDependent[]>
  readonly revision: number
}

async function startRound(
  { management, clock }: RetireFlagsDeps,
  projectId: number,
  flagIds: readonly number[],
  how: Round['how'],
): Promise<Round> {
  // The revision is older than everything read after it, so a change in between is noticed by the write.
  const links = await management.findLinks(projectId)
  const found = await management.listFlagsById(projectId, flagIds)
  const flags = new Map(found.filter(flag => !flag.deleted).map(flag => [flag.id, flag]))
  const usersOf = await listFlagDependents({ management, clock }, projectId, links, [...flags.keys()], how)
  return { projectId, how, flags, usersOf, revision: links.revision }
}

/**
 * Lists what uses these flags and thereby prevents retiring them.
 * @param links read before, so that a change in between is noticed by a write that names their revision.
 * @returns an entry for each of the flags.
 */
export async function listFlagDependents(
  { management, clock }: Pick<RetireFlagsDeps, 'clock'> & { readonly management: UserReader },
  projectId: number,
  links: DefinitionLinks,
  flagIds: readonly number[],
  how: Round['how'],
): Promise<ReadonlyMap<number, readonly FlagDependent[]>> {
  const usersOf = new Map<number, FlagDependent[]>(flagIds.map(id => [id, []]))
  for (const { flagId, ...user } of await management.listFlagUses(projectId, flagIds, clock.nowMs()))
    usersOf.get(flagId)?.push(user)
  for (const { flagIds: tested, ...user } of await listDependents(management, projectId, links, how))
    for (const flagId of tested) if (flagId !== user.id || user.kind === 'cohort') usersOf.get(flagId)?.push(user)
  return usersOf
}

type UserReader = Pick<FlagStore, 'listFlagsById' | 'listFlagUses'>

/**
 * Lists the flags and cohorts that test a flag. A flag that only archived flags test may be archived, since neither is
 * evaluated.
 */
async function listDependents(
  management: UserReader,
  projectId: number,
  links: DefinitionLinks,
  how: Round['how'],
): Promise<(FlagDependent & { readonly flagIds: readonly number[] })[]> {
  const testing = links.flags.filter(({ flagIds }) => flagIds.length > 0)
  const ids = how === 'archive' ? testing.map(({ id }) => id) : []
  const archived = new Set(
    (await management.listFlagsById(projectId, ids)).filter(flag => flag.archived).map(flag => flag.id),
  )
  return [
    ...testing
      .filter(({ id }) => !archived.has(id))
      .map(({ id, name, flagIds }) => ({ kind: 'feature_flag' as const, id, name, flagIds })),
    ...links.cohorts.map(({ id, name, flagIds }) => ({ kind: 'cohort' as const, id, name, flagIds })),
  ]
}

/** Writes until nothing more can be written, or until another writer has changed the project's definitions. */
async function runRound(
  deps: RetireFlagsDeps,
  round: Round,
  results: Map<number, RetiredFlag>,
  change: Change,
): Promise<Pick<Round, 'flags'> & { readonly revision: number | null; readonly hasLostRace: boolean }> {
  const { flags } = round
  const waiting = new Map([...flags].filter(([flagId]) => !results.has(flagId)))
  /** Flags retired in this call no longer use anything. */
  const findRemainingUsers = (flagId: number) =>
    round.usersOf
      .get(flagId)!
      .filter(({ kind, id }) => kind !== 'feature_flag' || results.get(id as number)?.refused !== null)
  let linksRevision = round.revision
  let revision: number | null = null
  for (let hasProgressed = true; hasProgressed; ) {
    hasProgressed = false
    for (const [flagId, flag] of waiting) {
      if (findRemainingUsers(flagId).length > 0) continue
      if (round.how === 'archive' && flag.archived) results.set(flagId, { flagId, flag, refused: null })
      else {
        const written = await writeRetirement(deps, round, flag, linksRevision, change)
        if (written === null) return { flags, revision, hasLostRace: true }
        // No other writer came in between, so what was read is still current.
        linksRevision = revision = written.revision
        results.set(flagId, { flagId, flag: written.flag, refused: null })
      }
      waiting.delete(flagId)
      hasProgressed = true
    }
  }
  for (const [flagId, flag] of waiting)
    results.set(flagId, { flagId, flag, refused: { kind: 'in_use', by: findRemainingUsers(flagId) } })
  return { flags, revision, hasLostRace: false }
}

/** @returns null when the project's definitions have changed in between. */
async function writeRetirement(
  { management }: RetireFlagsDeps,
  { projectId, how }: Round,
  { id }: Flag,
  linksRevision: number,
  change: Change,
): Promise<{ readonly flag: Flag; readonly revision: number } | null> {
  const patch = how === 'delete' ? { deleted: true } : { archived: true }
  const written = await management.updateFlag(projectId, id, patch, change, { linksRevision })
  return written.ok ? { flag: written.value.value, revision: written.value.revision } : null
}
