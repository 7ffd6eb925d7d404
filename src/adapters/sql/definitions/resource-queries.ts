// Early access features, surveys and experiments, each written with its flags and its entry in the activity log.
// `resource-lists.ts` has the lists.

import type { Kysely } from 'kysely'
import { createActivityEntry, type NewActivity } from '#core/activity.ts'
import type { Change } from '#core/author.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { buildInitialFields, patchItem, type Resource, type RowOf, toActivityLogFields } from '#core/resource.ts'
import { type Item, type ResourceName, resources } from '#core/resources/resources.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { FlagWrite, FlagWriteRefusal } from '#ports/state/flag-store.ts'
import type { ResourceStore } from '#ports/state/resource-store.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { toResourceItem, toResourceRow } from '../tables/resource-rows.ts'
import { allocateId, bumpRevision, readRevision } from '../tables/revision-queries.ts'
import type { StateSchema } from '../tables/schema.ts'
import { toStorableFields } from '../tables/wrap-methods.ts'
import { haveDefinitionsChanged } from './cohort-queries.ts'
import { insertFlag, updateFlagRow } from './flag-queries.ts'
import { listResourceItems, selectResourceItems, toUntypedTables } from './resource-lists.ts'

type AnyItem = Item<ResourceName>

export function createResourceQueries(db: Kysely<StateSchema>): ResourceStore {
  return {
    createResource: (name, input, flags, change) =>
      rollBackIfRefused(db, async trx => {
        const resource: Resource = resources[name]
        const { projectId } = input
        const ofFlags = await applyFlagWrites(trx, projectId, flags, change)
        if (!ofFlags.ok) return ofFlags
        if (name === 'early_access_feature' && (await isFlagInUse(trx, projectId, ofFlags.value.flagId)))
          return err('flag_in_use' as never)
        const item = pickFields(resource, {
          ...buildInitialFields(resource),
          ...(resource.fields.id?.kind === 'integer' && { id: await allocateId(trx, name) }),
          ...omitUndefined(input),
          ...{
            flagIsOwn: (flags as { readonly flagId?: FlagWrite | null }).flagId?.kind === 'create',
            ...ofFlags.value,
          },
          ...{ createdAtMs: change.atMs, updatedAtMs: change.atMs, createdBy: change.by },
        })
        const row = { ...toResourceRow(resource, item), ...(resource.keepsDeleted && { deleted: 0 }) }
        await toUntypedTables(trx).insertInto(resource.table).values(row).execute()
        await recordActivity(trx, createItemActivity(name, null, item), change)
        return ok({ value: item as never, revision: await readOrBumpRevision(trx, resource, projectId) })
      }),

    updateResource: (name, projectId, id, patch, flags, change, basedOn) =>
      rollBackIfRefused(db, async trx => {
        const resource: Resource = resources[name]
        const current = await findItem(trx, name, projectId, id)
        if (current === null) return err('not_found')
        if (isChanged(resource, current, basedOn)) return err('flag_changed')
        const ofFlags = await applyFlagWrites(trx, projectId, flags, change)
        if (!ofFlags.ok) return ofFlags
        const patched = { ...ofFlags.value, ...omitUndefined(patch), updatedAtMs: change.atMs }
        const item = patchItem<Resource>(resource, current, patched) as AnyItem
        await toUntypedTables(trx)
          .updateTable(resource.table)
          .set(toResourceRow(resource, item))
          .where('id', '=', id)
          .execute()
        await recordActivity(trx, createItemActivity(name, current, item), change)
        return ok({ value: item as never, revision: await readOrBumpRevision(trx, resource, projectId) })
      }),

    deleteResource: (name, projectId, id, flags, change, options = {}) =>
      rollBackIfRefused(db, async trx => {
        const resource: Resource = resources[name]
        const current = await findItem(trx, name, projectId, id)
        if (current === null) return err('not_found')
        if (isChanged(resource, current, options.basedOn)) return err('flag_changed')
        if (await haveDefinitionsChanged(trx, projectId, options)) return err('definitions_changed')
        const ofFlags = await applyFlagWrites(trx, projectId, flags, change)
        if (!ofFlags.ok) return ofFlags
        const items = toUntypedTables(trx)
        await (resource.keepsDeleted
          ? items
              .updateTable(resource.table)
              .set({ deleted: 1, updated_at: change.atMs })
              .where('id', '=', id)
              .execute()
          : items.deleteFrom(resource.table).where('id', '=', id).execute())
        if (name === 'experiment' && !(await unmarkFlag(trx, current as Item<'experiment'>, change)))
          return err('flag_changed')
        await recordActivity(trx, createItemActivity(name, current, null), change)
        return ok({ value: null, revision: await readOrBumpRevision(trx, resource, projectId) })
      }),

    findResource: (name, projectId, id) => findItem(db, name, projectId, id),
    listResources: (name, projectId, query) => listResourceItems(db, name, projectId, query),
  }
}

async function findItem<N extends ResourceName>(
  db: Kysely<StateSchema>,
  name: N,
  projectId: number,
  id: string | number,
): Promise<Item<N> | null> {
  const resource: Resource = resources[name]
  const row = await selectResourceItems(db, resource, projectId).selectAll().where('id', '=', id).executeTakeFirst()
  return row === undefined ? null : (toResourceItem(resource, row as RowOf<Resource>) as Item<N>)
}

function readOrBumpRevision(trx: Kysely<StateSchema>, { keepsRevision }: Resource, projectId: number): Promise<number> {
  return keepsRevision ? readRevision(trx) : bumpRevision(trx, projectId)
}

function pickFields({ fields }: Resource, values: Readonly<Record<string, unknown>>): AnyItem {
  return Object.fromEntries(Object.keys(fields).map(key => [key, values[key]])) as AnyItem
}

/**
 * Whether the stored item differs from the item on which a change is based. @param basedOn if absent, undefined, or null
 * when the call comes from another thread.
 */
function isChanged(resource: Resource, stored: AnyItem, basedOn: AnyItem | null | undefined): boolean {
  if (basedOn === undefined || basedOn === null) return false
  return JSON.stringify(toResourceRow(resource, stored)) !== JSON.stringify(toResourceRow(resource, basedOn))
}

function createItemActivity(name: ResourceName, before: AnyItem | null, after: AnyItem | null): NewActivity | null {
  const { projectId, id, name: itemName } = (after ?? before)!
  const toLoggedOrNull = (item: AnyItem | null) => item && toActivityLogFields<Resource>(resources[name], item)
  return createActivityEntry(
    { kind: name, projectId, itemId: String(id), itemName },
    toLoggedOrNull(before),
    toLoggedOrNull(after),
  )
}

/** @returns a map from each of the item's fields that names a flag to the id of the flag that was written. */
async function applyFlagWrites(
  trx: Kysely<StateSchema>,
  projectId: number,
  flags: Readonly<Record<string, FlagWrite | null | undefined>>,
  change: Change,
): Promise<Result<Readonly<Record<string, number>>, FlagWriteRefusal>> {
  const ids: Record<string, number> = {}
  for (const [field, write] of Object.entries(flags)) {
    if (write === null || write === undefined) continue
    const written = await applyFlagWrite(trx, projectId, write, change)
    if (!written.ok) return written
    ids[field] = written.value
  }
  return ok(ids)
}

async function isFlagInUse(trx: Kysely<StateSchema>, projectId: number, flagId: number | undefined): Promise<boolean> {
  if (flagId === undefined) return false
  const other = await trx
    .selectFrom('early_access_feature')
    .select('id')
    .where('project_id', '=', projectId)
    .where('feature_flag_id', '=', flagId)
    .executeTakeFirst()
  return other !== undefined
}

/**
 * Removes the mark `has_experiment` from the flag of a deleted experiment, unless another experiment uses the flag.
 * @returns false when the flag was changed at the same moment.
 */
async function unmarkFlag(
  trx: Kysely<StateSchema>,
  { projectId, flagId }: Item<'experiment'>,
  change: Change,
): Promise<boolean> {
  const other = await trx
    .selectFrom('experiment')
    .select('id')
    .where('project_id', '=', projectId)
    .where('feature_flag_id', '=', flagId)
    .where('deleted', '=', 0)
    .executeTakeFirst()
  if (other !== undefined) return true
  const changed = await updateFlagRow(trx, projectId, flagId, { hasExperiment: false }, change)
  // `not_found` is fine: the flag is already deleted, so it has no mark to remove.
  return changed.ok || changed.error === 'not_found'
}

/** @returns the id of the flag that was written. */
async function applyFlagWrite(
  trx: Kysely<StateSchema>,
  projectId: number,
  write: FlagWrite,
  change: Change,
): Promise<Result<number, FlagWriteRefusal>> {
  if (await haveDefinitionsChanged(trx, projectId, write)) return err('definitions_changed')
  if (write.kind === 'create') {
    const inserted = await insertFlag(trx, toStorableFields(write.flag), change, write.hasExperiment)
    return inserted.ok ? ok(inserted.value.id) : inserted
  }
  const { flagId, expectedVersion } = write
  const changed = await updateFlagRow(trx, projectId, flagId, toStorableFields(write.patch), change, expectedVersion)
  if (changed.ok) return ok(flagId)
  const { error } = changed
  return err(error === 'key_taken' || error === 'flags_too_large' ? error : 'flag_changed')
}

/** Runs `body` in a transaction, and rolls it back when `body` returns a refusal. */
async function rollBackIfRefused<T, E>(
  db: Kysely<StateSchema>,
  body: (trx: Kysely<StateSchema>) => Promise<Result<T, E>>,
): Promise<Result<T, E>> {
  let refused: { readonly ok: false; readonly error: E } | undefined
  try {
    return await db.transaction().execute(async trx => {
      const result = await body(trx)
      if (result.ok) return result
      refused = result
      throw new RolledBack()
    })
  } catch (cause) {
    if (cause instanceof RolledBack && refused !== undefined) return refused
    throw cause
  }
}

class RolledBack extends Error {}
