// A project and the staging overlay of an import job as plain values, for tests of the changes that publishing and
// undoing make: commits are applied to what was loaded.

import assert from 'node:assert/strict'
import { toStagingProjectId, usualOptions } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import type { Person, PropertyMarks } from '#core/persons/person.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import type { LoadedChunk, Versioned } from '#core/processing/chunk.ts'
import type { JobBatch, PublishedBatch } from '#core/processing/imports/publish-staging.ts'
import { aGroup, aPerson, aProject } from './values.ts'

export const jobId = 7
export const projectId = 1
const stagingId = toStagingProjectId(jobId)

export interface StagingState {
  readonly loaded: LoadedChunk
}

/** A person with defaults for all fields but `id`, from which its uuid derives. `ids`: its distinct ids with their versions. */
export interface Someone extends Partial<Omit<Person, 'projectId' | 'uuid'>> {
  readonly id: string
  readonly ids?: Readonly<Record<string, number>>
}

export function stagingState({
  persons = [],
  staged = [],
  ...rest
}: {
  readonly persons?: readonly Someone[]
  readonly staged?: readonly Someone[]
} & Partial<Pick<LoadedChunk, 'groups' | 'groupTypes' | 'personlessDistinctIds'>>): StagingState {
  const rows = [...persons.map(who => personRows(projectId, who)), ...staged.map(who => personRows(stagingId, who))]
  const mappings = rows.flatMap(row => row.mappings)
  return {
    loaded: {
      projects: [aProject({ id: projectId })],
      persons: rows.map(row => row.person),
      mappings,
      personMappings: mappings,
      personlessDistinctIds: [],
      groupTypes: [],
      groups: [],
      textBytes: 0,
      textBytesOf: new Map(),
      ...rest,
    },
  }
}

export function stagedGroup(
  key: string,
  properties: JsonObject,
  over: { marks?: PropertyMarks; createdAtMs?: number },
) {
  return aGroup({ projectId: stagingId, key, properties, ...over })
}

function personRows(owner: number, { id, ids = { [id]: 0 }, ...over }: Someone) {
  const person = aPerson({ projectId: owner, uuid: personUuid(projectId, id), ...over })
  return {
    person,
    mappings: Object.entries(ids).map(([distinctId, version]) => ({
      projectId: owner,
      distinctId,
      personUuid: person.uuid,
      version,
    })),
  }
}

export function batchOf({ loaded }: StagingState, over: Partial<JobBatch> = {}): JobBatch {
  return { importJobId: jobId, projectId, loaded, options: usualOptions, ...over }
}

/** @throws AssertionError where the store would report a conflict. */
export function committed({ loaded }: StagingState, { changes }: PublishedBatch): StagingState {
  const { imports } = changes
  assert.ok(imports !== undefined)
  const removedPersons = [...changes.deletedPersons, ...imports.removedPersons]
  const persons = written(loaded.persons, changes.persons, removedPersons, row => `${row.projectId} ${row.uuid}`)
  const mappings = written(
    loaded.mappings,
    changes.mappings,
    imports.removedMappings,
    row => `${row.projectId} ${row.distinctId}`,
  )
  const groups = written(
    loaded.groups,
    changes.groups,
    imports.removedGroups,
    row => `${row.projectId} ${row.typeIndex} ${row.key}`,
  )
  const personlessDistinctIds = [...loaded.personlessDistinctIds, ...changes.personlessDistinctIds]
  return {
    loaded: { ...loaded, persons, mappings, personMappings: mappings, groups, personlessDistinctIds },
  }
}

function written<Row extends { readonly version: number }, Key>(
  rows: readonly Row[],
  changed: readonly Versioned<Row>[],
  removed: readonly (Key & { readonly loadedVersion: number })[],
  keyOf: (row: Row | Key) => string,
): Row[] {
  const byKey = new Map(rows.map(row => [keyOf(row), row]))
  for (const { row, loadedVersion } of changed) {
    assert.equal(byKey.get(keyOf(row))?.version ?? null, loadedVersion, keyOf(row))
    byKey.set(keyOf(row), row)
  }
  for (const key of removed) {
    assert.equal(byKey.get(keyOf(key))?.version, key.loadedVersion, keyOf(key))
    byKey.delete(keyOf(key))
  }
  return [...byKey.values()]
}

/** The project's persons as users see them: by their ids, whatever their uuids and versions. */
export function personsIn({ loaded }: StagingState) {
  const rows = loaded.persons.filter(person => person.projectId === projectId)
  return rows
    .map(({ uuid, properties, marks, createdAtMs, lastSeenAtMs, isIdentified }) => ({
      ids: loaded.mappings
        .filter(row => row.projectId === projectId && row.personUuid === uuid)
        .map(({ distinctId }) => distinctId)
        .sort(),
      ...{ properties, marks, createdAtMs, lastSeenAtMs, isIdentified },
    }))
    .sort((a, b) => (a.ids.join() < b.ids.join() ? -1 : 1))
}

export function groupsIn({ loaded }: StagingState) {
  return loaded.groups
    .filter(group => group.projectId === projectId)
    .map(({ version: _, ...group }) => group)
    .sort((a, b) => (a.key < b.key ? -1 : 1))
}

export function notesOf({ changes }: PublishedBatch): [reason: string, count: number][] {
  return (changes.imports?.notes ?? []).map(({ reason, count }) => [reason, count])
}
