// Writes what a chunk changed for import jobs, inside the chunk's transaction.

import { imageText } from '#adapters/sql/imports/image-text.ts'
import * as texts from '#adapters/sql/imports/import-texts.ts'
import { flagBit, jsonText } from '#adapters/sql/tables/rows.ts'
import { type ImportChanges, noteSampleCountMax } from '#core/imports/import-changes.ts'
import { chunkTexts, rowTexts } from './chunk-texts.ts'
import type { SqliteDatabase } from './open-sqlite.ts'

/** @throws what SQLite throws. */
export type ImportWriter = (changes: ImportChanges) => void

/** @param expectOne ends the transaction with a conflict unless one row was changed. */
export function prepareImportWriter(database: SqliteDatabase, expectOne: (changes: number) => void): ImportWriter {
  const prepare = (sql: string) => database.prepare<unknown[]>(sql)
  const insertLink = prepare(texts.insertLinkText)
  const countNotes = database.prepare<unknown[], number>(texts.countNotesText).pluck()
  const insertSample = prepare(texts.insertNoteSampleText)
  const saveImage = prepare(texts.saveImageText)
  const deleteLink = prepare(texts.deleteLinkText)
  const deleteImage = prepare(texts.deleteImageText)
  const deleteMapping = prepare(texts.deleteMappingText)
  const deleteGroup = prepare(texts.deleteGroupText)
  const raiseNextVersion = prepare(texts.raiseNextVersionText)
  const insertGenerated = prepare(texts.insertGeneratedText)
  const findPersonId = database.prepare<unknown[], number>(rowTexts.findPersonId).pluck()
  const hasMappings = prepare(rowTexts.hasMappings)
  const deleteOverrides = prepare(rowTexts.deleteOverrides)
  const deleteMemberships = prepare(rowTexts.deleteMemberships)
  const deletePerson = prepare(chunkTexts.deletePersons)

  const hasJob = prepare(texts.hasJobText)

  return changes => {
    for (const { id, state, step } of changes.jobs) expectOne(hasJob.get(id, state, step ?? '') === undefined ? 0 : 1)
    for (const link of changes.links) {
      const { importJobId, distinctId, otherId, dangerously, timestampMs, uuid } = link
      insertLink.run(importJobId, distinctId, otherId, flagBit(dangerously), timestampMs, uuid)
    }
    for (const { importJobId, reason, count, samples } of changes.notes) {
      const roomLeft = noteSampleCountMax - (countNotes.get(importJobId, reason, count)! - count)
      for (const details of samples.slice(0, Math.max(0, roomLeft)))
        insertSample.run(importJobId, reason, jsonText(details))
    }
    for (const { importJobId, projectId, kind, subject, before, after } of changes.images)
      saveImage.run(importJobId, kind, subject, projectId, imageText(before), imageText(after))
    for (const id of changes.doneLinkIds) deleteLink.run(id)
    for (const { importJobId, kind, subject } of changes.doneImages) deleteImage.run(importJobId, kind, subject)
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
