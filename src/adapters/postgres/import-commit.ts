// Writes what a chunk changed for import jobs, inside the chunk's transaction.

import { createAssignmentRecords, importStatements } from '#adapters/sql/imports/import-statements.ts'
import { assertRowCount } from '#adapters/sql/processing/chunk-queries.ts'
import { toJsonText, toSqlBoolean } from '#adapters/sql/tables/rows.ts'
import { type ImportChanges, noteSampleCountMax } from '#core/imports/import-changes.ts'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'
import { insertStatements, lockStatements, toNumberedParametersOfAll, writeStatements } from './chunk-statements.ts'
import type { Session } from './open-postgres.ts'
import { runStatementForEach, runStatementInSlices } from './statement-slices.ts'

const texts = toNumberedParametersOfAll(importStatements)

// Statements that take lists of values, since a chunk may concern very many jobs and each statement is a round trip.
// Comments list the parameters.
const listTexts = {
  /** ids, states, steps or '' */
  keepJobs: `
  SELECT 1 FROM import_job AS j JOIN unnest($1::bigint[], $2::text[], $3::text[]) AS k (id, state, step)
    ON j.id = k.id AND j.state = k.state AND coalesce(j.step, '') = k.step ORDER BY j.id FOR SHARE OF j`,

  /** ids, counts */
  countStoredRows: `
  UPDATE import_job AS j SET stored_rows = j.stored_rows + k.count
  FROM unnest($1::bigint[], $2::bigint[]) AS k (id, count) WHERE j.id = k.id`,

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

  deleteOverrides: `DELETE FROM flag_hash_key_override WHERE person_id = ANY($1::bigint[])`,
  deleteMemberships: `DELETE FROM cohort_person WHERE person_id = ANY($1::bigint[])`,

  /** project ids, type indexes, keys, versions in the table */
  deleteGroups: `
  DELETE FROM "group" AS g USING unnest($1::bigint[], $2::int[], $3::text[], $4::bigint[])
    AS v (project_id, type_index, group_key, stored_version)
  WHERE g.project_id = v.project_id AND g.group_type_index = v.type_index AND g.group_key = v.group_key
    AND g.version = v.stored_version`,
}

/**
 * @throws CommitRefused, or what the driver throws; the deletion of a person that still has distinct ids fails because of
 * their foreign key.
 */
export async function writeImportChanges(session: Session, changes: ImportChanges): Promise<void> {
  // Updates the counts before taking the locks below: two chunks may hold those at once, and would then wait for each other
  // here.
  const storedRows = changes.storedRows.map(({ importJobId, count }) => [importJobId, count])
  await runStatementInSlices(session, listTexts.countStoredRows, storedRows)
  // Locks the jobs, so that a job is closed only after the events processed for it are committed.
  const jobs = changes.jobs.map(({ id, state, step }) => [id, state, step ?? ''] as const)
  await runStatementForEach(session, listTexts.keepJobs, jobs)
  const links = changes.links.map(({ importJobId, distinctId, otherId, dangerously, timestampMs, uuid }) => [
    ...[importJobId, distinctId, otherId, toSqlBoolean(dangerously), timestampMs, uuid],
  ])
  await runStatementInSlices(session, insertStatements.links, links)
  await writeNotes(session, changes)
  const named = changes.namedGroupTypes.map(each => [
    each.importJobId,
    each.typeIndex,
    each.name,
    toSqlBoolean(each.isAdded),
  ])
  await runStatementInSlices(session, insertStatements.namedGroupTypes, named)
  for (const { importJobId, typeIndex } of changes.leftGroupTypes) {
    await session.query(texts.passOnGroupType, [typeIndex, typeIndex, importJobId])
    await session.query(texts.leaveGroupType, [importJobId, typeIndex])
  }
  await returnAssignments(session, changes)
  const doneLinks = changes.doneLinkIds.map(id => [id])
  await runStatementInSlices(session, listTexts.deleteLinks, doneLinks)
  // Locks these persons, so that a concurrent chunk that uses one of them waits and then sees the job's new state.
  for (const { projectId, uuid, loadedVersion } of changes.unchangedPersons)
    assertRowCount(
      (await session.query(`${texts.hasPerson} FOR SHARE`, [projectId, uuid, loadedVersion])).rowCount ?? 0,
    )
  const { removedMappings, removedGroups } = changes
  const mappings = removedMappings.map(row => [row.projectId, row.distinctId, row.loadedVersion] as const)
  await runStatementForEach(session, listTexts.deleteMappings, mappings)
  await removePersons(session, changes)
  const groups = removedGroups.map(row => [row.projectId, row.typeIndex, row.key, row.loadedVersion] as const)
  await runStatementForEach(session, listTexts.deleteGroups, groups)
  for (const { projectId, distinctId, version } of changes.nextVersions)
    await session.query(texts.raiseNextVersion, [projectId, distinctId, version])
  const generated = changes.generated.map(({ projectId, uuid, timestampMs, importJobId }) => [
    ...[projectId, uuid, timestampMs, importJobId],
  ])
  await runStatementInSlices(session, insertStatements.generated, generated)
}

async function writeNotes(session: Session, { notes }: ImportChanges): Promise<void> {
  for (const { importJobId, reason, count, samples } of notes) {
    const { rows } = await session.query<{ note_count: number }>(texts.countNotes, [importJobId, reason, count])
    const samplesLeft = noteSampleCountMax - (Number(rows[0]!.note_count) - count)
    for (const details of samples.slice(0, Math.max(0, samplesLeft)))
      await session.query(texts.insertNoteSample, [importJobId, reason, toJsonText(details)])
  }
}

async function removePersons(session: Session, { removedPersons }: ImportChanges): Promise<void> {
  if (removedPersons.length === 0) return
  const names = removedPersons
    .map(({ projectId, uuid }) => [projectId, uuid] as const)
    .toSorted((a, b) => (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : a[0] - b[0]))
  const rows = await runStatementForEach<{ id: number; project_id: number; uuid: string }>(
    session,
    lockStatements.lockPersons,
    names,
  )
  const ids = new Map(rows.map(row => [`${row.project_id} ${row.uuid}`, row.id]))
  await session.query(listTexts.deleteOverrides, [[...ids.values()]])
  await session.query(listTexts.deleteMemberships, [[...ids.values()]])
  const persons = removedPersons.map(({ projectId, uuid, loadedVersion }) => [
    ids.get(`${projectId} ${uuid}`)!,
    loadedVersion,
  ])
  await runStatementForEach(session, writeStatements.deletePersons, persons)
}

/**
 * Stores the assignments of the persons that the changes merge away; call it before the merge. Assignments that a front
 * makes between this and the merge move to the survivor, and undoing does not return them.
 */
export async function saveAssignmentsOfMergedPersons(
  session: Session,
  { imports, deletedPersons }: ChunkChanges,
): Promise<void> {
  if (imports == null || imports.keepsAssignmentsFor === null || deletedPersons.length === 0) return
  const uuids = [...new Set(deletedPersons.flatMap(({ uuid, survivorUuid }) => [uuid, survivorUuid]))]
  const of = [deletedPersons[0]!.projectId, uuids]
  type HashKey = { readonly uuid: string; readonly feature_flag_key: string; readonly hash_key: string }
  const { rows: hashKeys } = await session.query<HashKey>(listTexts.listHashKeys, of)
  type Membership = { readonly uuid: string; readonly cohort_id: number }
  const { rows: memberships } = await session.query<Membership>(listTexts.listMemberships, of)
  const records = createAssignmentRecords(imports.keepsAssignmentsFor, deletedPersons, uuid => ({
    hashKeys: hashKeys.filter(row => row.uuid === uuid).map(row => [row.feature_flag_key, row.hash_key] as const),
    cohortIds: memberships.filter(row => row.uuid === uuid).map(row => Number(row.cohort_id)),
  }))
  const rows = records.map(({ importJobId, uuid, survivorUuid, own, taken }) => [
    ...[importJobId, uuid, survivorUuid],
    ...[JSON.stringify(own), JSON.stringify(taken)],
  ])
  await runStatementInSlices(session, insertStatements.assignments, rows)
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
  const { rows } = await runStatementInSlices<{ id: number; uuid: string }>(session, lockStatements.lockPersons, names)
  const ids = new Map(rows.map(row => [row.uuid, row.id]))
  for (const { projectId, uuid, assignments, survivorUuid, given } of returnedAssignments) {
    const [id, survivorId] = [ids.get(uuid), ids.get(survivorUuid)]
    for (const [flagKey, hashKey] of given.hashKeys)
      await session.query(texts.takeHashKey, [survivorId, flagKey, hashKey])
    for (const cohortId of given.cohortIds) await session.query(texts.takeMembership, [survivorId, cohortId])
    for (const [flagKey, hashKey] of assignments.hashKeys)
      await session.query(texts.returnHashKey, [projectId, id, flagKey, hashKey])
    for (const cohortId of assignments.cohortIds) await session.query(texts.returnMembership, [id, cohortId])
  }
}
