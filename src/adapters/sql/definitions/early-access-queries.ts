// Early access features, each with the flag that it controls.

import { type Kysely, sql } from 'kysely'
import type { EarlyAccessFeature } from '#core/early-access/early-access-feature.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { err, ok } from '#core/result.ts'
import type { EarlyAccessStore } from '#ports/state/early-access-store.ts'
import { countFittingRows } from '../tables/fitting-rows.ts'
import { bumpRevision } from '../tables/revision-queries.ts'
import type { StateSchema } from '../tables/schema.ts'
import { earlyAccessFeatureOf, earlyAccessFeatureRowOf } from './definition-rows.ts'
import { applyFlagWrite, isChanged, rollBackIfRefused } from './flag-writes.ts'

export function createEarlyAccessQueries(db: Kysely<StateSchema>): EarlyAccessStore {
  return {
    createEarlyAccessFeature: (input, flag, change) =>
      rollBackIfRefused(db, async trx => {
        const { projectId } = input
        const written = await applyFlagWrite(trx, projectId, flag, change)
        if (!written.ok) return written
        const feature: EarlyAccessFeature = {
          ...input,
          ...{ flagId: written.value, flagIsOwn: flag.kind === 'create' },
          ...{ createdAtMs: change.atMs, createdBy: change.by },
        }
        const other = await trx
          .selectFrom('early_access_feature')
          .select('id')
          .where('project_id', '=', projectId)
          .where('feature_flag_id', '=', written.value)
          .executeTakeFirst()
        if (other !== undefined) return err('flag_in_use')
        await trx.insertInto('early_access_feature').values(earlyAccessFeatureRowOf(feature)).execute()
        return ok({ value: feature, revision: await bumpRevision(trx, projectId) })
      }),

    updateEarlyAccessFeature: (projectId, id, patch, flag, change, basedOn) =>
      rollBackIfRefused(db, async trx => {
        const current = await findFeature(trx, projectId, id)
        if (current === null) return err('not_found')
        if (isChanged(earlyAccessFeatureRowOf, current, basedOn)) return err('flag_changed')
        const written = flag === null ? null : await applyFlagWrite(trx, projectId, flag, change)
        if (written?.ok === false) return written
        const feature: EarlyAccessFeature = { ...current, ...omitUndefined(patch) }
        await trx
          .updateTable('early_access_feature')
          .set(earlyAccessFeatureRowOf(feature))
          .where('id', '=', id)
          .execute()
        return ok({ value: feature, revision: await bumpRevision(trx, projectId) })
      }),

    deleteEarlyAccessFeature: (projectId, id, flag, change, basedOn) =>
      rollBackIfRefused(db, async trx => {
        const current = await findFeature(trx, projectId, id)
        if (current === null) return err('not_found')
        if (isChanged(earlyAccessFeatureRowOf, current, basedOn)) return err('flag_changed')
        const written = flag === null ? null : await applyFlagWrite(trx, projectId, flag, change)
        if (written?.ok === false) return written
        await trx.deleteFrom('early_access_feature').where('id', '=', id).execute()
        return ok({ value: null, revision: await bumpRevision(trx, projectId) })
      }),

    findEarlyAccessFeature: (projectId, id) => findFeature(db, projectId, id),

    async listEarlyAccessFeatures(projectId, { limit, offset }) {
      const features = db.selectFrom('early_access_feature').where('project_id', '=', projectId)
      const { count } = await features.select(eb => eb.fn.countAll().as('count')).executeTakeFirstOrThrow()
      const page = features.orderBy('created_at', 'desc').orderBy('id', 'desc').offset(offset)
      const sizes = await page
        .select(sql<number>`octet_length(payload) + octet_length(description)`.as('bytes'))
        .limit(limit)
        .execute()
      const rows = await page.selectAll().limit(countFittingRows(sizes)).execute()
      return { count: Number(count), results: rows.map(earlyAccessFeatureOf) }
    },
  }
}

async function findFeature(db: Kysely<StateSchema>, projectId: number, id: string): Promise<EarlyAccessFeature | null> {
  const row = await db
    .selectFrom('early_access_feature')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', projectId)
    .executeTakeFirst()
  return row === undefined ? null : earlyAccessFeatureOf(row)
}
