// Writes what a chunk changed for import jobs, inside the chunk's transaction.

import { createAssignmentRecords, importStatements } from '#adapters/sql/imports/import-statements.ts'
import { assertRowCount } from '#adapters/sql/processing/chunk-queries.ts'
import { toJsonText, toSqlBoolean } from '#adapters/sql/tables/rows.ts'
import { type ImportChanges, noteSampleCountMax } from '#core/imports/import-changes.ts'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'
import { insertStatements, rowStatements } from './chunk-statements.ts'
import { prepareStatements, type SqliteDatabase } from './open-sqlite.ts'

/** @throws CommitRefused, or what SQLite throws, as does `prepareAssignmentWriter`. */
export function prepareImportWriter(database: SqliteDatabase): (changes: ImportChanges) => void {
  const sql = prepareStatements(database, { ...importStatements, ...rowStatements })
  const insert = prepareStatements(database, insertStatements)
  const countNotes = database.prepare<unknown[], number>(importStatements.countNotes).pluck()
  const findPersonId = database.prepare<unknown[], number>(rowStatements.findPersonId).pluck()

  function returnAssignments({ returnedAssignments }: ImportChanges): void {
    for (const { projectId, uuid, assignments, survivorUuid, given } of returnedAssignments) {
      const [id, survivorId] = [uuid, survivorUuid].map(name => findPersonId.get(projectId, name))
      for (const [flagKey, hashKey] of given.hashKeys) sql.takeHashKey.run(survivorId, flagKey, hashKey)
      for (const cohortId of given.cohortIds) sql.takeMembership.run(survivorId, cohortId)
      for (const [flagKey, hashKey] of assignments.hashKeys) sql.returnHashKey.run(projectId, id, flagKey, hashKey)
      for (const cohortId of assignments.cohortIds) sql.returnMembership.run(id, cohortId)
    }
  }

  return changes => {
    for (const { id, state, step } of changes.jobs)
      assertRowCount(sql.hasJob.get(id, state, step ?? '') === undefined ? 0 : 1)
    for (const { projectId, uuid, loadedVersion } of changes.unchangedPersons)
      assertRowCount(sql.hasPerson.get(projectId, uuid, loadedVersion) === undefined ? 0 : 1)
    for (const link of changes.links) {
      const { importJobId, distinctId, otherId, dangerously, timestampMs, uuid } = link
      insert.links.run(importJobId, distinctId, otherId, toSqlBoolean(dangerously), timestampMs, uuid)
    }
    for (const { importJobId, count } of changes.storedRows) sql.countStoredRows.run(count, importJobId)
    for (const { importJobId, reason, count, samples } of changes.notes) {
      const samplesLeft = noteSampleCountMax - (countNotes.get(importJobId, reason, count)! - count)
      for (const details of samples.slice(0, Math.max(0, samplesLeft)))
        sql.insertNoteSample.run(importJobId, reason, toJsonText(details))
    }
    for (const { importJobId, typeIndex, name, isAdded } of changes.namedGroupTypes)
      insert.namedGroupTypes.run(importJobId, typeIndex, name, toSqlBoolean(isAdded))
    for (const { importJobId, typeIndex } of changes.leftGroupTypes) {
      sql.passOnGroupType.run(typeIndex, typeIndex, importJobId)
      sql.leaveGroupType.run(importJobId, typeIndex)
    }
    returnAssignments(changes)
    for (const id of changes.doneLinkIds) sql.deleteLink.run(id)
    for (const { projectId, distinctId, loadedVersion } of changes.removedMappings)
      assertRowCount(sql.deleteMapping.run(projectId, distinctId, loadedVersion).changes)
    for (const { projectId, uuid, loadedVersion } of changes.removedPersons) {
      const id = findPersonId.get(projectId, uuid)
      assertRowCount(id === undefined || sql.hasMappings.get(id) !== undefined ? 0 : 1)
      sql.deleteOverrides.run(id)
      sql.deleteMemberships.run(id)
      assertRowCount(sql.deletePersons.run(id, loadedVersion).changes)
    }
    for (const { projectId, typeIndex, key, loadedVersion } of changes.removedGroups)
      assertRowCount(sql.deleteGroup.run(projectId, typeIndex, key, loadedVersion).changes)
    for (const { projectId, distinctId, version } of changes.nextVersions)
      sql.raiseNextVersion.run(projectId, distinctId, version)
    for (const { projectId, uuid, timestampMs, importJobId } of changes.generated)
      insert.generated.run(projectId, uuid, timestampMs, importJobId)
  }
}

/** Stores the assignments of the persons that the changes merge away; call it before the merge. */
export function prepareAssignmentWriter(database: SqliteDatabase): (changes: ChunkChanges) => void {
  const findPersonId = database.prepare<unknown[], number>(rowStatements.findPersonId).pluck()
  const listHashKeys = database.prepare<unknown[], [string, string]>(importStatements.listHashKeys).raw()
  const listMemberships = database.prepare<unknown[], number>(importStatements.listMemberships).pluck()
  const saveAssignments = database.prepare<unknown[]>(insertStatements.assignments)

  return ({ imports, deletedPersons }) => {
    if (imports == null || imports.keepsAssignmentsFor === null) return
    const readAssignments = (uuid: string) => {
      const id = findPersonId.get(deletedPersons[0]!.projectId, uuid)
      return { hashKeys: listHashKeys.all(id), cohortIds: listMemberships.all(id) }
    }
    const records = createAssignmentRecords(imports.keepsAssignmentsFor, deletedPersons, readAssignments)
    for (const { importJobId, uuid, survivorUuid, own, taken } of records)
      saveAssignments.run(importJobId, uuid, survivorUuid, JSON.stringify(own), JSON.stringify(taken))
  }
}
