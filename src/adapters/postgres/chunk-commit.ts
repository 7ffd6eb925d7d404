// Writes what one chunk changed, inside a transaction that the caller began. It first locks the existing rows, in the same
// order in every worker; then compares the changes with the stored versions, one after another, as if each change were
// written alone; then writes the results as lists. Anything unexpected ends the transaction.

import {
  assertRowCount,
  CommitRefused,
  groupWarningsByDay,
  sharedStatements,
  toGroupColumns,
  toPersonColumns,
  toWarningSampleRows,
} from '#adapters/sql/processing/chunk-queries.ts'
import { encodeChangedSubjects } from '#core/processing/mirror-subjects.ts'
import type { ChunkChanges, ChunkOutcome, IngestionWarning, Versioned } from '#ports/state/chunk-store.ts'
import { insertStatements, lockStatements, toNumberedParametersOfAll, writeStatements } from './chunk-statements.ts'
import { writeVisitors } from './cookieless-visitors.ts'
import { saveAssignmentsOfMergedPersons, writeImportChanges } from './import-commit.ts'
import type { Session } from './open-postgres.ts'
import { runStatementForEach, runStatementInSlices } from './statement-slices.ts'

/** Persons as stored within the transaction, by `personKey`. */
type StoredPersons = Map<string, { readonly id: number; readonly version: number }>

const texts = toNumberedParametersOfAll(sharedStatements)
const countImportUndosText = `
  SELECT count(*)::int AS count FROM unnest($1::bigint[], $2::bigint[]) AS k (id, import_undos)
  JOIN project AS p ON p.id = k.id AND p.import_undos = k.import_undos`

/** @throws CommitRefused, or what the driver throws. */
export async function writeChunkChanges(session: Session, changes: ChunkChanges): Promise<void> {
  const { importUndos } = changes
  if (importUndos !== undefined && importUndos.size > 0) {
    const { rows } = await session.query<{ count: number }>(countImportUndosText, [
      [...importUndos.keys()],
      [...importUndos.values()],
    ])
    assertRowCount(rows[0]!.count, importUndos.size)
  }
  await writePersonless(session, changes)
  const persons = await writePersons(session, changes)
  await writeMappings(session, changes, persons)
  await saveAssignmentsOfMergedPersons(session, changes)
  await mergePersons(session, changes, persons)
  await writeGroups(session, changes)
  await writeGroupTypes(session, changes)
  if (changes.visitors !== undefined) await writeVisitors(session, changes.visitors)
  if (changes.imports !== undefined) await writeImportChanges(session, changes.imports)
  const splits = (changes.splits ?? []).map(split => {
    return [split.projectId, split.distinctId, split.personUuid, split.createdAtMs, split.atMs] as const
  })
  await runStatementInSlices(session, insertStatements.splits, splits)
  const calls = changes.calledFlags.map(({ projectId, flagKey, calledAtMs }) => [projectId, flagKey, calledAtMs])
  await runStatementInSlices(session, writeStatements.noteCalls, calls)
  const changed = encodeChangedSubjects(changes)
  if (changed !== null) await session.query(texts.noteChangedSubjects, [changed])
  await writeWarnings(session, changes.warnings)
  await countOutcomes(session, changes.outcomes)
}

/**
 * Runs before the mappings are written, so that any mapping that it finds is from another worker. To check that an id was
 * never personless, it inserts and deletes the id: a worker that inserts the same id at the same time waits for this
 * transaction, and then finds the mapping.
 */
async function writePersonless(
  session: Session,
  { personlessDistinctIds, neverPersonlessDistinctIds }: ChunkChanges,
): Promise<void> {
  const toRow = ({ projectId, distinctId }: { projectId: number; distinctId: string }) =>
    [projectId, distinctId] as const
  const personless = personlessDistinctIds.map(toRow)
  const never = neverPersonlessDistinctIds.map(toRow)
  // Both lists are sorted together, so that two workers with the same ids in opposite lists do not deadlock.
  const sorted = [...personless, ...never].toSorted((a, b) => a[0] - b[0] || compare(a[1], b[1]))
  const { rows } = await runStatementInSlices<{ project_id: number; distinct_id: string }>(
    session,
    `${insertStatements.personless} RETURNING project_id, distinct_id`,
    sorted,
  )
  assertRowCount((await runStatementInSlices(session, lockStatements.findMapped, personless)).rowCount, 0)
  const entered = new Set(rows.map(row => `${row.project_id} ${row.distinct_id}`))
  for (const [projectId, distinctId] of personless) entered.delete(`${projectId} ${distinctId}`)
  assertRowCount(entered.size, never.length)
  await runStatementInSlices(session, lockStatements.deletePersonless, never)
}

async function writePersons(session: Session, changes: ChunkChanges): Promise<StoredPersons> {
  const persons = await lockPersons(session, changes)
  const versions = new Map(Array.from(persons, ([key, { version }]) => [key, version]))
  const settled = toInsertsAndUpdates(changes.persons, row => personKey(row.projectId, row.uuid), versions)
  const byUuid = (a: Person, b: Person) => compare(a.uuid, b.uuid) || a.projectId - b.projectId

  const added = settled.inserts.toSorted(byUuid)
  const inserted = await runStatementForEach<{ id: number; project_id: number; uuid: string }>(
    session,
    `${insertStatements.persons} RETURNING id, project_id, uuid`,
    added.map(row => [row.projectId, row.uuid, ...toPersonColumns(row)]),
  )
  for (const { id, project_id, uuid } of inserted) persons.set(personKey(project_id, uuid), { id, version: 0 })

  const updates = settled.updates.toSorted((a, b) => byUuid(a.row, b.row))
  const updated = updates.map(({ row, storedVersion }) => {
    const { id } = persons.get(personKey(row.projectId, row.uuid))!
    return [id, storedVersion, ...toPersonColumns(row)]
  })
  await runStatementForEach(session, writeStatements.updatePersons, updated)
  for (const row of [...added, ...updates.map(update => update.row)]) {
    const key = personKey(row.projectId, row.uuid)
    persons.set(key, { id: persons.get(key)!.id, version: row.version })
  }
  return persons
}

type Person = ChunkChanges['persons'][number]['row']

/**
 * Locks every existing person in the changes: each person to be updated or deleted, and each that a distinct id is mapped
 * to.
 */
async function lockPersons(session: Session, changes: ChunkChanges): Promise<StoredPersons> {
  const wanted = new Map<string, readonly [number, string]>()
  const want = (projectId: number, uuid: string) => wanted.set(personKey(projectId, uuid), [projectId, uuid])
  for (const { row } of changes.mappings) want(row.projectId, row.personUuid)
  for (const { projectId, uuid, survivorUuid } of changes.deletedPersons) {
    want(projectId, uuid)
    want(projectId, survivorUuid)
  }
  // Persons that the changes create are not locked: if one already exists, its insert detects this.
  for (const { row, loadedVersion } of changes.persons)
    if (loadedVersion === null) wanted.delete(personKey(row.projectId, row.uuid))
  for (const { row, loadedVersion } of changes.persons) if (loadedVersion !== null) want(row.projectId, row.uuid)
  const names = [...wanted.values()].toSorted((a, b) => compare(a[1], b[1]) || a[0] - b[0])
  const { rows } = await runStatementInSlices<{ id: number; project_id: number; uuid: string; version: number }>(
    session,
    lockStatements.lockPersons,
    names,
  )
  return new Map(rows.map(({ id, project_id, uuid, version }) => [personKey(project_id, uuid), { id, version }]))
}

type Mapping = ChunkChanges['mappings'][number]['row']

async function writeMappings(session: Session, { mappings }: ChunkChanges, persons: StoredPersons): Promise<void> {
  const toKey = (row: { projectId: number; distinctId: string }) => `${row.projectId} ${row.distinctId}`
  const known = mappings
    .filter(({ loadedVersion }) => loadedVersion !== null)
    .map(({ row }) => [row.projectId, row.distinctId] as const)
  const locked = await runStatementInSlices<{ project_id: number; distinct_id: string; version: number }>(
    session,
    lockStatements.lockMappings,
    removeRepeats(known, ([projectId, distinctId]) => toKey({ projectId, distinctId })),
  )
  const versions = new Map(
    locked.rows.map(row => [toKey({ projectId: row.project_id, distinctId: row.distinct_id }), row.version]),
  )
  for (const { row } of mappings) requirePerson(persons, row.projectId, row.personUuid)
  const settled = toInsertsAndUpdates(mappings, toKey, versions)
  const getPersonId = (row: Mapping) => requirePerson(persons, row.projectId, row.personUuid).id
  await runStatementForEach(
    session,
    insertStatements.mappings,
    settled.inserts
      .toSorted((a, b) => a.projectId - b.projectId || compare(a.distinctId, b.distinctId))
      .map(row => [row.projectId, row.distinctId, getPersonId(row), row.version]),
  )
  await runStatementForEach(
    session,
    writeStatements.updateMappings,
    settled.updates.map(({ row, storedVersion }) => [
      ...[row.projectId, row.distinctId, storedVersion],
      ...[getPersonId(row), row.version],
    ]),
  )
}

async function mergePersons(session: Session, { deletedPersons }: ChunkChanges, persons: StoredPersons): Promise<void> {
  if (deletedPersons.length === 0) return
  const merged: (readonly [number, number])[] = []
  /** Maps each survivor to the persons whose flag assignments and cohorts it gets, in order of precedence. */
  const heirlooms = new Map<number, number[]>()
  for (const { projectId, uuid, survivorUuid, loadedVersion } of deletedPersons) {
    const { id, version } = requirePerson(persons, projectId, uuid)
    const survivorId = requirePerson(persons, projectId, survivorUuid).id
    if (version !== loadedVersion) throw new CommitRefused()
    merged.push([id, version])
    heirlooms.set(survivorId, [...(heirlooms.get(survivorId) ?? []), id, ...(heirlooms.get(id) ?? [])])
    heirlooms.delete(id)
    persons.delete(personKey(projectId, uuid))
  }
  const moves = [...heirlooms].flatMap(([survivorId, from]) => from.map(id => [id, survivorId]))
  const pairs = [moves.map(move => move[0]), moves.map(move => move[1])]
  await session.query(writeStatements.moveOverrides, pairs)
  await session.query(writeStatements.moveMemberships, pairs)
  // If a distinct id was attached to one of these persons since they were loaded, its foreign key makes the delete fail,
  // which counts as a conflict.
  await runStatementForEach(session, writeStatements.deletePersons, merged)
}

async function writeGroups(session: Session, { groups }: ChunkChanges): Promise<void> {
  const toKey = (projectId: number, typeIndex: number, key: string) => `${projectId} ${typeIndex} ${key}`
  const known = groups
    .filter(({ loadedVersion }) => loadedVersion !== null)
    .map(({ row }) => [row.projectId, row.typeIndex, row.key] as const)
  const locked = await runStatementInSlices<{
    project_id: number
    group_type_index: number
    group_key: string
    version: number
  }>(
    session,
    lockStatements.lockGroups,
    removeRepeats(known, name => toKey(...name)),
  )
  const versions = new Map(
    locked.rows.map(row => [toKey(row.project_id, row.group_type_index, row.group_key), row.version]),
  )
  const settled = toInsertsAndUpdates(groups, row => toKey(row.projectId, row.typeIndex, row.key), versions)
  await runStatementForEach(
    session,
    insertStatements.groups,
    settled.inserts
      .toSorted((a, b) => a.projectId - b.projectId || a.typeIndex - b.typeIndex || compare(a.key, b.key))
      .map(row => [row.projectId, row.typeIndex, row.key, ...toGroupColumns(row)]),
  )
  await runStatementForEach(
    session,
    writeStatements.updateGroups,
    settled.updates.map(({ row, storedVersion }) => [
      ...[row.projectId, row.typeIndex, row.key, storedVersion],
      ...toGroupColumns(row),
    ]),
  )
}

/**
 * Writes new group types; a project has at most five. A new type changes what flags can aggregate by, so definitions are
 * read again.
 */
async function writeGroupTypes(session: Session, { groupTypes, usedGroupTypes }: ChunkChanges): Promise<void> {
  // Locks the group types in use, so that a deletion of a type waits until the groups written here are committed, and finds
  // them.
  for (const { projectId, name, index } of usedGroupTypes)
    assertRowCount((await session.query(`${texts.hasGroupType} FOR SHARE`, [projectId, name, index])).rowCount ?? 0, 1)
  const changedProjects = new Set<number>()
  for (const { projectId, name, index } of groupTypes) {
    const { rowCount } = await session.query(texts.insertGroupType, [projectId, name, index])
    if (rowCount === 1) changedProjects.add(projectId)
    else if ((await session.query(texts.hasGroupType, [projectId, name, index])).rowCount === 0)
      throw new CommitRefused()
  }
  for (const projectId of changedProjects) {
    const { rows } = await session.query<{ value: number }>(texts.bumpRevision)
    await session.query(texts.noteRevision, [rows[0]!.value, projectId])
  }
}

async function writeWarnings(session: Session, warnings: readonly IngestionWarning[]): Promise<void> {
  const days = groupWarningsByDay(warnings)
  const toKey = (projectId: number, type: string, day: string) => `${projectId} ${day} ${type}`
  const counted = await runStatementInSlices<{ project_id: number; type: string; day: string; warning_count: number }>(
    session,
    insertStatements.warningCounts,
    days.map(({ columns }) => columns),
  )
  const counts = new Map(counted.rows.map(row => [toKey(row.project_id, row.type, row.day), row.warning_count]))
  const samples = days.flatMap(ofDay => {
    const [projectId, type, day] = ofDay.columns
    return toWarningSampleRows(ofDay, counts.get(toKey(projectId, type, day))!)
  })
  await runStatementInSlices(session, insertStatements.warnings, samples)
}

async function countOutcomes(session: Session, outcomes: readonly ChunkOutcome[]): Promise<void> {
  const sums = new Map<string, ChunkOutcome>()
  for (const outcome of outcomes) {
    const key = `${outcome.projectId} ${outcome.lane} ${outcome.outcome} ${outcome.reason}`
    sums.set(key, { ...outcome, count: outcome.count + (sums.get(key)?.count ?? 0) })
  }
  const sorted = [...sums].toSorted(([a], [b]) => compare(a, b)).map(([, sum]) => sum)
  const rows = sorted.map(({ projectId, lane, outcome, reason, count }) => [projectId, lane, outcome, reason, count])
  await runStatementInSlices(session, insertStatements.outcomes, rows)
}

/**
 * Compares the changes, in their order, with the stored versions; of several changes to one row, the last change is
 * written.
 * @param versions the stored versions of the existing rows, by key.
 * @throws CommitRefused
 */
function toInsertsAndUpdates<Row extends { readonly version: number }>(
  changes: readonly Versioned<Row>[],
  keyOf: (row: Row) => string,
  versions: ReadonlyMap<string, number>,
): { inserts: Row[]; updates: { row: Row; storedVersion: number }[] } {
  const latest = new Map<string, Row>()
  for (const { row, loadedVersion } of changes) {
    const key = keyOf(row)
    if ((latest.get(key)?.version ?? versions.get(key) ?? null) !== loadedVersion) throw new CommitRefused()
    latest.set(key, row)
  }
  const inserts: Row[] = []
  const updates: { row: Row; storedVersion: number }[] = []
  for (const [key, row] of latest) {
    const storedVersion = versions.get(key)
    if (storedVersion === undefined) inserts.push(row)
    else updates.push({ row, storedVersion })
  }
  return { inserts, updates }
}

function requirePerson(persons: StoredPersons, projectId: number, uuid: string): { id: number; version: number } {
  const person = persons.get(personKey(projectId, uuid))
  if (person === undefined) throw new CommitRefused()
  return person
}

function personKey(projectId: number, uuid: string): string {
  return `${projectId} ${uuid}`
}

function removeRepeats<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  return [...new Map(items.map(item => [keyOf(item), item])).values()]
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
