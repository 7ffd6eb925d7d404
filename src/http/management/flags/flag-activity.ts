// Computes what changed from one version of a flag to the next, for the flag's own activity and for its entries in the
// activity log.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Activity } from '#core/activity.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import type { JsonObject } from '#core/json.ts'
import { diffJson, type JsonChange } from '#core/json-diff.ts'
import type { FlagStore, FlagVersion } from '#ports/state/flag-store.ts'
import { encodeAuthor } from '#wire/management/author.ts'
import { encodeFlag, encodeFlagVersion, type FlagActivityJson, removePayloads } from '#wire/management/flags/flags.ts'

export async function buildFlagActivity(
  deps: { readonly management: Pick<FlagStore, 'findFlagVersion'> },
  flag: Flag,
  versions: readonly FlagVersion[],
): Promise<FlagActivityJson[]> {
  const activity: FlagActivityJson[] = []
  for (const [index, version] of versions.entries()) {
    const before =
      versions[index + 1] ?? (await deps.management.findFlagVersion(flag.projectId, flag.id, version.version - 1))
    activity.push(toActivity(version, before ?? undefined, flag))
    await nextTurn() // comparing two large flags takes a whole turn
  }
  return activity
}

/**
 * Builds flag entries of the activity log from flag versions, like the flag's own activity, so that the two cannot
 * disagree.
 */
export async function buildProjectActivity(
  { management }: { readonly management: Pick<FlagStore, 'findFlagVersion' | 'findFlag'> },
  projectId: number,
  versions: readonly FlagVersion[],
): Promise<FlagActivityJson[]> {
  const activity: FlagActivityJson[] = []
  for (const version of versions) {
    const { flagId } = version
    const [before, now] = await Promise.all([
      version.version === 1 ? null : management.findFlagVersion(projectId, flagId, version.version - 1),
      management.findFlag(projectId, String(flagId)),
    ])
    activity.push(toActivity(version, before ?? undefined, now ?? version.flag))
    await nextTurn()
  }
  return activity
}

/** What a version changed, for its entry in the activity log. */
export async function diffVersion(
  { findFlagVersion, findFlag }: Pick<FlagStore, 'findFlagVersion' | 'findFlag'>,
  { projectId, itemId }: Pick<Activity, 'projectId' | 'itemId'>,
  version: number,
): Promise<JsonChange[]> {
  // There is nothing to compare the first version with, and each read waits for its turn at the store.
  if (projectId === null || version === 1) return []
  const [after, before, now] = await Promise.all([
    findFlagVersion(projectId, Number(itemId), version),
    findFlagVersion(projectId, Number(itemId), version - 1),
    findFlag(projectId, itemId),
  ])
  if (before === null || after === null) return []
  await nextTurn()
  return diffFlags(before.flag, after.flag, now ?? after.flag)
}

/** Ignores version, time and author. Also ignores all payloads if the flag's payloads are encrypted now. */
export function diffFlags(before: Flag, after: Flag, now: Flag): JsonChange[] {
  return now.hasEncryptedPayloads
    ? diffJson(encodeComparable(removePayloads(before)), encodeComparable(removePayloads(after)))
    : diffJson(encodeComparable(before), encodeComparable(after))
}

function encodeComparable(flag: Flag): JsonObject {
  const { version: _version, updated_at: _updatedAt, created_by: _createdBy, ...rest } = encodeFlag(flag)
  return rest
}

function toActivity(version: FlagVersion, before: FlagVersion | undefined, now: Flag): FlagActivityJson {
  const changes = before === undefined ? [] : diffFlags(before.flag, version.flag, now)
  const isDeletion = changes.some(({ path, after }) => path === 'deleted' && after === true)
  return {
    user: encodeAuthor(version.changedBy),
    activity: before === undefined ? 'created' : isDeletion ? 'deleted' : 'updated',
    scope: 'FeatureFlag',
    item_id: String(version.flagId),
    detail: {
      name: version.flag.key,
      version: version.version,
      changes: changes.map(change => ({
        type: 'FeatureFlag' as const,
        field: change.path.split('.', 1)[0]!,
        ...change,
      })),
    },
    created_at: encodeFlagVersion(version, now.hasEncryptedPayloads).created_at,
  }
}
