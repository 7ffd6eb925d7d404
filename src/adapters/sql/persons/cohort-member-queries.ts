// Reads and writes the members of static cohorts. Their ids are resolved in the transaction that writes, so that a person
// who is merged into another person at the same moment is found either as the survivor or not at all.

import type { Kysely } from 'kysely'
import type { Change } from '#core/author.ts'
import { isUuid } from '#core/events/uuid.ts'
import type { MemberChange, MemberIds } from '#core/flags/evaluation/member-ids.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { CohortMemberStore, PersonInCohorts, PersonsPage, SearchedPersons } from '#ports/state/cohort-store.ts'
import type { PersonFilters } from '#ports/state/person-store.ts'
import { countRows, splitIntoSlices } from '../tables/read-pages.ts'
import { recordActivity } from '../tables/record-activity.ts'
import type { StateSchema } from '../tables/schema.ts'
import { toStorableText } from '../tables/wrap-methods.ts'
import { type PersonPageStart, selectMatchingPersons } from './person-queries.ts'
import { readPersonsPage } from './person-views.ts'

/** The most bytes of one page of persons, which a front evaluates in one go. A page of a single person may have more. */
const pageBytesMax = 256 * 1024
/**
 * How many persons one statement searches: reading their texts takes a few milliseconds, during which nothing else can be
 * written.
 */
const personsPerLook = 2_000

export function createCohortMemberQueries(db: Kysely<StateSchema>): CohortMemberStore {
  return {
    addCohortMembers: (projectId, cohortId, members, change) =>
      changeMembers(db, { projectId, cohortId, verb: 'members_added' }, members, change, async (trx, personIds) => {
        const { numInsertedOrUpdatedRows = 0n } = await trx
          .insertInto('cohort_person')
          .values(personIds.map(personId => ({ person_id: personId, cohort_id: cohortId })))
          .onConflict(conflict => conflict.doNothing())
          .executeTakeFirstOrThrow()
        return Number(numInsertedOrUpdatedRows)
      }),

    removeCohortMembers: (projectId, cohortId, members, change) =>
      changeMembers(db, { projectId, cohortId, verb: 'members_removed' }, members, change, async (trx, personIds) => {
        const { numDeletedRows } = await trx
          .deleteFrom('cohort_person')
          .where('cohort_id', '=', cohortId)
          .where('person_id', 'in', personIds)
          .executeTakeFirstOrThrow()
        return Number(numDeletedRows)
      }),

    listCohortMembers: (projectId, cohortId, { afterPersonId, limit }) => {
      const ids = db
        .selectFrom('cohort_person')
        .innerJoin('person', 'person.id', 'cohort_person.person_id')
        .select('person.id as id')
        .where('cohort_person.cohort_id', '=', cohortId)
        .where('cohort_person.person_id', '>', afterPersonId)
        .where('person.project_id', '=', projectId)
        .orderBy('cohort_person.person_id')
        .limit(limit + 1)
      return readPersonsPage(db, ids.as('page'), { limit, direction: 'asc', bytesMax: pageBytesMax })
    },

    async listCohortMemberUuids(projectId, cohortId, limit) {
      const rows = await db
        .selectFrom('cohort_person')
        .innerJoin('person', 'person.id', 'cohort_person.person_id')
        .select('person.uuid as uuid')
        .where('cohort_person.cohort_id', '=', cohortId)
        .where('person.project_id', '=', projectId)
        .orderBy('cohort_person.person_id')
        .limit(limit)
        .execute()
      return rows.map(({ uuid }) => uuid)
    },

    async listPersonsAfter(projectId, { afterPersonId, limit, propertyParts = [] }, ofCohortIds) {
      const behind = { direction: 'asc', id: afterPersonId } as const
      const page = await readPage(db, projectId, { propertyParts }, behind, { limit, ofCohortIds })
      const leftOutCount = propertyParts.length === 0 ? 0 : await countPassedOver(db, projectId, behind, page)
      return { ...page, leftOutCount }
    },

    listPersonsBelow: (projectId, { belowId, limit, ...filters }, ofCohortIds) =>
      readPage(db, projectId, filters, { direction: 'desc', id: belowId }, { limit, ofCohortIds }),

    countCohortMembers: cohortId => countRows(db.selectFrom('cohort_person').where('cohort_id', '=', cohortId)),
  }
}

/** A page of the persons that match the filters. */
async function readPage(
  db: Kysely<StateSchema>,
  projectId: number,
  filters: PersonFilters,
  behind: PersonPageStart,
  { limit, ofCohortIds }: { readonly limit: number; readonly ofCohortIds: readonly number[] },
): Promise<SearchedPersons> {
  const { direction } = behind
  const lastId = searchesTexts(filters) ? await findLastSearchedId(db, projectId, behind) : null
  let fitting = selectMatchingPersons(db, projectId, filters, behind)
  if (lastId !== null) fitting = fitting.where('person.id', direction === 'asc' ? '<=' : '>=', lastId)
  const ids = fitting.orderBy('person.id', direction).limit(limit + 1)
  const page = await readPersonsPage(db, ids.as('page'), { limit, direction, bytesMax: pageBytesMax })
  const { results, hasMore } = await addStaticCohorts(db, page, ofCohortIds)
  // A page may be empty although more follow: its persons may have been erased or merged between the two statements that
  // read it.
  const continueAfterId = hasMore ? (results.at(-1)?.id ?? behind.id ?? lastId) : lastId
  return { results, hasMore: continueAfterId !== null, continueAfterId }
}

/** Whether the filters require reading each person's texts. */
function searchesTexts({ distinctId, uuid, search = '', propertyParts = [] }: PersonFilters): boolean {
  return distinctId === undefined && uuid === undefined && (search !== '' || propertyParts.length > 0)
}

/** The last person whose texts one statement searches; null when the statement can search all remaining persons. */
async function findLastSearchedId(
  db: Kysely<StateSchema>,
  projectId: number,
  behind: PersonPageStart,
): Promise<number | null> {
  const row = await selectMatchingPersons(db, projectId, {}, behind)
    .orderBy('person.id', behind.direction)
    .offset(personsPerLook - 1)
    .limit(1)
    .executeTakeFirst()
  return row === undefined ? null : Number(row.id)
}

/** How many persons between the start and the end of a page do not match its filters. */
async function countPassedOver(
  db: Kysely<StateSchema>,
  projectId: number,
  behind: PersonPageStart,
  { results, continueAfterId }: SearchedPersons,
): Promise<number> {
  let passed = selectMatchingPersons(db, projectId, {}, behind)
  if (continueAfterId !== null) passed = passed.where('person.id', '<=', continueAfterId)
  // The difference may be negative, since some of the page's persons may have been erased or merged after the page was
  // read.
  return Math.max(0, (await countRows(passed.clearSelect())) - results.length)
}

/** @param write adds or removes as many of the persons as one statement takes, and returns how many rows it changed. */
function changeMembers(
  db: Kysely<StateSchema>,
  { projectId, cohortId, verb }: { projectId: number; cohortId: number; verb: 'members_added' | 'members_removed' },
  members: MemberIds,
  change: Change,
  write: (trx: Kysely<StateSchema>, personIds: readonly number[]) => Promise<number>,
): Promise<Result<MemberChange, 'not_static'>> {
  return db.transaction().execute(async trx => {
    const cohort = await trx
      .selectFrom('cohort')
      .select(['is_static', 'name'])
      .where('id', '=', cohortId)
      .where('project_id', '=', projectId)
      .where('deleted', '=', 0)
      .executeTakeFirst()
    if (cohort?.is_static !== 1) return err('not_static')
    const personOfId = await resolveMembers(trx, projectId, members)
    const personIds = [...new Set(personOfId.values())]
    let changedCount = 0
    for (const batch of splitIntoSlices(personIds)) changedCount += await write(trx, batch)
    if (changedCount > 0)
      await recordActivity(
        trx,
        {
          ...{ kind: 'cohort', projectId, itemId: String(cohortId), itemName: cohort.name, activity: verb },
          changes: [{ path: 'members', action: 'changed', before: null, after: changedCount }],
        },
        change,
      )
    return ok({
      changedCount,
      unchangedCount: personIds.length - changedCount,
      unknownIds: [...new Set(members.ids)].filter(id => !personOfId.has(id)),
    })
  })
}

/** @returns a map from each id that was found, as the caller spells it, to the person's row id. */
async function resolveMembers(
  trx: Kysely<StateSchema>,
  projectId: number,
  { kind, ids }: MemberIds,
): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  const unique = [...new Set(ids)]
  const resolveInBatches = async (
    wanted: readonly string[],
    find: (batch: string[]) => Promise<ReadonlyMap<string, number>>,
  ) => {
    for (const batch of splitIntoSlices(wanted)) {
      const persons = await find(batch.map(toStoredId))
      for (const id of batch) {
        const person = persons.get(toStoredId(id))
        if (person !== undefined) found.set(id, person)
      }
    }
    return wanted.filter(id => !found.has(id))
  }
  // Persons' uuids are stored in lower case, distinct ids unchanged.
  const toStoredId = (id: string) => toStorableText(kind === 'person' ? id.toLowerCase() : id)
  if (kind === 'person') {
    await resolveInBatches(
      unique.filter(id => /^\d{1,15}$/.test(id)),
      batch => findPersonsById(trx, projectId, batch),
    )
    await resolveInBatches(
      unique.filter(id => isUuid(id)),
      batch => findPersonsByUuid(trx, projectId, batch),
    )
    return found
  }
  const unknown = await resolveInBatches(unique, batch => findPersonsByDistinctId(trx, projectId, batch))
  if (kind === 'any')
    await resolveInBatches(
      unknown.filter(id => isUuid(id)),
      async batch => {
        const persons = await findPersonsByUuid(
          trx,
          projectId,
          batch.map(id => id.toLowerCase()),
        )
        return new Map(
          batch.flatMap(id => (persons.has(id.toLowerCase()) ? [[id, persons.get(id.toLowerCase())!]] : [])),
        )
      },
    )
  return found
}

async function findPersonsByDistinctId(trx: Kysely<StateSchema>, projectId: number, distinctIds: readonly string[]) {
  const rows = await trx
    .selectFrom('person_distinct_id')
    .select(['distinct_id', 'person_id'])
    .where('project_id', '=', projectId)
    .where('distinct_id', 'in', distinctIds)
    .execute()
  return new Map(rows.map(row => [row.distinct_id, Number(row.person_id)]))
}

async function findPersonsByUuid(trx: Kysely<StateSchema>, projectId: number, uuids: readonly string[]) {
  const rows = await trx
    .selectFrom('person')
    .select(['uuid', 'id'])
    .where('project_id', '=', projectId)
    .where('uuid', 'in', uuids)
    .execute()
  return new Map(rows.map(row => [row.uuid, Number(row.id)]))
}

async function findPersonsById(trx: Kysely<StateSchema>, projectId: number, ids: readonly string[]) {
  const rows = await trx
    .selectFrom('person')
    .select('id')
    .where('project_id', '=', projectId)
    .where('id', 'in', ids.map(Number))
    .execute()
  const known = new Set(rows.map(row => Number(row.id)))
  return new Map(ids.filter(id => known.has(Number(id))).map(id => [id, Number(id)]))
}

/** The persons of a page, each with those of the given cohorts that contain the person. */
async function addStaticCohorts(
  db: Kysely<StateSchema>,
  { results, hasMore }: PersonsPage,
  ofCohortIds: readonly number[],
): Promise<PersonsPage<PersonInCohorts>> {
  const ids = results.map(person => person.id)
  const cohortsOf = await findStaticCohorts(db, ids, ofCohortIds)
  return { results: results.map(person => ({ ...person, staticCohortIds: cohortsOf.get(person.id) ?? [] })), hasMore }
}

async function findStaticCohorts(
  db: Kysely<StateSchema>,
  personIds: readonly number[],
  cohortIds: readonly number[],
): Promise<Map<number, number[]>> {
  if (personIds.length === 0 || cohortIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('cohort_person')
    .selectAll()
    .where('person_id', 'in', personIds)
    .where('cohort_id', 'in', cohortIds)
    .execute()
  const cohortsOf = new Map<number, number[]>()
  for (const { person_id, cohort_id } of rows)
    cohortsOf.getOrInsertComputed(Number(person_id), () => []).push(Number(cohort_id))
  return cohortsOf
}
