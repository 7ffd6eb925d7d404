// Erases persons in one transaction: deletes their rows in the state at once, and records what the worker must still
// remove.

import { sql, type Transaction } from 'kysely'
import type { Change } from '#core/author.ts'
import { toStagingProjectId } from '#core/imports/import-job.ts'
import { diffJson } from '#core/json-diff.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import { encodeSubjects } from '#core/processing/mirror-subjects.ts'
import type { NewErasure } from '#ports/state/erasure-store.ts'
import { readInSlices, splitIntoSlices } from '../tables/read-pages.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { toAuthorText, toPersonRepair, toSqlBoolean } from '../tables/rows.ts'
import type { StateSchema } from '../tables/schema.ts'

/** The most distinct ids of one transaction, and of one removal step of the worker; a single person may have more. */
export const idsPerErasureMax = 10_000

/** See `ErasureStore.erasePersons`. */
export async function erasePersonRows(
  trx: Transaction<StateSchema>,
  { projectId, personIds, ...terms }: NewErasure,
  change: Change,
): Promise<{ takenCount: number; erasedCount: number }> {
  const { persons, distinctIds, takenCount } = await selectPersonsToErase(trx, projectId, personIds)
  if (persons.length === 0) return { takenCount, erasedCount: 0 }
  const { erasures } = await trx
    .updateTable('project')
    .set({ erasures: sql<number>`erasures + 1` })
    .where('id', '=', projectId)
    .returning('erasures')
    .executeTakeFirstOrThrow()
  // A step that updates the mirror may be reading these persons now. Raising the version keeps that step from recording its
  // result; it starts again without the erased persons.
  if (!terms.keepsPerson) await trx.updateTable('subject_mirror').set({ version: sql<number>`version + 2` }).execute()
  const { version } = await trx.selectFrom('subject_mirror').select('version').executeTakeFirstOrThrow()
  const { id } = await trx
    .insertInto('person_erasure')
    .values({
      project_id: projectId,
      erasures,
      mirror_version: version,
      requested_at: change.atMs,
      requested_by: toAuthorText(change.by),
      keeps_person: toSqlBoolean(terms.keepsPerson),
      deletes_events: toSqlBoolean(terms.deletesEvents),
      deletes_recordings: toSqlBoolean(terms.deletesRecordings),
      log_id: terms.logId,
      log_ends: JSON.stringify(terms.endOffsets),
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  for (const some of splitIntoSlices(persons))
    await trx
      .insertInto('erased_person')
      .values(some.map(({ uuid }) => ({ project_id: projectId, person_uuid: uuid, erasure_id: id })))
      .execute()
  if (!terms.keepsPerson) await removePersons(trx, projectId, persons, distinctIds)
  if (!terms.keepsPerson)
    await recordErasedPast(trx, projectId, distinctIds, terms.deletesEvents ? null : Number(erasures))
  if (!terms.keepsPerson && terms.deletesEvents) await removeFromStaging(trx, projectId, distinctIds)
  const ownUuids = terms.keepsPerson ? new Map() : await findCreatedUuids(trx, projectId, distinctIds)
  for (const some of splitIntoSlices(distinctIds))
    await trx
      .insertInto('erased_distinct_id')
      .values(
        some.map(distinctId => ({
          project_id: projectId,
          distinct_id: distinctId,
          erasure_id: id,
          own_uuid: ownUuids.get(distinctId) ?? '',
        })),
      )
      .execute()
  // The activity entry has only counts: the activity log is kept, so it must not name who was erased.
  const { keepsPerson, deletesEvents, deletesRecordings } = terms
  await recordActivity(
    trx,
    {
      ...{ kind: 'person', projectId, itemId: '', itemName: '' },
      activity: keepsPerson ? 'data_deleted' : 'deleted',
      changes: diffJson(
        {},
        { persons: persons.length, delete_events: deletesEvents, delete_recordings: deletesRecordings },
      ),
    },
    change,
  )
  return { takenCount, erasedCount: persons.length }
}

interface TakenPerson {
  readonly id: number
  readonly uuid: string
}

/**
 * Selects as many of the first persons, but at least one, as one transaction can erase by the number of their distinct ids.
 */
async function selectPersonsToErase(trx: Transaction<StateSchema>, projectId: number, personIds: readonly number[]) {
  const uuids = await lockPersons(trx, projectId, personIds)
  const persons: TakenPerson[] = []
  const distinctIds: string[] = []
  let takenCount = 0
  for (const id of personIds) {
    const uuid = uuids.get(id)
    if (uuid !== undefined) {
      const ids = await trx.selectFrom('person_distinct_id').select('distinct_id').where('person_id', '=', id).execute()
      if (persons.length > 0 && distinctIds.length + ids.length > idsPerErasureMax) break
      persons.push({ id, uuid })
      for (const { distinct_id } of ids) distinctIds.push(distinct_id)
    }
    takenCount++
  }
  return { persons, distinctIds, takenCount }
}

/**
 * Locks the persons in the order of their uuids, like chunks, which lock a person before they give it an id or merge it.
 * @returns a map from the row id of each person that still exists to its uuid.
 */
async function lockPersons(
  trx: Transaction<StateSchema>,
  projectId: number,
  personIds: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  const persons = trx.selectFrom('person').select(['id', 'uuid'])
  const found = await readInSlices(personIds, some =>
    persons.where('id', 'in', some).where('project_id', '=', projectId).execute(),
  )
  found.sort((a, b) => (a.uuid < b.uuid ? -1 : 1))
  const locked = await readInSlices(
    found.map(({ id }) => id),
    some => persons.where('id', 'in', some).orderBy('uuid').forUpdate().execute(),
  )
  return new Map(locked.map(({ id, uuid }) => [Number(id), uuid]))
}

async function removePersons(
  trx: Transaction<StateSchema>,
  projectId: number,
  persons: readonly TakenPerson[],
  distinctIds: readonly string[],
): Promise<void> {
  const goneFrom = new Map<number, number>()
  for (const some of splitIntoSlices(persons.map(({ id }) => id))) {
    await trx.deleteFrom('flag_hash_key_override').where('person_id', 'in', some).execute()
    const gone = await trx.deleteFrom('cohort_person').where('person_id', 'in', some).returning('cohort_id').execute()
    for (const { cohort_id } of gone) goneFrom.set(Number(cohort_id), (goneFrom.get(Number(cohort_id)) ?? 0) + 1)
    await trx.deleteFrom('person_distinct_id').where('person_id', 'in', some).execute()
    await trx.deleteFrom('person').where('id', 'in', some).execute()
  }
  // Updates the cohorts in the order of their ids, so that two erasures never wait for each other.
  for (const [id, count] of [...goneFrom].toSorted(([a], [b]) => a - b))
    await trx
      .updateTable('cohort')
      .set({ member_count: sql<number>`CASE WHEN member_count > ${count} THEN member_count - ${count} ELSE 0 END` })
      .where('id', '=', id)
      .execute()
  for (const some of splitIntoSlices(distinctIds))
    await trx
      .deleteFrom('personless_distinct_id')
      .where('project_id', '=', projectId)
      .where('distinct_id', 'in', some)
      .execute()
  const derived = distinctIds.map(distinctId => personUuid(projectId, distinctId))
  const uuids = new Set([...persons.map(({ uuid }) => uuid), ...derived])
  await deleteUndoAssignments(trx, projectId, uuids)
  await removeFromRepairs(trx, projectId, uuids, distinctIds)
  const changed = encodeSubjects({ persons: persons.map(({ uuid }) => ({ projectId, uuid })), groups: [] })
  await trx.insertInto('subject_change').values({ subjects: changed }).execute()
}

/**
 * Deletes the assignments that undoing an import would restore. Finds them by job and person, since the table has no other
 * key.
 */
async function deleteUndoAssignments(
  trx: Transaction<StateSchema>,
  projectId: number,
  uuids: ReadonlySet<string>,
): Promise<void> {
  const jobs = await trx
    .selectFrom('import_job')
    .select('id')
    .where('project_id', '=', projectId)
    .where(({ exists, selectFrom }) =>
      exists(selectFrom('import_assignments').select('own').whereRef('import_job_id', '=', 'import_job.id')),
    )
    .execute()
  for (const { id } of jobs)
    for (const some of splitIntoSlices([...uuids]))
      await trx
        .deleteFrom('import_assignments')
        .where('import_job_id', '=', id)
        .where('person_uuid', 'in', some)
        .execute()
}

/** @param erasures the project's count of erasures, including this erasure; null if the events are deleted, too. */
async function recordErasedPast(
  trx: Transaction<StateSchema>,
  projectId: number,
  distinctIds: readonly string[],
  erasures: number | null,
): Promise<void> {
  for (const some of splitIntoSlices(distinctIds)) {
    await trx.deleteFrom('erased_past').where('project_id', '=', projectId).where('distinct_id', 'in', some).execute()
    if (erasures === null) continue
    const rows = some.map(distinctId => ({ project_id: projectId, distinct_id: distinctId, erasures }))
    await trx.insertInto('erased_past').values(rows).execute()
  }
}

/**
 * Removes the persons from requests to repair persons and from the reports of such requests, and deletes the splits that
 * splits left for their distinct ids.
 */
async function removeFromRepairs(
  trx: Transaction<StateSchema>,
  projectId: number,
  uuids: ReadonlySet<string>,
  distinctIds: readonly string[],
): Promise<void> {
  for (const some of splitIntoSlices(distinctIds))
    await trx.deleteFrom('person_cut').where('project_id', '=', projectId).where('distinct_id', 'in', some).execute()
  const ids = new Set(distinctIds)
  const repairs = trx.selectFrom('person_repair').selectAll().where('project_id', '=', projectId).orderBy('id')
  for (const row of await repairs.forUpdate().execute()) {
    const repair = toPersonRepair(row)
    const { request } = repair
    if (request.kind === 'split') {
      if (uuids.has(request.uuid)) await trx.deleteFrom('person_repair').where('id', '=', row.id).execute()
      continue
    }
    const persons = request.persons && {
      uuids: request.persons.uuids.filter(uuid => !uuids.has(uuid)),
      distinctIds: request.persons.distinctIds.filter(id => !ids.has(id)),
    }
    const report = repair.report && {
      ...repair.report,
      samples: repair.report.samples.filter(
        ({ uuid, distinctIds }) => !uuids.has(uuid) && !distinctIds.some(id => ids.has(id)),
      ),
    }
    await trx
      .updateTable('person_repair')
      .set({ request: JSON.stringify({ ...request, persons }), report: report && JSON.stringify(report) })
      .where('id', '=', row.id)
      .execute()
  }
}

/** Deletes the staged rows that publishing pending imports would apply to the ids. */
async function removeFromStaging(
  trx: Transaction<StateSchema>,
  projectId: number,
  distinctIds: readonly string[],
): Promise<void> {
  const jobs = await trx
    .selectFrom('import_job')
    .select('id')
    .where('project_id', '=', projectId)
    .where('state', 'not in', ['published', 'discarded'])
    .execute()
  for (const { id } of jobs)
    for (const some of splitIntoSlices(distinctIds)) {
      const stagingId = toStagingProjectId(Number(id))
      const staged = await trx
        .deleteFrom('person_distinct_id')
        .where('project_id', '=', stagingId)
        .where('distinct_id', 'in', some)
        .returning('person_id')
        .execute()
      if (staged.length > 0)
        await trx
          .deleteFrom('person')
          .where(
            'id',
            'in',
            staged.map(({ person_id }) => person_id),
          )
          .execute()
      await trx
        .deleteFrom('personless_distinct_id')
        .where('project_id', '=', stagingId)
        .where('distinct_id', 'in', some)
        .execute()
      for (const name of ['distinct_id', 'other_id'] as const)
        await trx.deleteFrom('import_link').where('import_job_id', '=', id).where(name, 'in', some).execute()
    }
}

/**
 * Maps each distinct id to the uuid of the person that it would create, except if a person with that uuid still exists
 * (without the id).
 */
async function findCreatedUuids(
  trx: Transaction<StateSchema>,
  projectId: number,
  distinctIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const own = new Map<string, string>()
  for (const some of splitIntoSlices(distinctIds)) {
    const uuids = new Map(some.map(distinctId => [personUuid(projectId, distinctId), distinctId]))
    const others = await trx
      .selectFrom('person')
      .select('uuid')
      .where('project_id', '=', projectId)
      .where('uuid', 'in', [...uuids.keys()])
      .execute()
    for (const { uuid } of others) uuids.delete(uuid)
    for (const [uuid, distinctId] of uuids) own.set(distinctId, uuid)
  }
  return own
}
