// Experiments, each with its flag. A deleted experiment keeps its row, so that its id is never used again.

import { type Kysely, type Selectable, sql } from 'kysely'
import { chooseExperiments, type ListedExperiment } from '#core/experiments/choose-experiments.ts'
import type { Experiment } from '#core/experiments/experiment.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { err, ok } from '#core/result.ts'
import type { ExperimentStore } from '#ports/state/experiment-store.ts'
import { countFittingRows } from '../tables/fitting-rows.ts'
import { bumpRevision, nextId } from '../tables/revision-queries.ts'
import { authorOf, authorText, flagBit, jsonObjectOf, jsonText } from '../tables/rows.ts'
import type { ExperimentTable, StateSchema } from '../tables/schema.ts'
import { haveLinksChanged } from './cohort-queries.ts'
import { toNumberOrNull } from './definition-rows.ts'
import { changeFlag } from './flag-queries.ts'
import { applyFlagWrite, isChanged, rollBackIfRefused } from './flag-writes.ts'

export function createExperimentQueries(db: Kysely<StateSchema>): ExperimentStore {
  return {
    createExperiment: (input, flag, change) =>
      rollBackIfRefused(db, async trx => {
        const { projectId } = input
        const written = await applyFlagWrite(trx, projectId, flag, change)
        if (!written.ok) return written
        const id = await nextId(trx, 'experiment')
        const experiment: Experiment = {
          ...input,
          id,
          flagId: written.value,
          flagIsOwn: flag.kind === 'create',
          createdAtMs: change.atMs,
          updatedAtMs: change.atMs,
          createdBy: change.by,
        }
        await trx
          .insertInto('experiment')
          .values({ ...rowOf(experiment), deleted: 0 })
          .execute()
        return ok({ value: experiment, revision: await bumpRevision(trx, projectId) })
      }),

    updateExperiment: (projectId, id, patch, flag, change, basedOn) =>
      rollBackIfRefused(db, async trx => {
        const current = await find(trx, projectId, id)
        if (current === null) return err('not_found')
        if (isChanged(rowOf, current, basedOn)) return err('flag_changed')
        const written = flag === null ? null : await applyFlagWrite(trx, projectId, flag, change)
        if (written?.ok === false) return written
        const experiment: Experiment = { ...current, ...omitUndefined(patch), updatedAtMs: change.atMs }
        await trx.updateTable('experiment').set(rowOf(experiment)).where('id', '=', id).execute()
        return ok({ value: experiment, revision: await bumpRevision(trx, projectId) })
      }),

    deleteExperiment: (projectId, id, change, linked) =>
      rollBackIfRefused(db, async trx => {
        const current = await find(trx, projectId, id)
        if (current === null) return err('not_found')
        if (await haveLinksChanged(trx, projectId, linked)) return err('definitions_changed')
        await trx.updateTable('experiment').set({ deleted: 1, updated_at: change.atMs }).where('id', '=', id).execute()
        const other = await trx
          .selectFrom('experiment')
          .select('id')
          .where('project_id', '=', projectId)
          .where('feature_flag_id', '=', current.flagId)
          .where('deleted', '=', 0)
          .executeTakeFirst()
        if (other === undefined) {
          const changed = await changeFlag(trx, projectId, current.flagId, { hasExperiment: false }, change)
          // A flag that is already deleted has no mark to remove.
          if (!changed.ok && changed.error !== 'not_found') return err('flag_changed')
        }
        return ok({ value: null, revision: await bumpRevision(trx, projectId) })
      }),

    findExperiment: (projectId, id) => find(db, projectId, id),

    async listExperiments(projectId, { limit, offset, nowMs, ...filter }) {
      const chosen = chooseExperiments(await listExperiments(db, projectId), filter, nowMs)
      const page = chosen.slice(offset, offset + limit)
      const ids = page.slice(0, countFittingRows(page)).map(({ id }) => id)
      if (ids.length === 0) return { count: chosen.length, results: [] }
      const rows = await db.selectFrom('experiment').selectAll().where('id', 'in', ids).execute()
      const rowOf = new Map(rows.map(row => [Number(row.id), row]))
      return { count: chosen.length, results: ids.map(id => experimentOf(rowOf.get(id)!)) }
    },
  }
}

/** Every experiment of a project, without its content. */
async function listExperiments(
  db: Kysely<StateSchema>,
  projectId: number,
): Promise<(ListedExperiment & { readonly bytes: number })[]> {
  const rows = await db
    .selectFrom('experiment')
    .leftJoin('feature_flag', 'feature_flag.id', 'experiment.feature_flag_id')
    .select(narrowColumns)
    .select(['feature_flag.active as flag_active', sql<number>`octet_length(content)`.as('bytes')])
    .where('experiment.project_id', '=', projectId)
    .where('experiment.deleted', '=', 0)
    .execute()
  return rows.map(({ flag_active: active, bytes, ...row }) => {
    const { content: _none, ...experiment } = experimentOf({ ...row, content: '{}', deleted: 0 })
    return { ...experiment, flagIsActive: active === 1, bytes: Number(bytes) }
  })
}

const narrowColumns = [
  ...(['experiment.id', 'experiment.project_id', 'experiment.name', 'feature_flag_id', 'owns_flag'] as const),
  ...(['start_date', 'end_date', 'experiment.archived', 'experiment.created_at', 'experiment.updated_at'] as const),
  'experiment.created_by' as const,
]

async function find(db: Kysely<StateSchema>, projectId: number, id: number): Promise<Experiment | null> {
  const row = await db
    .selectFrom('experiment')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', projectId)
    .where('deleted', '=', 0)
    .executeTakeFirst()
  return row === undefined ? null : experimentOf(row)
}

function experimentOf(row: Selectable<ExperimentTable>): Experiment {
  return {
    id: Number(row.id),
    projectId: Number(row.project_id),
    name: row.name,
    flagId: Number(row.feature_flag_id),
    flagIsOwn: row.owns_flag === 1,
    content: jsonObjectOf(row.content),
    startDateMs: toNumberOrNull(row.start_date),
    endDateMs: toNumberOrNull(row.end_date),
    archived: row.archived === 1,
    createdAtMs: Number(row.created_at),
    updatedAtMs: Number(row.updated_at),
    createdBy: authorOf(row.created_by),
  }
}

function rowOf(experiment: Experiment): Omit<Selectable<ExperimentTable>, 'deleted'> {
  return {
    id: experiment.id,
    project_id: experiment.projectId,
    name: experiment.name,
    feature_flag_id: experiment.flagId,
    owns_flag: flagBit(experiment.flagIsOwn),
    content: jsonText(experiment.content),
    start_date: experiment.startDateMs,
    end_date: experiment.endDateMs,
    archived: flagBit(experiment.archived),
    created_at: experiment.createdAtMs,
    updated_at: experiment.updatedAtMs,
    created_by: authorText(experiment.createdBy),
  }
}
