// Writes what a chunk changed for import jobs, inside the chunk's transaction.

import * as texts from '#adapters/sql/imports/import-texts.ts'
import { makeAssignmentRecords } from '#adapters/sql/imports/kept-assignments.ts'
import { flagBit, jsonText } from '#adapters/sql/tables/rows.ts'
import { type ImportChanges, noteSampleCountMax } from '#core/imports/import-changes.ts'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'
import { chunkTexts, rowTexts } from './chunk-texts.ts'
import type { SqliteDatabase } from './open-sqlite.ts'

/** @throws what SQLite throws. */
export type ImportWriter = (changes: ImportChanges) => void

/** @param expectOne ends the transaction with a conflict unless one row was changed. */
export function prepareImportWriter(database: SqliteDatabase, expectOne: (changes: number) => void): ImportWriter {
  const prepare = (sql: string) => database.prepare<unknown[]>(sql)
  const insertLink = prepare(texts.insertLinkText)
  const countNotes = database.prepare<unknown[], number>(texts.countNotesText).pluck()
  const countStoredRows = prepare(texts.countStoredRowsText)
  const insertSample = prepare(texts.insertNoteSampleText)
  const nameGroupType = prepare(texts.nameGroupTypeText)
  const passOnGroupType = prepare(texts.passOnGroupTypeText)
  const leaveGroupType = prepare(texts.leaveGroupTypeText)
  const deleteLink = prepare(texts.deleteLinkText)
  const deleteMapping = prepare(texts.deleteMappingText)
  const deleteGroup = prepare(texts.deleteGroupText)
  const raiseNextVersion = prepare(texts.raiseNextVersionText)
  const hasPerson = prepare(texts.hasPersonText)
  const insertGenerated = prepare(texts.insertGeneratedText)
  const findPersonId = database.prepare<unknown[], number>(rowTexts.findPersonId).pluck()
  const hasMappings = prepare(rowTexts.hasMappings)
  const deleteOverrides = prepare(rowTexts.deleteOverrides)
  const deleteMemberships = prepare(rowTexts.deleteMemberships)
  const deletePerson = prepare(chunkTexts.deletePersons)

  const hasJob = prepare(texts.hasJobText)
  const takeHashKey = prepare(texts.takeHashKeyText)
  const returnHashKey = prepare(texts.returnHashKeyText)
  const takeMembership = prepare(texts.takeMembershipText)
  const returnMembership = prepare(texts.returnMembershipText)

  function returnAssignments({ returnedAssignments }: ImportChanges): void {
    for (const { projectId, uuid, assignments, survivorUuid, given } of returnedAssignments) {
      const [id, survivorId] = [uuid, survivorUuid].map(name => findPersonId.get(projectId, name))
      for (const [flagKey, hashKey] of given.hashKeys) takeHashKey.run(survivorId, flagKey, hashKey)
      for (const cohortId of given.cohortIds) takeMembership.run(survivorId, cohortId)
      for (const [flagKey, hashKey] of assignments.hashKeys) returnHashKey.run(projectId, id, flagKey, hashKey)
      for (const cohortId of assignments.cohortIds) returnMembership.run(id, cohortId)
    }
  }

  return changes => {
    for (const { id, state, step } of changes.jobs) expectOne(hasJob.get(id, state, step ?? '') === undefined ? 0 : 1)
    for (const { projectId, uuid, loadedVersion } of changes.unchangedPersons)
      expectOne(hasPerson.get(projectId, uuid, loadedVersion) === undefined ? 0 : 1)
    for (const link of changes.links) {
      const { importJobId, distinctId, otherId, dangerously, timestampMs, uuid } = link
      insertLink.run(importJobId, distinctId, otherId, flagBit(dangerously), timestampMs, uuid)
    }
    for (const { importJobId, count } of changes.storedRows) countStoredRows.run(count, importJobId)
    for (const { importJobId, reason, count, samples } of changes.notes) {
      const samplesLeft = noteSampleCountMax - (countNotes.get(importJobId, reason, count)! - count)
      for (const details of samples.slice(0, Math.max(0, samplesLeft)))
        insertSample.run(importJobId, reason, jsonText(details))
    }
    for (const { importJobId, typeIndex, name, isAdded } of changes.namedGroupTypes)
      nameGroupType.run(importJobId, typeIndex, name, flagBit(isAdded))
    for (const { importJobId, typeIndex } of changes.leftGroupTypes) {
      passOnGroupType.run(typeIndex, typeIndex, importJobId)
      leaveGroupType.run(importJobId, typeIndex)
    }
    returnAssignments(changes)
    for (const id of changes.doneLinkIds) deleteLink.run(id)
    for (const { projectId, distinctId, loadedVersion } of changes.removedMappings)
      expectOne(deleteMapping.run(projectId, distinctId, loadedVersion).changes)
    for (const { projectId, uuid, loadedVersion } of changes.removedPersons) {
      const id = findPersonId.get(projectId, uuid)
      expectOne(id === undefined || hasMappings.get(id) !== undefined ? 0 : 1)
      deleteOverrides.run(id)
      deleteMemberships.run(id)
      expectOne(deletePerson.run(id, loadedVersion).changes)
    }
    for (const { projectId, typeIndex, key, loadedVersion } of changes.removedGroups)
      expectOne(deleteGroup.run(projectId, typeIndex, key, loadedVersion).changes)
    for (const { projectId, distinctId, version } of changes.nextVersions)
      raiseNextVersion.run(projectId, distinctId, version)
    for (const { projectId, uuid, timestampMs, importJobId } of changes.generated)
      insertGenerated.run(projectId, uuid, timestampMs, importJobId)
  }
}

/** Stores the assignments of the persons that the changes merge away; call it before the merge. */
export function prepareAssignmentKeeper(database: SqliteDatabase): (changes: ChunkChanges) => void {
  const findPersonId = database.prepare<unknown[], number>(rowTexts.findPersonId).pluck()
  const listHashKeys = database.prepare<unknown[], [string, string]>(texts.listHashKeysText).raw()
  const listMemberships = database.prepare<unknown[], number>(texts.listMembershipsText).pluck()
  const saveAssignments = database.prepare<unknown[]>(texts.saveAssignmentsText)

  return ({ imports, deletedPersons }) => {
    if (imports == null || imports.keepsAssignmentsFor === null) return
    const assignmentsOf = (uuid: string) => {
      const id = findPersonId.get(deletedPersons[0]!.projectId, uuid)
      return { hashKeys: listHashKeys.all(id), cohortIds: listMemberships.all(id) }
    }
    const records = makeAssignmentRecords(imports.keepsAssignmentsFor, deletedPersons, assignmentsOf)
    for (const { importJobId, uuid, survivorUuid, own, taken } of records)
      saveAssignments.run(importJobId, uuid, survivorUuid, JSON.stringify(own), JSON.stringify(taken))
  }
}
