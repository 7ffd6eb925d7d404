// Lists of early access features, surveys and experiments.

import { type Kysely, sql } from 'kysely'
import { filterExperiments, type ListedExperiment } from '#core/experiments/filter-experiments.ts'
import { getOwnValue } from '#core/json.ts'
import type { Resource } from '#core/resource.ts'
import { experimentResource } from '#core/resources/experiment.ts'
import { type Item, type ResourceName, resources } from '#core/resources/resources.ts'
import { surveyResource } from '#core/resources/survey.ts'
import type { ItemQuery, PageQuery } from '#ports/state/resource-store.ts'
import type { Page } from '#ports/state/written.ts'
import { containsTextSql, isAuthorOneOfSql, isInListSql } from '../tables/conditions.ts'
import { countFittingRows, readPage } from '../tables/read-pages.ts'
import { toResourceItem } from '../tables/resource-rows.ts'
import { parseStoredJsonObject, toSqlBoolean } from '../tables/rows.ts'
import type { StateSchema } from '../tables/schema.ts'

const contentBytes = sql<number>`octet_length(content)`.as('bytes')
/** How many rows a search reads at a time; fewer when rows are large. */
const searchedPerQuery = 500

type List<N extends ResourceName> = (
  db: Kysely<StateSchema>,
  projectId: number,
  query: ItemQuery<N>,
) => Promise<Page<Item<N>>>

/** The lists that have filters or an order other than newest first. */
const lists: { readonly [N in ResourceName]?: List<N> } = {
  survey: async (db, projectId, { limit, offset, ...query }) =>
    readNewest(surveyResource, await selectSurveys(db, projectId, query), { limit, offset }),

  async experiment(db, projectId, { limit, offset, nowMs, ...filter }) {
    const chosen = filterExperiments(await readExperiments(db, projectId), filter, nowMs)
    const page = chosen.slice(offset, offset + limit)
    const ids = page.slice(0, countFittingRows(page)).map(({ id }) => id)
    if (ids.length === 0) return { count: chosen.length, results: [] }
    const rows = await db.selectFrom('experiment').selectAll().where('id', 'in', ids).execute()
    const itemOfId = new Map(rows.map(row => [Number(row.id), toResourceItem(experimentResource, row)]))
    return { count: chosen.length, results: ids.map(id => itemOfId.get(id)!) }
  },
}

export function listResourceItems<N extends ResourceName>(
  db: Kysely<StateSchema>,
  name: N,
  projectId: number,
  query: ItemQuery<N>,
): Promise<Page<Item<N>>> {
  const list = lists[name] as List<N> | undefined
  if (list !== undefined) return list(db, projectId, query)
  return readNewest(resources[name], selectResourceItems(db, resources[name], projectId), query)
}

/** Gives the database a type with arbitrary tables and columns, for queries whose resource is known only at run time. */
export function toUntypedTables(db: Kysely<StateSchema>) {
  return db as unknown as Kysely<Record<string, Record<string, string | number | null>>>
}

/** The items of a project that are not deleted. */
export function selectResourceItems(db: Kysely<StateSchema>, { table, keepsDeleted }: Resource, projectId: number) {
  const items = toUntypedTables(db).selectFrom(table).where('project_id', '=', projectId)
  return keepsDeleted ? items.where('deleted', '=', 0) : items
}

async function readNewest<N extends ResourceName>(
  resource: (typeof resources)[N] & Resource,
  items: ReturnType<typeof selectResourceItems>,
  page: PageQuery,
): Promise<Page<Item<N>>> {
  const newest = items.orderBy('created_at', 'desc').orderBy('id', 'desc')
  return readPage(
    newest as never,
    textBytesSql(resource),
    page,
    row => toResourceItem<Resource>(resource, row) as Item<N>,
  )
}

function textBytesSql({ fields }: Resource) {
  const texts = Object.values(fields).filter(({ kind }) => !['integer', 'boolean', 'instant'].includes(kind))
  const sizes = texts.map(({ column }) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`)
  return sql<number>`${sql.join(sizes, sql` + `)}`
}

async function selectSurveys(
  db: Kysely<StateSchema>,
  projectId: number,
  { search, archived, status, type, ids, createdBy }: Omit<ItemQuery<'survey'>, keyof PageQuery>,
) {
  let surveys = db.selectFrom('survey').where('project_id', '=', projectId)
  if (archived !== undefined) surveys = surveys.where('archived', '=', toSqlBoolean(archived))
  if (type !== undefined) surveys = surveys.where('type', '=', type)
  if (ids !== undefined) surveys = surveys.where(isInListSql('id', ids))
  if (createdBy !== undefined) surveys = surveys.where(isAuthorOneOfSql('created_by', createdBy))
  if (status !== undefined) surveys = surveys.where('start_date', status === 'draft' ? 'is' : 'is not', null)
  if (status === 'running' || status === 'complete')
    surveys = surveys.where('end_date', status === 'running' ? 'is' : 'is not', null)
  if (search === undefined || search === '') return surveys
  // The description is escaped JSON inside `content`, so a match may also be in another field: matches are only candidates.
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
      const description = getOwnValue(parseStoredJsonObject(content), 'description')
      const texts = typeof description === 'string' ? [name, description] : [name]
      if (texts.some(text => text.toLowerCase().includes(search.toLowerCase()))) found.push(id)
    }
    offset += rows.length
  }
  return surveys.where(isInListSql('id', found))
}

/** Every experiment of a project, without its content. */
async function readExperiments(
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
    const { content: _none, ...experiment } = toResourceItem(experimentResource, { ...row, content: '{}' })
    return { ...experiment, flagIsActive: active === 1, bytes: Number(bytes) }
  })
}

const narrowColumns = [
  ...(['experiment.id', 'experiment.project_id', 'experiment.name', 'feature_flag_id', 'owns_flag'] as const),
  ...(['start_date', 'end_date', 'experiment.archived', 'experiment.created_at', 'experiment.updated_at'] as const),
  'experiment.created_by' as const,
]
