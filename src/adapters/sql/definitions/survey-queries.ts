// Surveys, each with the flags that were made for it.

import { type Kysely, sql } from 'kysely'
import type { Change } from '#core/author.ts'
import { ownValue } from '#core/json.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Survey } from '#core/surveys/survey.ts'
import type { FlagWriteRefusal } from '#ports/state/flag-write.ts'
import type { SurveyFlagWrites, SurveyQuery, SurveyStore } from '#ports/state/survey-store.ts'
import { countFittingRows } from '../tables/fitting-rows.ts'
import { containsTextSql, isByOneOf, isIn } from '../tables/like.ts'
import { bumpRevision } from '../tables/revision-queries.ts'
import { flagBit, jsonObjectOf } from '../tables/rows.ts'
import type { StateSchema } from '../tables/schema.ts'
import { surveyOf, surveyRowOf } from './definition-rows.ts'
import { applyFlagWrite, isChanged, rollBackIfRefused } from './flag-writes.ts'

const contentBytes = sql<number>`octet_length(content)`.as('bytes')
/** Rows that a search reads at a time, fewer where they are large. */
const searchedPerQuery = 500

export function createSurveyQueries(db: Kysely<StateSchema>): SurveyStore {
  return {
    createSurvey: (input, flags, change) =>
      rollBackIfRefused(db, async trx => {
        const { projectId } = input
        const made = await applyFlagWrites(trx, projectId, flags, change)
        if (!made.ok) return made
        const times = { createdAtMs: change.atMs, updatedAtMs: change.atMs, createdBy: change.by }
        const survey: Survey = {
          ...input,
          targetingFlagId: null,
          internalTargetingFlagId: null,
          ...made.value,
          ...times,
        }
        await trx.insertInto('survey').values(surveyRowOf(survey)).execute()
        return ok({ value: survey, revision: await bumpRevision(trx, projectId) })
      }),

    updateSurvey: (projectId, id, patch, flags, change, basedOn) =>
      rollBackIfRefused(db, async trx => {
        const current = await find(trx, projectId, id)
        if (current === null) return err('not_found')
        if (isChanged(surveyRowOf, current, basedOn)) return err('flag_changed')
        const made = await applyFlagWrites(trx, projectId, flags, change)
        if (!made.ok) return made
        const survey: Survey = { ...current, ...made.value, ...omitUndefined(patch), updatedAtMs: change.atMs }
        await trx.updateTable('survey').set(surveyRowOf(survey)).where('id', '=', id).execute()
        return ok({ value: survey, revision: await bumpRevision(trx, projectId) })
      }),

    deleteSurvey: (projectId, id, flags, change, basedOn) =>
      rollBackIfRefused(db, async trx => {
        const current = await find(trx, projectId, id)
        if (current === null) return err('not_found')
        if (isChanged(surveyRowOf, current, basedOn)) return err('flag_changed')
        const written = await applyFlagWrites(trx, projectId, flags, change)
        if (!written.ok) return written
        await trx.deleteFrom('survey').where('id', '=', id).execute()
        return ok({ value: null, revision: await bumpRevision(trx, projectId) })
      }),

    findSurvey: (projectId, id) => find(db, projectId, id),

    async listSurveys(projectId, { limit, offset, ...query }) {
      const surveys = await selectSurveys(db, projectId, query)
      const { count } = await surveys.select(eb => eb.fn.countAll().as('count')).executeTakeFirstOrThrow()
      const page = surveys.orderBy('created_at', 'desc').orderBy('id', 'desc').offset(offset)
      const sizes = await page.select(contentBytes).limit(limit).execute()
      const rows = await page.selectAll().limit(countFittingRows(sizes)).execute()
      return { count: Number(count), results: rows.map(surveyOf) }
    },
  }
}

async function selectSurveys(
  db: Kysely<StateSchema>,
  projectId: number,
  { search, archived, status, type, ids, createdBy }: Omit<SurveyQuery, 'limit' | 'offset'>,
) {
  let surveys = db.selectFrom('survey').where('project_id', '=', projectId)
  if (archived !== undefined) surveys = surveys.where('archived', '=', flagBit(archived))
  if (type !== undefined) surveys = surveys.where('type', '=', type)
  if (ids !== undefined) surveys = surveys.where(isIn('id', ids))
  if (createdBy !== undefined) surveys = surveys.where(isByOneOf('created_by', createdBy))
  if (status !== undefined) surveys = surveys.where('start_date', status === 'draft' ? 'is' : 'is not', null)
  if (status === 'running' || status === 'complete')
    surveys = surveys.where('end_date', status === 'running' ? 'is' : 'is not', null)
  if (search === undefined || search === '') return surveys
  // A description is in the JSON of the content, where its text is escaped; a match may be in another field.
  const escaped = JSON.stringify(search).slice(1, -1)
  const candidates = surveys.where(
    sql<boolean>`(${containsTextSql('name', search)} OR ${containsTextSql('content', escaped)})`,
  )
  const found: string[] = []
  for (let offset = 0; ; ) {
    const page = candidates.orderBy('id').offset(offset)
    const sizes = await page.select(contentBytes).limit(searchedPerQuery).execute()
    if (sizes.length === 0) break
    const rows = await page.select(['id', 'name', 'content']).limit(countFittingRows(sizes)).execute()
    for (const { id, name, content } of rows) {
      const description = ownValue(jsonObjectOf(content), 'description')
      const texts = typeof description === 'string' ? [name, description] : [name]
      if (texts.some(text => text.toLowerCase().includes(search.toLowerCase()))) found.push(id)
    }
    offset += rows.length
  }
  return surveys.where(isIn('id', found))
}

/** @returns ids of the flags that were made or changed, by the survey's names for them. */
async function applyFlagWrites(
  trx: Kysely<StateSchema>,
  projectId: number,
  { targeting, internal }: SurveyFlagWrites,
  change: Change,
): Promise<Result<{ targetingFlagId?: number; internalTargetingFlagId?: number }, FlagWriteRefusal>> {
  const ids: { targetingFlagId?: number; internalTargetingFlagId?: number } = {}
  if (targeting) {
    const written = await applyFlagWrite(trx, projectId, targeting, change)
    if (!written.ok) return written
    ids.targetingFlagId = written.value
  }
  if (internal) {
    const written = await applyFlagWrite(trx, projectId, internal, change)
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
