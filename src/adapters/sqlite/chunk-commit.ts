// Writes what one chunk changed, inside a transaction that the caller began. Every conditional write that finds another
// row than the one that was loaded ends it: the caller rolls back, so nothing of the chunk stays.

import type { Statement } from 'better-sqlite3'
import * as text from '#adapters/sql/chunk-queries.ts'
import { flagBit, jsonText, utcDay } from '#adapters/sql/rows.ts'
import { warningSamplesPerDay } from '#core/events/warning-types.ts'
import { encodeMarks } from '#core/persons/property-marks-text.ts'
import { dayMs } from '#core/time.ts'
import type { ChunkChanges, IngestionWarning } from '#ports/chunk-store.ts'
import type { SqliteDatabase } from './open-sqlite.ts'

/** Thrown to leave the transaction: a row is not as it was when the chunk was loaded. */
export class VersionConflict extends Error {}

/** @throws VersionConflict, or what SQLite throws. */
export type ChunkWriter = (changes: ChunkChanges) => void

export function prepareChunkWriter(database: SqliteDatabase): ChunkWriter {
  const prepare = (sql: string): Statement<unknown[]> => database.prepare<unknown[]>(sql)
  const findPersonId = database.prepare<[number, string], number>(text.findPersonIdText).pluck()
  const insertPerson = prepare(text.insertPersonText)
  const updatePerson = prepare(text.updatePersonText)
  const deletePerson = prepare(text.deletePersonText)
  const insertMapping = prepare(text.insertMappingText)
  const updateMapping = prepare(text.updateMappingText)
  const hasMappings = prepare(text.hasMappingsText)
  const moveOverrides = prepare(text.moveOverridesText)
  const deleteOverrides = prepare(text.deleteOverridesText)
  const moveMemberships = prepare(text.moveMembershipsText)
  const deleteMemberships = prepare(text.deleteMembershipsText)
  const insertPersonless = prepare(text.insertPersonlessText)
  const hasMapping = prepare(text.hasMappingText)
  const hasPersonless = prepare(text.hasPersonlessText)
  const insertGroupType = prepare(text.insertGroupTypeText)
  const hasGroupType = prepare(text.hasGroupTypeText)
  const insertGroup = prepare(text.insertGroupText)
  const updateGroup = prepare(text.updateGroupText)
  const bumpRevision = database.prepare<[], number>(text.bumpRevisionText).pluck()
  const noteRevision = prepare(text.noteRevisionText)
  const countWarnings = database.prepare<unknown[], number>(text.countWarningsText).pluck()
  const insertWarning = prepare(text.insertWarningText)
  const countOutcome = prepare(text.countOutcomeText)

  return changes => {
    writePersonless(changes)
    writePersons(changes)
    writeMappings(changes)
    mergePersons(changes)
    writeGroups(changes)
    writeGroupTypes(changes)
    writeWarnings(changes.warnings)
    for (const outcome of changes.outcomes)
      countOutcome.run(outcome.projectId, outcome.lane, outcome.outcome, outcome.reason, outcome.count)
  }

  /** Before the mappings, so that one it finds is another worker's. */
  function writePersonless({ personlessDistinctIds, neverPersonlessDistinctIds }: ChunkChanges): void {
    for (const { projectId, distinctId } of personlessDistinctIds) {
      if (hasMapping.get(projectId, distinctId) !== undefined) throw new VersionConflict()
      insertPersonless.run(projectId, distinctId)
    }
    for (const { projectId, distinctId } of neverPersonlessDistinctIds)
      if (hasPersonless.get(projectId, distinctId) !== undefined) throw new VersionConflict()
  }

  function writePersons({ persons }: ChunkChanges): void {
    for (const { row, loadedVersion } of persons) {
      const properties = jsonText(row.properties)
      const marks = encodeMarks(row.marks)
      const identified = flagBit(row.isIdentified)
      const { changes } =
        loadedVersion === null
          ? insertPerson.run(
              row.projectId,
              row.uuid,
              properties,
              marks,
              row.createdAtMs,
              identified,
              row.version,
              row.lastSeenAtMs,
            )
          : updatePerson.run(
              properties,
              marks,
              row.createdAtMs,
              identified,
              row.version,
              row.lastSeenAtMs,
              row.projectId,
              row.uuid,
              loadedVersion,
            )
      expectOne(changes)
    }
  }

  function writeMappings({ mappings }: ChunkChanges): void {
    for (const { row, loadedVersion } of mappings) {
      const personId = personIdOf(row.projectId, row.personUuid)
      const { changes } =
        loadedVersion === null
          ? insertMapping.run(row.projectId, row.distinctId, personId, row.version)
          : updateMapping.run(personId, row.version, row.projectId, row.distinctId, loadedVersion)
      expectOne(changes)
    }
  }

  function mergePersons({ deletedPersons }: ChunkChanges): void {
    for (const { projectId, uuid, survivorUuid, loadedVersion } of deletedPersons) {
      const personId = personIdOf(projectId, uuid)
      const survivorId = personIdOf(projectId, survivorUuid)
      moveOverrides.run(survivorId, personId)
      deleteOverrides.run(personId)
      moveMemberships.run(survivorId, personId)
      deleteMemberships.run(personId)
      // An id that was attached since the load would be left without a person.
      if (hasMappings.get(personId) !== undefined) throw new VersionConflict()
      expectOne(deletePerson.run(personId, loadedVersion).changes)
    }
  }

  function personIdOf(projectId: number, uuid: string): number {
    const id = findPersonId.get(projectId, uuid)
    if (id === undefined) throw new VersionConflict()
    return id
  }

  function writeGroups({ groups }: ChunkChanges): void {
    for (const { row, loadedVersion } of groups) {
      const properties = jsonText(row.properties)
      const marks = encodeMarks(row.marks)
      const { changes } =
        loadedVersion === null
          ? insertGroup.run(row.projectId, row.typeIndex, row.key, properties, marks, row.createdAtMs, row.version)
          : updateGroup.run(
              properties,
              marks,
              row.createdAtMs,
              row.version,
              row.projectId,
              row.typeIndex,
              row.key,
              loadedVersion,
            )
      expectOne(changes)
    }
  }

  /** A new group type changes what flags of the project can aggregate by, so definitions are read again. */
  function writeGroupTypes({ groupTypes, usedGroupTypes }: ChunkChanges): void {
    for (const { projectId, name, index } of usedGroupTypes)
      if (hasGroupType.get(projectId, name, index) === undefined) throw new VersionConflict()
    const changedProjects = new Set<number>()
    for (const { projectId, name, index } of groupTypes) {
      if (insertGroupType.run(projectId, name, index).changes === 1) changedProjects.add(projectId)
      else if (hasGroupType.get(projectId, name, index) === undefined) throw new VersionConflict()
    }
    for (const projectId of changedProjects) noteRevision.run(bumpRevision.get(), projectId)
  }

  function writeWarnings(warnings: readonly IngestionWarning[]): void {
    if (warnings.length === 0) return
    const perDay = Map.groupBy(warnings, warning =>
      JSON.stringify([warning.projectId, warning.type, Math.floor(warning.timestampMs / dayMs)]),
    )
    for (const group of perDay.values()) {
      const { projectId, type, timestampMs } = group[0]!
      const day = utcDay(timestampMs)
      const lastSeen = group.reduce((latest, warning) => Math.max(latest, warning.timestampMs), 0)
      const countSoFar = countWarnings.get(projectId, type, day, group.length, lastSeen)!
      const roomLeft = Math.max(0, warningSamplesPerDay(type) - (countSoFar - group.length))
      for (const warning of group.slice(0, roomLeft))
        insertWarning.run(projectId, type, day, warning.timestampMs, jsonText(warning.details))
    }
  }
}

function expectOne(changes: number): void {
  if (changes !== 1) throw new VersionConflict()
}
