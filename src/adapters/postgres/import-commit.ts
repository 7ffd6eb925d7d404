// Writes what a chunk changed for import jobs, inside the chunk's transaction.

import * as texts from '#adapters/sql/imports/import-texts.ts'
import { makeAssignmentRecords } from '#adapters/sql/imports/kept-assignments.ts'
import { flagBit, jsonText } from '#adapters/sql/tables/rows.ts'
import { type ImportChanges, noteSampleCountMax } from '#core/imports/import-changes.ts'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'
import { lockTexts, numberParameters } from './chunk-texts.ts'
import type { Session } from './open-postgres.ts'
import { runInSlices } from './write-lists.ts'

const numberedTexts = Object.fromEntries(
  Object.entries(texts).map(([name, text]) => [name, numberParameters(text)]),
) as {
  [Name in keyof typeof texts]: string
}

const keepPersonText = `${numberedTexts.hasPersonText} FOR SHARE`

// A chunk may have events of very many jobs: lists, because each statement is a round trip.
const listTexts = {
  /** ids, states, steps or '' */
  keepJobs: `
  SELECT 1 FROM import_job AS j JOIN unnest($1::bigint[], $2::text[], $3::text[]) AS k (id, state, step)
    ON j.id = k.id AND j.state = k.state AND coalesce(j.step, '') = k.step ORDER BY j.id FOR SHARE OF j`,

  /** ids, counts */
  countStoredRows: `
  UPDATE import_job AS j SET stored_rows = j.stored_rows + k.count
  FROM unnest($1::bigint[], $2::bigint[]) AS k (id, count) WHERE j.id = k.id`,

  /** import job ids, distinct ids, other ids, dangerously, timestamps, uuids */
  insertLinks: `
  INSERT INTO import_link (import_job_id, distinct_id, other_id, dangerously, timestamp, uuid)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::text[])
  ON CONFLICT DO NOTHING`,

  /** import job ids, type indexes, names, whether added */
  nameGroupTypes: `
  INSERT INTO import_group_type (import_job_id, group_type_index, name, is_added)
  SELECT * FROM unnest($1::bigint[], $2::int[], $3::text[], $4::int[]) ON CONFLICT DO NOTHING`,

  /** import job ids, uuids of persons, uuids of survivors, own, taken */
  saveAssignments: `
  INSERT INTO import_assignments (import_job_id, person_uuid, survivor_uuid, own, taken)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[])
  ON CONFLICT (import_job_id, person_uuid) DO UPDATE
    SET survivor_uuid = excluded.survivor_uuid, taken = excluded.taken`,

  /** project id, uuids */
  listHashKeys: `
  SELECT p.uuid, o.feature_flag_key, o.hash_key FROM person AS p JOIN flag_hash_key_override AS o ON o.person_id = p.id
  WHERE p.project_id = $1 AND p.uuid = ANY($2::text[]) ORDER BY 1, 2`,

  /** project id, uuids */
  listMemberships: `
  SELECT p.uuid, c.cohort_id FROM person AS p JOIN cohort_person AS c ON c.person_id = p.id
  WHERE p.project_id = $1 AND p.uuid = ANY($2::text[]) ORDER BY 1, 2`,

  /** ids */
  deleteLinks: `DELETE FROM import_link WHERE id = ANY($1::bigint[])`,

  /** project ids, distinct ids, versions in the table */
  deleteMappings: `
  DELETE FROM person_distinct_id AS d USING unnest($1::bigint[], $2::text[], $3::bigint[])
    AS v (project_id, distinct_id, stored_version)
  WHERE d.project_id = v.project_id AND d.distinct_id = v.distinct_id AND d.version = v.stored_version`,

  /** person ids, versions in the table */
  deletePersons: `
  DELETE FROM person AS p USING unnest($1::bigint[], $2::bigint[]) AS v (id, stored_version)
  WHERE p.id = v.id AND p.version = v.stored_version`,

  deleteOverrides: `DELETE FROM flag_hash_key_override WHERE person_id = ANY($1::bigint[])`,
  deleteMemberships: `DELETE FROM cohort_person WHERE person_id = ANY($1::bigint[])`,

  /** project ids, type indexes, keys, versions in the table */
  deleteGroups: `
  DELETE FROM "group" AS g USING unnest($1::bigint[], $2::int[], $3::text[], $4::bigint[])
    AS v (project_id, type_index, group_key, stored_version)
  WHERE g.project_id = v.project_id AND g.group_type_index = v.type_index AND g.group_key = v.group_key
    AND g.version = v.stored_version`,

  /** project ids, uuids, timestamps, import job ids */
  insertGenerated: `
  INSERT INTO import_generated (project_id, uuid, timestamp, import_job_id)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) ON CONFLICT DO NOTHING`,
}

/**
 * @param expectCount ends the transaction with a conflict unless the numbers are equal.
 * @throws what the driver throws; a person that still has distinct ids fails by their foreign key.
 */
export async function writeImportChanges(
  session: Session,
  changes: ImportChanges,
  expectCount: (count: number, expected: number) => void,
): Promise<void> {
  // Before the locks below, which two chunks may share: each would wait for the other to give its own up.
  await runInSlices(
    session,
    listTexts.countStoredRows,
    changes.storedRows.map(({ importJobId, count }) => [importJobId, count]),
  )
  // Locked, so that a job is closed only after its processed events are committed.
  const jobs = changes.jobs.map(({ id, state, step }) => [id, state, step ?? ''] as const)
  expectCount((await runInSlices(session, listTexts.keepJobs, jobs)).rowCount, jobs.length)
  await runInSlices(
    session,
    listTexts.insertLinks,
    changes.links.map(link => [
      link.importJobId,
      link.distinctId,
      link.otherId,
      flagBit(link.dangerously),
      link.timestampMs,
      link.uuid,
    ]),
  )
  await writeNotes(session, changes)
  await runInSlices(
    session,
    listTexts.nameGroupTypes,
    changes.namedGroupTypes.map(each => [each.importJobId, each.typeIndex, each.name, flagBit(each.isAdded)]),
  )
  for (const { importJobId, typeIndex } of changes.leftGroupTypes) {
    await session.query(numberedTexts.passOnGroupTypeText, [typeIndex, typeIndex, importJobId])
    await session.query(numberedTexts.leaveGroupTypeText, [importJobId, typeIndex])
  }
  await returnAssignments(session, changes)
  await runInSlices(
    session,
    listTexts.deleteLinks,
    changes.doneLinkIds.map(id => [id]),
  )
  // Locked, so that a concurrent chunk that uses one of them waits and then sees its new state.
  for (const { projectId, uuid, loadedVersion } of changes.unchangedPersons)
    expectCount((await session.query(keepPersonText, [projectId, uuid, loadedVersion])).rowCount ?? 0, 1)
  const { removedMappings, removedGroups } = changes
  const mappings = removedMappings.map(row => [row.projectId, row.distinctId, row.loadedVersion] as const)
  expectCount((await runInSlices(session, listTexts.deleteMappings, mappings)).rowCount, mappings.length)
  await removePersons(session, changes, expectCount)
  const groups = removedGroups.map(row => [row.projectId, row.typeIndex, row.key, row.loadedVersion] as const)
  expectCount((await runInSlices(session, listTexts.deleteGroups, groups)).rowCount, groups.length)
  for (const { projectId, distinctId, version } of changes.nextVersions)
    await session.query(numberedTexts.raiseNextVersionText, [projectId, distinctId, version])
  await runInSlices(
    session,
    listTexts.insertGenerated,
    changes.generated.map(({ projectId, uuid, timestampMs, importJobId }) => [
      projectId,
      uuid,
      timestampMs,
      importJobId,
    ]),
  )
}

async function writeNotes(session: Session, { notes }: ImportChanges): Promise<void> {
  for (const { importJobId, reason, count, samples } of notes) {
    const { rows } = await session.query<{ note_count: number }>(numberedTexts.countNotesText, [
      importJobId,
      reason,
      count,
    ])
    const samplesLeft = noteSampleCountMax - (Number(rows[0]!.note_count) - count)
    for (const details of samples.slice(0, Math.max(0, samplesLeft)))
      await session.query(numberedTexts.insertNoteSampleText, [importJobId, reason, jsonText(details)])
  }
}

async function removePersons(
  session: Session,
  { removedPersons }: ImportChanges,
  expectCount: (count: number, expected: number) => void,
): Promise<void> {
  if (removedPersons.length === 0) return
  const names = removedPersons
    .map(({ projectId, uuid }) => [projectId, uuid] as const)
    .toSorted((a, b) => (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : a[0] - b[0]))
  const { rows } = await runInSlices<{ id: number; project_id: number; uuid: string; version: number }>(
    session,
    lockTexts.lockPersons,
    names,
  )
  const ids = new Map(rows.map(row => [`${row.project_id} ${row.uuid}`, row.id]))
  expectCount(ids.size, removedPersons.length)
  await session.query(listTexts.deleteOverrides, [[...ids.values()]])
  await session.query(listTexts.deleteMemberships, [[...ids.values()]])
  const persons = removedPersons.map(({ projectId, uuid, loadedVersion }) => [
    ids.get(`${projectId} ${uuid}`)!,
    loadedVersion,
  ])
  expectCount((await runInSlices(session, listTexts.deletePersons, persons)).rowCount, persons.length)
}

/**
 * Stores the assignments of the persons that the changes merge away; call it before the merge. Assignments that a front
 * makes in between move to the survivor and stay there.
 */
export async function saveAssignments(session: Session, { imports, deletedPersons }: ChunkChanges): Promise<void> {
  if (imports == null || imports.keepsAssignmentsFor === null || deletedPersons.length === 0) return
  const uuids = [...new Set(deletedPersons.flatMap(({ uuid, survivorUuid }) => [uuid, survivorUuid]))]
  const of = [deletedPersons[0]!.projectId, uuids]
  type HashKey = { readonly uuid: string; readonly feature_flag_key: string; readonly hash_key: string }
  const { rows: hashKeys } = await session.query<HashKey>(listTexts.listHashKeys, of)
  type Membership = { readonly uuid: string; readonly cohort_id: number }
  const { rows: memberships } = await session.query<Membership>(listTexts.listMemberships, of)
  const records = makeAssignmentRecords(imports.keepsAssignmentsFor, deletedPersons, uuid => ({
    hashKeys: hashKeys.filter(row => row.uuid === uuid).map(row => [row.feature_flag_key, row.hash_key] as const),
    cohortIds: memberships.filter(row => row.uuid === uuid).map(row => Number(row.cohort_id)),
  }))
  await runInSlices(
    session,
    listTexts.saveAssignments,
    records.map(({ importJobId, uuid, survivorUuid, own, taken }) => [
      ...[importJobId, uuid, survivorUuid],
      ...[JSON.stringify(own), JSON.stringify(taken)],
    ]),
  )
}

async function returnAssignments(session: Session, { returnedAssignments }: ImportChanges): Promise<void> {
  if (returnedAssignments.length === 0) return
  const names = [
    ...new Map(
      returnedAssignments.flatMap(({ projectId, uuid, survivorUuid }) =>
        [uuid, survivorUuid].map(name => [name, [projectId, name] as const]),
      ),
    ).values(),
  ].toSorted((a, b) => (a[1] < b[1] ? -1 : 1))
  const { rows } = await runInSlices<{ id: number; uuid: string }>(session, lockTexts.lockPersons, names)
  const ids = new Map(rows.map(row => [row.uuid, row.id]))
  for (const { projectId, uuid, assignments, survivorUuid, given } of returnedAssignments) {
    const [id, survivorId] = [ids.get(uuid), ids.get(survivorUuid)]
    for (const [flagKey, hashKey] of given.hashKeys)
      await session.query(numberedTexts.takeHashKeyText, [survivorId, flagKey, hashKey])
    for (const cohortId of given.cohortIds)
      await session.query(numberedTexts.takeMembershipText, [survivorId, cohortId])
    for (const [flagKey, hashKey] of assignments.hashKeys)
      await session.query(numberedTexts.returnHashKeyText, [projectId, id, flagKey, hashKey])
    for (const cohortId of assignments.cohortIds)
      await session.query(numberedTexts.returnMembershipText, [id, cohortId])
  }
}
