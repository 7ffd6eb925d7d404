// Writes what one chunk changed, inside a transaction that the caller began. A conditional write that finds a row
// changed since the load ends it: the caller rolls back, so nothing of the chunk stays.

import type { Statement } from 'better-sqlite3'
import * as shared from '#adapters/sql/processing/chunk-queries.ts'
import { flagBit, jsonText } from '#adapters/sql/tables/rows.ts'
import { warningSamplesPerDay } from '#core/events/warning-types.ts'
import { encodeMarks } from '#core/persons/property-marks-text.ts'
import { changedSubjectsText } from '#core/processing/mirror-subjects.ts'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import type { ChunkChanges, IngestionWarning } from '#ports/state/chunk-store.ts'
import { chunkTexts, rowTexts } from './chunk-texts.ts'
import { prepareVisitorWriter } from './cookieless-visitors.ts'
import { prepareAssignmentKeeper, prepareImportWriter } from './import-commit.ts'
import type { SqliteDatabase } from './open-sqlite.ts'

/** Thrown to leave the transaction: a row has changed since the chunk was loaded. */
export class VersionConflict extends Error {}

/** @throws VersionConflict, or what SQLite throws. */
export type ChunkWriter = (changes: ChunkChanges) => void

export function prepareChunkWriter(database: SqliteDatabase): ChunkWriter {
  const prepare = (sql: string): Statement<unknown[]> => database.prepare<unknown[]>(sql)
  const findPersonId = database.prepare<[number, string], number>(rowTexts.findPersonId).pluck()
  const insertPerson = prepare(chunkTexts.insertPersons)
  const updatePerson = prepare(chunkTexts.updatePersons)
  const deletePerson = prepare(chunkTexts.deletePersons)
  const insertMapping = prepare(chunkTexts.insertMappings)
  const updateMapping = prepare(chunkTexts.updateMappings)
  const hasMappings = prepare(rowTexts.hasMappings)
  const moveOverrides = prepare(chunkTexts.moveOverrides)
  const deleteOverrides = prepare(rowTexts.deleteOverrides)
  const moveMemberships = prepare(chunkTexts.moveMemberships)
  const deleteMemberships = prepare(rowTexts.deleteMemberships)
  const insertPersonless = prepare(chunkTexts.insertPersonless)
  const hasMapping = prepare(rowTexts.hasMapping)
  const hasPersonless = prepare(rowTexts.hasPersonless)
  const insertGroupType = prepare(shared.insertGroupTypeText)
  const hasGroupType = prepare(shared.hasGroupTypeText)
  const insertGroup = prepare(chunkTexts.insertGroups)
  const updateGroup = prepare(chunkTexts.updateGroups)
  const noteCall = prepare(chunkTexts.noteCalls)
  const noteChanged = prepare(shared.noteChangedSubjectsText)
  const bumpRevision = database.prepare<[], number>(shared.bumpRevisionText).pluck()
  const noteRevision = prepare(shared.noteRevisionText)
  const countWarnings = database.prepare<unknown[], number>(chunkTexts.countWarnings).pluck()
  const insertWarning = prepare(chunkTexts.insertWarnings)
  const countOutcome = prepare(chunkTexts.countOutcomes)
  const keepAssignments = prepareAssignmentKeeper(database)
  const saveCut = prepare(chunkTexts.saveCuts)
  const hasImportUndos = prepare(shared.hasImportUndosText)
  const writeVisitors = prepareVisitorWriter(database)
  const writeImports = prepareImportWriter(database, expectOne)

  return changes => {
    for (const [projectId, count] of changes.importUndos ?? [])
      expectOne(hasImportUndos.get(projectId, count) === undefined ? 0 : 1)
    writePersonless(changes)
    writePersons(changes)
    writeMappings(changes)
    keepAssignments(changes)
    mergePersons(changes)
    writeGroups(changes)
    writeGroupTypes(changes)
    if (changes.visitors !== undefined) writeVisitors(changes.visitors)
    if (changes.imports !== undefined) writeImports(changes.imports)
    for (const { projectId, distinctId, personUuid, createdAtMs, atMs } of changes.cuts ?? [])
      saveCut.run(projectId, distinctId, personUuid, createdAtMs, atMs)
    for (const { projectId, flagKey, calledAtMs } of changes.calledFlags) noteCall.run(calledAtMs, projectId, flagKey)
    const changed = changedSubjectsText(changes)
    if (changed !== null) noteChanged.run(changed)
    writeWarnings(changes.warnings)
    for (const outcome of changes.outcomes)
      countOutcome.run(outcome.projectId, outcome.lane, outcome.outcome, outcome.reason, outcome.count)
  }

  /** Runs before the mappings are written, so that any mapping it finds is another worker's. */
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
      // A distinct id attached since the load would be left without a person.
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
      const samplesLeft = Math.max(0, warningSamplesPerDay(type) - (countSoFar - group.length))
      for (const warning of group.slice(0, samplesLeft))
        insertWarning.run(projectId, type, day, warning.timestampMs, jsonText(warning.details))
    }
  }
}

function expectOne(changes: number): void {
  if (changes !== 1) throw new VersionConflict()
}
