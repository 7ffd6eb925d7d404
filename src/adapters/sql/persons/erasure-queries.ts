// Erasures of persons: the rows that a request deletes at once, and the record of what the worker must remove.

import { type Kysely, type Selectable, sql } from 'kysely'
import { isJsonObject, type JsonValue, parseJson } from '#core/json.ts'
import type { ErasureOutline, PersonErasure, RemovedRows } from '#core/persons/erasure.ts'
import { mergeRowRanges, type RowRange } from '#core/processing/row-ranges.ts'
import type { ErasureStore } from '#ports/state/erasure-store.ts'
import { countRows, readInSlices, splitIntoSlices } from '../tables/read-pages.ts'
import { parseLogEnds, parseStoredAuthor, parseStoredJsonObject } from '../tables/rows.ts'
import type { PersonErasureTable, StateSchema } from '../tables/schema.ts'
import { toStorableText } from '../tables/wrap-methods.ts'
import { erasePersonRows, idsPerErasureMax } from './erase-persons.ts'

const erasuresAtOnceMax = 50
const openPerPage = 1_000
const mentionsPerPage = 1_000

export function createErasureQueries(db: Kysely<StateSchema>): ErasureStore {
  return {
    async findPersonIds(projectId, by) {
      const persons = db.selectFrom('person').select('id').where('project_id', '=', projectId)
      const mappings = db.selectFrom('person_distinct_id').select('person_id as id').where('project_id', '=', projectId)
      const found =
        'uuids' in by
          ? await readInSlices(by.uuids, some => persons.where('uuid', 'in', some).execute())
          : await readInSlices(by.distinctIds.map(toStorableText), some =>
              mappings.where('distinct_id', 'in', some).execute(),
            )
      return [...new Set(found.map(({ id }) => Number(id)))].sort((a, b) => a - b)
    },

    erasePersons: (erasure, change) => db.transaction().execute(trx => erasePersonRows(trx, erasure, change)),

    async listErasedPersons(projectId, { personUuid, isDone, limit, offset }) {
      let persons = db
        .selectFrom('erased_person')
        .innerJoin('person_erasure', 'person_erasure.id', 'erased_person.erasure_id')
        .where('erased_person.project_id', '=', projectId)
      if (personUuid !== undefined) persons = persons.where('erased_person.person_uuid', '=', personUuid)
      if (isDone !== undefined) persons = persons.where('person_erasure.done_at', isDone ? 'is not' : 'is', null)
      const count = await countRows(persons)
      const rows = await persons
        .selectAll('person_erasure')
        .select(['erased_person.person_uuid as person_uuid'])
        .select(({ selectFrom, fn }) =>
          selectFrom('erased_person as other')
            .select(fn.countAll<number>().as('persons'))
            .whereRef('other.erasure_id', '=', 'person_erasure.id')
            .as('person_count'),
        )
        .orderBy('person_erasure.id', 'desc')
        .orderBy('erased_person.person_uuid')
        .limit(limit)
        .offset(offset)
        .execute()
      return {
        count,
        results: rows.map(row => ({
          ...toTerms(row),
          erasureId: Number(row.id),
          uuid: row.person_uuid,
          requestedBy: parseStoredAuthor(row.requested_by),
          requestedAtMs: Number(row.requested_at),
          doneAtMs: row.done_at === null ? null : Number(row.done_at),
          personCount: Number(row.person_count),
          removed: row.removed === null ? null : (JSON.parse(row.removed) as RemovedRows),
        })),
      }
    },

    countOpenErasures: () => countRows(db.selectFrom('person_erasure').where('done_at', 'is', null)),

    async listOpenErasures(after) {
      const open = db.selectFrom('person_erasure').selectAll().where('done_at', 'is', null).where('id', '>', after)
      return (await open.orderBy('id').limit(openPerPage).execute()).map(toOutline)
    },

    async readErasures(erasureIds) {
      const ids = erasureIds.slice(0, erasuresAtOnceMax)
      if (ids.length === 0) return []
      const asked = db.selectFrom('person_erasure').selectAll().where('id', 'in', ids)
      return readErasureSubjects(db, await asked.orderBy('id').execute())
    },

    async deleteMentions(projectId, allNames) {
      const names = new Set(allNames)
      await deleteMentioning(db, 'ingestion_warning', names, after =>
        db
          .selectFrom('ingestion_warning')
          .select(['id', 'details'])
          .where('project_id', '=', projectId)
          .where('id', '>', after)
          .orderBy('id')
          .limit(mentionsPerPage)
          .execute(),
      )
      await deleteMentioning(db, 'import_note_sample', names, after =>
        db
          .selectFrom('import_note_sample')
          .innerJoin('import_job', 'import_job.id', 'import_note_sample.import_job_id')
          .select(['import_note_sample.id as id', 'details'])
          .where('import_job.project_id', '=', projectId)
          .where('import_note_sample.id', '>', after)
          .orderBy('import_note_sample.id')
          .limit(mentionsPerPage)
          .execute(),
      )
    },

    saveRemovedRows: (erasureId, removed, pendingOfJobs) =>
      db.transaction().execute(async trx => {
        const { numUpdatedRows } = await trx
          .updateTable('person_erasure')
          .set({ removed: JSON.stringify(removed) })
          .where('id', '=', erasureId)
          .where('removed', 'is', null)
          .executeTakeFirst()
        if (numUpdatedRows === 0n) return
        for (const { importJobId, count } of pendingOfJobs) await subtractErasedRows(trx, importJobId, count)
      }),

    recordEmptiedRanges: (erasureId, ranges) =>
      db.transaction().execute(async trx => {
        const row = await trx
          .selectFrom('person_erasure')
          .select('emptied')
          .where('id', '=', erasureId)
          .executeTakeFirst()
        if (row === undefined) return
        const emptied = mergeRowRanges([...parseEmptiedRanges(row), ...ranges])
        await trx
          .updateTable('person_erasure')
          .set({ emptied: JSON.stringify(emptied) })
          .where('id', '=', erasureId)
          .execute()
      }),

    async listEmptiedRanges() {
      const rows = await db.selectFrom('person_erasure').select('emptied').where('emptied', 'is not', null).execute()
      return rows.flatMap(parseEmptiedRanges)
    },

    async finishErasures(erasureIds, doneAtMs) {
      for (const ids of splitIntoSlices(erasureIds))
        await db
          .updateTable('person_erasure')
          .set({ done_at: doneAtMs })
          .where('id', 'in', ids)
          .where('done_at', 'is', null)
          .execute()
    },

    async listErasuresWithIds() {
      const kept = db
        .selectFrom('person_erasure')
        .selectAll()
        .where('done_at', 'is not', null)
        .where('id', 'in', eb => eb.selectFrom('erased_distinct_id').select('erasure_id'))
      return readErasureSubjects(db, await kept.orderBy('id').limit(erasuresAtOnceMax).execute())
    },

    async reopenErasures() {
      await db
        .updateTable('person_erasure')
        .set({ done_at: null })
        .where('id', 'in', eb => eb.selectFrom('erased_distinct_id').select('erasure_id'))
        .execute()
    },

    forgetErasedIds: erasureId =>
      db.transaction().execute(async trx => {
        const { numUpdatedRows } = await trx
          .updateTable('person_erasure')
          .set({ emptied: null })
          .where('id', '=', erasureId)
          .where('done_at', 'is not', null)
          .executeTakeFirst()
        if (numUpdatedRows === 0n) return
        await trx.deleteFrom('erased_distinct_id').where('erasure_id', '=', erasureId).execute()
      }),

    async raiseErasureCounts(counts) {
      for (const { projectId, count } of counts)
        await db
          .updateTable('project')
          .set({ erasures: count })
          .where('id', '=', projectId)
          .where('erasures', '<', count)
          .execute()
    },
  }
}

/**
 * Deletes the rows whose details name one of the ids.
 * @param readPage returns the rows after an id, in the order of their ids.
 */
async function deleteMentioning(
  db: Kysely<StateSchema>,
  table: 'ingestion_warning' | 'import_note_sample',
  names: ReadonlySet<string>,
  readPage: (after: number) => Promise<readonly { id: number; details: string }[]>,
): Promise<void> {
  for (let after = 0; ; ) {
    const page = await readPage(after)
    const ids = page.filter(({ details }) => mentionsAny(details, names)).map(({ id }) => id)
    for (const some of splitIntoSlices(ids)) await db.deleteFrom(table).where('id', 'in', some).execute()
    if (page.length < mentionsPerPage) return
    after = Number(page.at(-1)!.id)
  }
}

/** Reads the distinct ids and persons of the first erasures, of as many erasures as fit into one step of the worker. */
async function readErasureSubjects(
  db: Kysely<StateSchema>,
  rows: readonly Selectable<PersonErasureTable>[],
): Promise<PersonErasure[]> {
  const erasures: PersonErasure[] = []
  let idCount = 0
  for (const row of rows) {
    const outline = toOutline(row)
    const { id } = outline
    const ofErasure = db.selectFrom('erased_distinct_id').where('erasure_id', '=', id)
    const ids = await ofErasure.select(['distinct_id', 'own_uuid']).execute()
    idCount += ids.length
    if (erasures.length > 0 && idCount > idsPerErasureMax) break
    const persons = await db.selectFrom('erased_person').select('person_uuid').where('erasure_id', '=', id).execute()
    const uuids = [...persons.map(person => person.person_uuid), ...ids.map(({ own_uuid }) => own_uuid)]
    erasures.push({
      ...outline,
      distinctIds: ids.map(({ distinct_id }) => distinct_id),
      personUuids: outline.keepsPerson ? [] : [...new Set(uuids)].filter(uuid => uuid !== ''),
    })
  }
  return erasures
}

function toOutline(row: Selectable<PersonErasureTable>): ErasureOutline {
  return {
    id: Number(row.id),
    projectId: Number(row.project_id),
    erasures: Number(row.erasures),
    mirrorVersion: Number(row.mirror_version),
    isCounted: row.removed !== null,
    ...toTerms(row),
    ...parseLogEnds(row),
  }
}

/** Subtracts erased rows from the job's counts, so that publishing does not report them as missing. */
async function subtractErasedRows(trx: Kysely<StateSchema>, importJobId: number, count: number): Promise<void> {
  const job = await trx.selectFrom('import_job').select('progress').where('id', '=', importJobId).executeTakeFirst()
  if (job === undefined) return
  const progress = parseStoredJsonObject(job.progress)
  const verified = progress.verified_rows
  await trx
    .updateTable('import_job')
    .set({
      stored_rows: sql<number>`stored_rows - ${count}`,
      ...(typeof verified === 'number' && {
        progress: JSON.stringify({ ...progress, verified_rows: verified - count }),
      }),
    })
    .where('id', '=', importJobId)
    .execute()
}

type Terms = Pick<Selectable<PersonErasureTable>, 'keeps_person' | 'deletes_events' | 'deletes_recordings'>

function toTerms(row: Terms) {
  return {
    keepsPerson: row.keeps_person === 1,
    deletesEvents: row.deletes_events === 1,
    deletesRecordings: row.deletes_recordings === 1,
  }
}

function parseEmptiedRanges({ emptied }: Pick<Selectable<PersonErasureTable>, 'emptied'>): RowRange[] {
  return emptied === null ? [] : (JSON.parse(emptied) as RowRange[])
}

function mentionsAny(detailsJson: string, names: ReadonlySet<string>): boolean {
  const holds = (value: JsonValue): boolean => {
    if (typeof value === 'string') return names.has(value)
    if (Array.isArray(value)) return value.some(holds)
    return isJsonObject(value) && Object.values(value).some(each => each !== undefined && holds(each))
  }
  return holds(parseJson(detailsJson))
}
