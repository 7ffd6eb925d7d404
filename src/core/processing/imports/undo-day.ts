// Undoing a job that collected a day's imports: what it wrote is recognised by its marks, because nothing was kept from
// before. A key that it wrote is removed; a person or a group that nobody else uses goes, too. Merges stay.
// Source: docs/wire/import.md §2.11; docs/decisions/0053-import-jobs.md.

import type { Group } from '#core/groups/group.ts'
import { noImportChanges } from '#core/imports/import-changes.ts'
import { type Profile, ProfileDraft } from '#core/persons/profile.ts'
import { type ChunkChanges, noChunkChanges, type Versioned } from '#core/processing/chunk.ts'
import { countedNotes, type JobBatch, type PublishedBatch } from './publish-shelf.ts'
import { removedMapping } from './undo-batch.ts'

export interface UndoDayBatch extends JobBatch {
  /** The distinct ids in `loaded` with rows that are not the job's. */
  readonly usedIds: ReadonlySet<string>
}

/** @param uuids the persons to look at; `loaded` has every id of each. */
export function undoDayOfPersons(batch: UndoDayBatch, uuids: readonly string[]): PublishedBatch {
  const { loaded, projectId, importJobId, usedIds, told = [] } = batch
  const toldVersions = new Map(Array.from(told, override => [override.distinctId, override.version]))
  const persons: ChunkChanges['persons'][number][] = []
  const removedPersons = []
  const removed: ReturnType<typeof removedMapping>[] = []
  for (const uuid of uuids) {
    const person = loaded.persons.find(row => row.projectId === projectId && row.uuid === uuid)
    if (person === undefined) continue
    const left = withoutValuesOf(person, importJobId)
    const ids = [...new Map(loaded.personMappings.map(row => [row.distinctId, row])).values()].filter(
      row => row.projectId === projectId && row.personUuid === uuid,
    )
    const isOfOthers = left === null || hasValues(left) || ids.some(({ distinctId }) => usedIds.has(distinctId))
    if (!isOfOthers) {
      removedPersons.push({ projectId, uuid, loadedVersion: person.version })
      for (const id of ids) removed.push(removedMapping(id, toldVersions.get(id.distinctId)))
    } else if (left !== null)
      persons.push({ row: { ...person, ...left, version: person.version + 1 }, loadedVersion: person.version })
  }
  return {
    overrides: removed.flatMap(({ override }) => override ?? []),
    changes: {
      ...noChunkChanges,
      persons,
      imports: {
        ...noImportChanges,
        removedPersons,
        removedMappings: removed.map(({ mapping }) => mapping),
        nextVersions: removed.flatMap(({ nextVersion }) => nextVersion ?? []),
      },
    },
  }
}

/**
 * Leaves persons of the day as they are, because nobody can say what others have them for. They keep their marks, so a worker
 * that begins the step anew finds and counts them again.
 */
export function leaveDayOfPersons({ importJobId }: JobBatch, uuids: readonly string[]): PublishedBatch {
  const notes = uuids.map(personId => ({ reason: 'undo_left:events_not_readable', details: { personId } }) as const)
  const imports = { ...noImportChanges, notes: countedNotes(importJobId, notes) }
  return { overrides: [], changes: { ...noChunkChanges, imports } }
}

/** @param groups the groups to look at. */
export function undoDayOfGroups(batch: JobBatch, groups: readonly Pick<Group, 'typeIndex' | 'key'>[]): PublishedBatch {
  const { loaded, projectId, importJobId } = batch
  const changed: Versioned<Group>[] = []
  const removedGroups = []
  for (const { typeIndex, key } of groups) {
    const group = loaded.groups.find(
      row => row.projectId === projectId && row.typeIndex === typeIndex && row.key === key,
    )
    const left = group === undefined ? null : withoutValuesOf(group, importJobId)
    if (group === undefined || left === null) continue
    const { version } = group
    if (hasValues(left)) changed.push({ row: { ...group, ...left, version: version + 1 }, loadedVersion: version })
    else removedGroups.push({ projectId, typeIndex, key, loadedVersion: version })
  }
  const imports = { ...noImportChanges, removedGroups }
  return { overrides: [], changes: { ...noChunkChanges, groups: changed, imports } }
}

/** @returns null for a profile without a value of the job. */
function withoutValuesOf(
  { properties, marks }: Profile,
  importJobId: number,
): Pick<Profile, 'properties' | 'marks'> | null {
  const draft = new ProfileDraft({ properties, marks })
  for (const [key, mark] of Object.entries(marks)) {
    if (mark.importJobId !== importJobId || mark.kind === 'live_once') continue
    draft.removeProperty(key)
    draft.removeMark(key)
  }
  const left = draft.result()
  return left === null ? null : { properties: left.properties, marks: left.marks }
}

function hasValues({ properties }: Pick<Profile, 'properties'>): boolean {
  return Object.keys(properties).length > 0
}
