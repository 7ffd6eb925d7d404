// Surveys, each with the flags that were made for it.

import { type Kysely, sql } from 'kysely'
import { definedOf } from '#core/defined-of.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Survey } from '#core/surveys/survey.ts'
import type { FlagWriteRefusal } from '#ports/state/flag-write.ts'
import type { SurveyFlagWrites, SurveyStore } from '#ports/state/survey-store.ts'
import { fittingRows } from '../tables/fitting-rows.ts'
import { containsText } from '../tables/like.ts'
import { bumpRevision } from '../tables/revision-queries.ts'
import type { StateSchema } from '../tables/schema.ts'
import { surveyOf, surveyRowOf } from './definition-rows.ts'
import { applyFlagWrite, isChanged, transactionUnlessRefused } from './flag-writes.ts'

export function surveyQueries(db: Kysely<StateSchema>): SurveyStore {
  return {
    createSurvey: (input, flags) =>
      transactionUnlessRefused(db, async trx => {
        const { projectId } = input
        const made = await applyFlagWrites(trx, projectId, flags)
        if (!made.ok) return made
        const survey: Survey = { ...input, targetingFlagId: null, internalTargetingFlagId: null, ...made.value }
        await trx.insertInto('survey').values(surveyRowOf(survey)).execute()
        return ok({ value: survey, revision: await bumpRevision(trx, projectId) })
      }),

    updateSurvey: (projectId, id, patch, flags, basedOn) =>
      transactionUnlessRefused(db, async trx => {
        const current = await find(trx, projectId, id)
        if (current === null) return err('not_found')
        if (isChanged(surveyRowOf, current, basedOn)) return err('flag_changed')
        const made = await applyFlagWrites(trx, projectId, flags)
        if (!made.ok) return made
        const survey: Survey = { ...current, ...made.value, ...definedOf(patch) }
        await trx.updateTable('survey').set(surveyRowOf(survey)).where('id', '=', id).execute()
        return ok({ value: survey, revision: await bumpRevision(trx, projectId) })
      }),

    deleteSurvey: (projectId, id, flags, basedOn) =>
      transactionUnlessRefused(db, async trx => {
        const current = await find(trx, projectId, id)
        if (current === null) return err('not_found')
        if (isChanged(surveyRowOf, current, basedOn)) return err('flag_changed')
        const written = await applyFlagWrites(trx, projectId, flags)
        if (!written.ok) return written
        await trx.deleteFrom('survey').where('id', '=', id).execute()
        return ok({ value: null, revision: await bumpRevision(trx, projectId) })
      }),

    findSurvey: (projectId, id) => find(db, projectId, id),

    async listSurveys(projectId, { limit, offset, search, archived }) {
      let surveys = db.selectFrom('survey').where('project_id', '=', projectId)
      if (archived !== undefined) surveys = surveys.where('archived', '=', archived ? 1 : 0)
      if (search !== undefined && search !== '') surveys = surveys.where(sql<boolean>`${containsText('name', search)}`)
      const { count } = await surveys.select(eb => eb.fn.countAll().as('count')).executeTakeFirstOrThrow()
      const page = surveys.orderBy('created_at', 'desc').orderBy('id', 'desc').offset(offset)
      const sizes = await page.select(sql<number>`octet_length(content)`.as('bytes')).limit(limit).execute()
      const rows = await page.selectAll().limit(fittingRows(sizes)).execute()
      return { count: Number(count), results: rows.map(surveyOf) }
    },
  }
}

/** @returns ids of the flags that were made or changed, by the survey's names for them. */
async function applyFlagWrites(
  trx: Kysely<StateSchema>,
  projectId: number,
  { targeting, internal }: SurveyFlagWrites,
): Promise<Result<{ targetingFlagId?: number; internalTargetingFlagId?: number }, FlagWriteRefusal>> {
  const ids: { targetingFlagId?: number; internalTargetingFlagId?: number } = {}
  if (targeting) {
    const written = await applyFlagWrite(trx, projectId, targeting)
    if (!written.ok) return written
    ids.targetingFlagId = written.value
  }
  if (internal) {
    const written = await applyFlagWrite(trx, projectId, internal)
    if (!written.ok) return written
    ids.internalTargetingFlagId = written.value
  }
  return ok(ids)
}

async function find(db: Kysely<StateSchema>, projectId: number, id: string): Promise<Survey | null> {
  const row = await db
    .selectFrom('survey')
    .selectAll()
    .where('id', '=', id)
    .where('project_id', '=', projectId)
    .executeTakeFirst()
  return row === undefined ? null : surveyOf(row)
}
