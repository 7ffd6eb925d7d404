// Writes what one chunk changed, inside a transaction that the caller began. A conditional write that finds a row changed
// since the load ends the transaction: the caller rolls back, so nothing of the chunk stays.

import {
  assertRowCount,
  CommitRefused,
  groupWarningsByDay,
  sharedStatements,
  toGroupColumns,
  toPersonColumns,
  toWarningSampleRows,
} from '#adapters/sql/processing/chunk-queries.ts'
import { toResourceRow } from '#adapters/sql/tables/resource-rows.ts'
import { visitorIdentify, visitorSession } from '#adapters/sql/tables/schema.ts'
import { encodeChangedSubjects } from '#core/processing/mirror-subjects.ts'
import type { ChunkChanges, IngestionWarning } from '#ports/state/chunk-store.ts'
import { insertStatements, rowStatements } from './chunk-statements.ts'
import { prepareAssignmentWriter, prepareImportWriter } from './import-commit.ts'
import { prepareStatements, type SqliteDatabase } from './open-sqlite.ts'

/** @throws CommitRefused, or what SQLite throws. */
export function prepareChunkWriter(database: SqliteDatabase): (changes: ChunkChanges) => void {
  const sql = prepareStatements(database, { ...sharedStatements, ...rowStatements })
  const insert = prepareStatements(database, insertStatements)
  const findPersonId = database.prepare<[number, string], number>(rowStatements.findPersonId).pluck()
  const bumpRevision = database.prepare<[], number>(sharedStatements.bumpRevision).pluck()
  const countWarnings = database.prepare<unknown[], number>(insertStatements.warningCounts).pluck()
  const keepAssignments = prepareAssignmentWriter(database)
  const writeImports = prepareImportWriter(database)

  return changes => {
    for (const [projectId, count] of changes.importUndos ?? [])
      assertRowCount(sql.hasImportUndos.get(projectId, count) === undefined ? 0 : 1)
    writePersonless(changes)
    writePersons(changes)
    writeMappings(changes)
    keepAssignments(changes)
    mergePersons(changes)
    writeGroups(changes)
    writeGroupTypes(changes)
    for (const identify of changes.visitors?.identifies ?? [])
      insert.identifies.run(...Object.values(toResourceRow(visitorIdentify, identify)))
    for (const session of changes.visitors?.sessions ?? [])
      insert.sessions.run(...Object.values(toResourceRow(visitorSession, session)))
    if (changes.imports !== undefined) writeImports(changes.imports)
    for (const { projectId, distinctId, personUuid, createdAtMs, atMs } of changes.splits ?? [])
      insert.splits.run(projectId, distinctId, personUuid, createdAtMs, atMs)
    for (const { projectId, flagKey, calledAtMs } of changes.calledFlags)
      sql.noteCalls.run(calledAtMs, projectId, flagKey)
    const changed = encodeChangedSubjects(changes)
    if (changed !== null) sql.noteChangedSubjects.run(changed)
    writeWarnings(changes.warnings)
    for (const outcome of changes.outcomes)
      insert.outcomes.run(outcome.projectId, outcome.lane, outcome.outcome, outcome.reason, outcome.count)
  }

  /** Runs before the mappings are written, so that any mapping it finds is another worker's. */
  function writePersonless({ personlessDistinctIds, neverPersonlessDistinctIds }: ChunkChanges): void {
    for (const { projectId, distinctId } of personlessDistinctIds) {
      if (sql.hasMapping.get(projectId, distinctId) !== undefined) throw new CommitRefused()
      insert.personless.run(projectId, distinctId)
    }
    for (const { projectId, distinctId } of neverPersonlessDistinctIds)
      if (sql.hasPersonless.get(projectId, distinctId) !== undefined) throw new CommitRefused()
  }

  function writePersons({ persons }: ChunkChanges): void {
    for (const { row, loadedVersion } of persons) {
      const { projectId, uuid } = row
      const { changes } =
        loadedVersion === null
          ? insert.persons.run(projectId, uuid, ...toPersonColumns(row))
          : sql.updatePersons.run(...toPersonColumns(row), projectId, uuid, loadedVersion)
      assertRowCount(changes)
    }
  }

  function writeMappings({ mappings }: ChunkChanges): void {
    for (const { row, loadedVersion } of mappings) {
      const personId = requirePersonId(row.projectId, row.personUuid)
      const { changes } =
        loadedVersion === null
          ? insert.mappings.run(row.projectId, row.distinctId, personId, row.version)
          : sql.updateMappings.run(personId, row.version, row.projectId, row.distinctId, loadedVersion)
      assertRowCount(changes)
    }
  }

  function mergePersons({ deletedPersons }: ChunkChanges): void {
    for (const { projectId, uuid, survivorUuid, loadedVersion } of deletedPersons) {
      const personId = requirePersonId(projectId, uuid)
      const survivorId = requirePersonId(projectId, survivorUuid)
      sql.moveOverrides.run(survivorId, personId)
      sql.deleteOverrides.run(personId)
      sql.moveMemberships.run(survivorId, personId)
      sql.deleteMemberships.run(personId)
      // Refuse the commit if a distinct id was attached to this person since the load: it would lose its person.
      if (sql.hasMappings.get(personId) !== undefined) throw new CommitRefused()
      assertRowCount(sql.deletePersons.run(personId, loadedVersion).changes)
    }
  }

  function requirePersonId(projectId: number, uuid: string): number {
    const id = findPersonId.get(projectId, uuid)
    if (id === undefined) throw new CommitRefused()
    return id
  }

  function writeGroups({ groups }: ChunkChanges): void {
    for (const { row, loadedVersion } of groups) {
      const { projectId, typeIndex, key } = row
      const { changes } =
        loadedVersion === null
          ? insert.groups.run(projectId, typeIndex, key, ...toGroupColumns(row))
          : sql.updateGroups.run(...toGroupColumns(row), projectId, typeIndex, key, loadedVersion)
      assertRowCount(changes)
    }
  }

  /** A new group type changes what flags of the project can aggregate by, so definitions are read again. */
  function writeGroupTypes({ groupTypes, usedGroupTypes }: ChunkChanges): void {
    for (const { projectId, name, index } of usedGroupTypes)
      if (sql.hasGroupType.get(projectId, name, index) === undefined) throw new CommitRefused()
    const changedProjects = new Set<number>()
    for (const { projectId, name, index } of groupTypes) {
      if (sql.insertGroupType.run(projectId, name, index).changes === 1) changedProjects.add(projectId)
      else if (sql.hasGroupType.get(projectId, name, index) === undefined) throw new CommitRefused()
    }
    for (const projectId of changedProjects) sql.noteRevision.run(bumpRevision.get(), projectId)
  }

  function writeWarnings(warnings: readonly IngestionWarning[]): void {
    for (const ofDay of groupWarningsByDay(warnings)) {
      const countSoFar = countWarnings.get(...ofDay.columns)!
      for (const columns of toWarningSampleRows(ofDay, countSoFar)) insert.warnings.run(...columns)
    }
  }
}
