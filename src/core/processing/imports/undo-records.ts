// Undo records: persons, mappings and groups before and after a commit of an import job, from which the published job can be
// undone.

import type { Group } from '#core/groups/group.ts'
import type { UndoRecord, UndoRecordOf } from '#core/imports/import-changes.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import type { ChunkChanges, LoadedChunk } from '#core/processing/chunk.ts'
import type { ProjectState } from '#core/processing/chunk-state.ts'

type Changes = Pick<ChunkChanges, 'persons' | 'deletedPersons' | 'mappings' | 'groups' | 'groupTypes'>

/**
 * The undo records of everything that a commit changes in a project.
 * @param state after the changes.
 */
export function makeUndoRecords(
  importJobId: number,
  loaded: LoadedChunk,
  state: ProjectState,
  changes: Changes,
): UndoRecord[] {
  const projectId = state.project.id
  const base = { importJobId, projectId }
  const persons = byKey(loaded.persons, projectId, person => person.uuid)
  const mappings = byKey([...loaded.personMappings, ...loaded.mappings], projectId, mapping => mapping.distinctId)
  const groups = byKey(loaded.groups, projectId, groupSubject)
  const anyIdOf = new Map(state.persons.map(({ uuid, mappings }) => [uuid, mappings[0]?.distinctId ?? '']))
  const ofPersons = changes.persons
    .filter(({ row }) => row.projectId === projectId)
    .map(
      ({ row }): UndoRecordOf<'person'> => ({
        ...base,
        kind: 'person',
        subject: row.uuid,
        before: personValue(persons.get(row.uuid), ''),
        after: personValue(row, anyIdOf.get(row.uuid)!),
      }),
    )
  const ofMerged = changes.deletedPersons
    .filter(merged => merged.projectId === projectId)
    .map(
      ({ uuid }): UndoRecordOf<'person'> => ({
        ...base,
        kind: 'person',
        subject: uuid,
        before: personValue(persons.get(uuid), ''),
        after: null,
      }),
    )
  const ofMappings = changes.mappings
    .filter(({ row }) => row.projectId === projectId)
    .map(
      ({ row }): UndoRecordOf<'mapping'> => ({
        ...base,
        kind: 'mapping',
        subject: row.distinctId,
        before: mappingValue(mappings.get(row.distinctId)),
        after: mappingValue(row),
      }),
    )
  const ofGroups = changes.groups
    .filter(({ row }) => row.projectId === projectId)
    .map(
      ({ row }): UndoRecordOf<'group'> => ({
        ...base,
        kind: 'group',
        subject: groupSubject(row),
        before: groups.get(groupSubject(row)) ?? null,
        after: row,
      }),
    )
  return [...ofPersons, ...ofMerged, ...ofMappings, ...ofGroups]
}

/** The number of ids of each person after the job's links: a different number reveals a later link by other events. */
export function makeIdCountRecords(
  importJobId: number,
  state: ProjectState,
  linkedUuids: ReadonlySet<string>,
): UndoRecordOf<'id_count'>[] {
  return state.persons
    .filter(person => person.mergedInto === null && linkedUuids.has(person.uuid))
    .map(({ uuid, mappings }) => ({
      importJobId,
      projectId: state.project.id,
      kind: 'id_count',
      subject: uuid,
      before: null,
      after: { count: mappings.length, anyId: mappings[0]?.distinctId ?? '' },
    }))
}

export function groupSubject({ typeIndex, key }: Pick<Group, 'typeIndex' | 'key'>): string {
  return `${typeIndex}:${key}`
}

function personValue(person: Person | undefined, anyId: string): UndoRecordOf<'person'>['before'] {
  return person === undefined ? null : { ...person, anyId }
}

function mappingValue(mapping: DistinctIdMapping | undefined): UndoRecordOf<'mapping'>['before'] {
  return mapping === undefined ? null : { personUuid: mapping.personUuid, version: mapping.version }
}

function byKey<Row extends { readonly projectId: number }>(
  rows: readonly Row[],
  projectId: number,
  keyOf: (row: Row) => string,
): Map<string, Row> {
  return new Map(rows.filter(row => row.projectId === projectId).map(row => [keyOf(row), row]))
}
