// The chunk store's contract in memory, except import jobs, which it does not have. A commit works on copies, which
// replace the state only if nothing was refused.

import assert from 'node:assert/strict'
import type { Group } from '#core/groups/group.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import { encodePropertyMarks } from '#core/persons/property-marks-text.ts'
import type { ChunkChanges, ChunkStore, ChunkSubjects, LoadedChunk } from '#ports/state/chunk-store.ts'
import { keyOf, type MemoryState } from './memory-state.ts'

export function memoryChunkStore(state: MemoryState): ChunkStore {
  return {
    async claimPosition(stream, ownerId) {
      const offset = state.positions.get(stream)?.offset ?? 0
      state.positions.set(stream, { offset, committedAtMs: null, ...state.positions.get(stream), ownerId })
      return { offset }
    },

    async loadChunk(subjects, textBytesMax) {
      const loaded = load(state, subjects)
      return loaded.textBytes > textBytesMax ? 'too_large' : loaded
    },

    async loadIdentifies({ visitors, events }) {
      const all = [...state.identifies.values()]
      return {
        counts: visitors.map(
          ({ projectId, hash, beforeOffset }) =>
            all.filter(row => row.projectId === projectId && row.hash === hash && row.offset < beforeOffset).length,
        ),
        known: found(
          events.map(({ projectId, hash, uuid }) => keyOf(projectId, hash, uuid)),
          key => state.identifies.get(key),
        ),
      }
    },

    async loadSessions(wanted) {
      const names = new Set(wanted.map(name => keyOf(name.projectId, name.hash, name.identifies)))
      return [...state.sessions.values()].filter(row => names.has(keyOf(row.projectId, row.hash, row.identifies)))
    },

    async findOwnPosition(stream, ownerId) {
      const position = state.positions.get(stream)
      return position?.ownerId === ownerId ? position.offset : null
    },

    async commitChunk(changes, { stream, ownerId, fromOffset, offset, committedAtMs }) {
      const position = state.positions.get(stream)
      if (position?.ownerId !== ownerId) return 'not_owner'
      if (fromOffset !== undefined && position.offset !== fromOffset) return 'position_moved'
      const next = copyOf(state)
      if (!apply(next, changes)) return 'version_conflict'
      next.positions.set(stream, { ownerId, offset, committedAtMs })
      Object.assign(state, next)
      return 'committed'
    },

    async close() {},
  }
}

function load(state: MemoryState, subjects: ChunkSubjects): LoadedChunk {
  const mappings = found(
    subjects.distinctIds.map(({ projectId, distinctId }) => keyOf(projectId, distinctId)),
    key => state.mappings.get(key),
  )
  const persons = found(
    mappings.map(({ projectId, personUuid }) => keyOf(projectId, personUuid)),
    key => state.persons.get(key),
  )
  const merging = new Set((subjects.mergingDistinctIds ?? mappings).map(id => keyOf(id.projectId, id.distinctId)))
  const mergingPersons = new Set(
    mappings
      .filter(mapping => merging.has(keyOf(mapping.projectId, mapping.distinctId)))
      .map(mapping => keyOf(mapping.projectId, mapping.personUuid)),
  )
  const groupTypes = state.groupTypes.filter(type => subjects.projectIds.includes(type.projectId))
  const personMappings = [...state.mappings.values()].filter(mapping =>
    mergingPersons.has(keyOf(mapping.projectId, mapping.personUuid)),
  )
  const groups = found(
    [
      ...(subjects.groupKeys ?? []).map(group => keyOf(group.projectId, group.typeIndex, group.key)),
      ...subjects.groups.flatMap(({ projectId, typeName, key }) =>
        groupTypes
          .filter(type => type.projectId === projectId && type.name === typeName)
          .map(type => keyOf(projectId, type.index, key)),
      ),
    ],
    key => state.groups.get(key),
  )
  const textBytesOf = textBytesByProject([...persons, ...groups], personMappings)
  return {
    projects: found(subjects.projectIds.map(String), id => state.projects.get(Number(id))),
    mappings,
    persons,
    personMappings,
    textBytes: textBytesOf.values().reduce((sum, bytes) => sum + bytes, 0),
    textBytesOf,
    personlessDistinctIds: subjects.distinctIds.flatMap(({ projectId, distinctId }) => {
      const nextVersion = state.personless.get(keyOf(projectId, distinctId))
      return nextVersion === undefined ? [] : [{ projectId, distinctId, nextVersion }]
    }),
    groupTypes,
    groups,
  }
}

function textBytesByProject(
  rows: readonly (Person | Group)[],
  personMappings: readonly DistinctIdMapping[],
): Map<number, number> {
  const bytesOf = new Map<number, number>()
  const add = (projectId: number, bytes: number) => bytesOf.set(projectId, (bytesOf.get(projectId) ?? 0) + bytes)
  for (const { projectId, properties, marks } of rows)
    add(projectId, Buffer.byteLength(JSON.stringify(properties)) + Buffer.byteLength(encodePropertyMarks(marks)))
  for (const { projectId } of personMappings) add(projectId, 256)
  return bytesOf
}

function found<T>(keys: readonly string[], get: (key: string) => T | undefined): T[] {
  return [...new Set(keys)].map(get).filter(value => value !== undefined)
}

function copyOf(state: MemoryState): MemoryState {
  const copied = Object.entries(state).map(([name, rows]) => [name, rows instanceof Map ? new Map(rows) : rows])
  return Object.fromEntries(copied) as MemoryState
}

/** @returns false when a row is not at the version at which it was loaded; `state` must then be discarded. */
function apply(state: MemoryState, changes: ChunkChanges): boolean {
  assert.equal(changes.imports, undefined, 'changes of import jobs need a state in a database')
  const isMapped = changes.personlessDistinctIds.some(id => state.mappings.has(keyOf(id.projectId, id.distinctId)))
  for (const { projectId, distinctId } of changes.personlessDistinctIds)
    insertNew(state.personless, keyOf(projectId, distinctId), 1)
  const wasPersonless = changes.neverPersonlessDistinctIds.some(id =>
    state.personless.has(keyOf(id.projectId, id.distinctId)),
  )
  const done =
    !isMapped &&
    !wasPersonless &&
    changes.persons.every(({ row, loadedVersion }) =>
      put(state.persons, keyOf(row.projectId, row.uuid), row, loadedVersion),
    ) &&
    changes.mappings.every(
      ({ row, loadedVersion }) =>
        state.persons.has(keyOf(row.projectId, row.personUuid)) &&
        put(state.mappings, keyOf(row.projectId, row.distinctId), row, loadedVersion),
    ) &&
    changes.deletedPersons.every(merged => mergePerson(state, merged)) &&
    changes.groups.every(({ row, loadedVersion }) =>
      put(state.groups, keyOf(row.projectId, row.typeIndex, row.key), row, loadedVersion),
    ) &&
    changes.usedGroupTypes.every(({ projectId, name, index }) =>
      state.groupTypes.some(type => type.projectId === projectId && type.name === name && type.index === index),
    ) &&
    changes.groupTypes.every(type => addGroupType(state, type))
  for (const identify of changes.visitors?.identifies ?? [])
    insertNew(state.identifies, keyOf(identify.projectId, identify.hash, identify.uuid), identify)
  for (const session of changes.visitors?.sessions ?? [])
    state.sessions.set(keyOf(session.projectId, session.hash, session.identifies, session.offset), session)
  for (const { projectId, flagKey, calledAtMs } of changes.calledFlags) {
    const key = keyOf(projectId, flagKey)
    state.lastCalls.set(key, Math.max(calledAtMs, state.lastCalls.get(key) ?? calledAtMs))
  }
  state.warnings = [...state.warnings, ...changes.warnings]
  state.outcomes = [...state.outcomes, ...changes.outcomes]
  return done
}

function insertNew<T>(rows: Map<string, T>, key: string, value: T): void {
  if (!rows.has(key)) rows.set(key, value)
}

function put<T extends { readonly version: number }>(
  rows: Map<string, T>,
  key: string,
  row: T,
  loadedVersion: number | null,
): boolean {
  if ((rows.get(key)?.version ?? null) !== loadedVersion) return false
  rows.set(key, row)
  return true
}

function mergePerson(state: MemoryState, merged: ChunkChanges['deletedPersons'][number]): boolean {
  const { projectId, uuid, survivorUuid, loadedVersion } = merged
  if (state.persons.get(keyOf(projectId, uuid))?.version !== loadedVersion) return false
  if (!state.persons.has(keyOf(projectId, survivorUuid))) return false
  for (const mapping of state.mappings.values())
    if (mapping.projectId === projectId && mapping.personUuid === uuid) return false
  for (const [key, hashKey] of state.overrides) {
    const [overrideProject, personUuid, flagKey] = JSON.parse(key) as [number, string, string]
    if (overrideProject !== projectId || personUuid !== uuid) continue
    const survivorKey = keyOf(projectId, survivorUuid, flagKey)
    if (!state.overrides.has(survivorKey)) state.overrides.set(survivorKey, hashKey)
    state.overrides.delete(key)
  }
  const memberships = state.memberships.get(keyOf(projectId, uuid))
  if (memberships !== undefined) {
    const survivorKey = keyOf(projectId, survivorUuid)
    state.memberships.set(survivorKey, memberships.union(state.memberships.get(survivorKey) ?? new Set()))
    state.memberships.delete(keyOf(projectId, uuid))
  }
  return state.persons.delete(keyOf(projectId, uuid))
}

function addGroupType(state: MemoryState, type: MemoryState['groupTypes'][number]): boolean {
  const same = state.groupTypes.filter(
    other => other.projectId === type.projectId && (other.name === type.name || other.index === type.index),
  )
  if (same.length > 0) return same.every(other => other.name === type.name && other.index === type.index)
  state.groupTypes = [...state.groupTypes, type]
  state.revision++
  return true
}
