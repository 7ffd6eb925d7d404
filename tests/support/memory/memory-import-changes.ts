// What the memory chunk store loads and changes for import jobs.

import { type ImportChanges, noteSampleCountMax } from '#core/imports/import-changes.ts'
import type { ChunkSubjects, LoadedChunk } from '#ports/state/chunk-store.ts'
import { keyOf, type MemoryState } from './memory-state.ts'

/** The project of a project id or of a shelf's id. */
export function projectOf(state: MemoryState, subjectsId: number): number | undefined {
  return subjectsId > 0 ? subjectsId : state.importJobs.get(-subjectsId)?.projectId
}

export function loadImports(
  state: MemoryState,
  { importJobIds = [], generated = [] }: ChunkSubjects,
): Pick<LoadedChunk, 'importJobs' | 'generated'> {
  const importJobs = importJobIds.flatMap(id => {
    const job = state.importJobs.get(id)
    if (job === undefined) return []
    const hasNotes = state.importNotes.values().some(({ importJobId }) => importJobId === id)
    return [
      {
        id,
        projectId: job.projectId,
        state: job.state,
        step: job.step,
        hasNotes,
        looksUpGeoip: job.options.looksUpGeoip,
      },
    ]
  })
  const seenBefore = generated.flatMap(({ projectId, uuid }) => {
    return state.importGenerated.get(keyOf(projectId, uuid)) ?? []
  })
  return {
    ...(importJobs.length > 0 && { importJobs }),
    ...(seenBefore.length > 0 && { generated: seenBefore }),
  }
}

/** @returns false when a row is not at the version it was loaded at; then `state` is to be thrown away. */
export function applyImportChanges(state: MemoryState, changes: ImportChanges): boolean {
  for (const { id, state: before, step } of changes.jobs) {
    const job = state.importJobs.get(id)
    if (job?.state !== before || job.step !== step) return false
  }
  for (const { projectId, uuid, loadedVersion } of changes.unchangedPersons)
    if (state.persons.get(keyOf(projectId, uuid))?.version !== loadedVersion) return false
  for (const { importJobId, count } of changes.storedRows) {
    const job = state.importJobs.get(importJobId)!
    if (job.storedRows !== null) state.importJobs.set(importJobId, { ...job, storedRows: job.storedRows + count })
  }
  addLinks(state, changes)
  addNotes(state, changes)
  for (const image of changes.images) {
    const key = keyOf(image.importJobId, image.kind, image.subject)
    const { before } = state.importImages.get(key) ?? image
    state.importImages.set(key, { ...image, before } as typeof image)
  }
  for (const image of changes.rewrittenImages)
    state.importImages.set(keyOf(image.importJobId, image.kind, image.subject), image)
  for (const id of changes.doneLinkIds) state.importLinks.delete(id)
  for (const { importJobId, kind, subject } of changes.doneImages)
    state.importImages.delete(keyOf(importJobId, kind, subject))
  for (const event of changes.generated) insertNew(state.importGenerated, keyOf(event.projectId, event.uuid), event)
  for (const { projectId, distinctId, version } of changes.nextVersions) {
    const key = keyOf(projectId, distinctId)
    state.personless.set(key, Math.max(version, state.personless.get(key) ?? 0))
  }
  return (
    changes.removedMappings.every(({ projectId, distinctId, loadedVersion }) =>
      remove(state.mappings, keyOf(projectId, distinctId), loadedVersion),
    ) &&
    changes.removedPersons.every(({ projectId, uuid, loadedVersion }) =>
      removePerson(state, projectId, uuid, loadedVersion),
    ) &&
    changes.removedGroups.every(({ projectId, typeIndex, key, loadedVersion }) =>
      remove(state.groups, keyOf(projectId, typeIndex, key), loadedVersion),
    )
  )
}

export function insertNew<T>(rows: Map<string, T>, key: string, value: T): void {
  if (!rows.has(key)) rows.set(key, value)
}

function addLinks(state: MemoryState, { links }: ImportChanges): void {
  for (const link of links) {
    const isKnown = state.importLinks
      .values()
      .some(
        known =>
          known.importJobId === link.importJobId &&
          known.uuid === link.uuid &&
          known.distinctId === link.distinctId &&
          known.otherId === link.otherId,
      )
    if (!isKnown) state.importLinks.set(1 + Math.max(0, ...state.importLinks.keys()), link)
  }
}

function addNotes(state: MemoryState, { notes }: ImportChanges): void {
  for (const note of notes) {
    const key = keyOf(note.importJobId, note.reason)
    const known = state.importNotes.get(key)
    state.importNotes.set(key, {
      ...note,
      count: note.count + (known?.count ?? 0),
      samples: [...(known?.samples ?? []), ...note.samples].slice(0, noteSampleCountMax),
    })
  }
}

function removePerson(state: MemoryState, projectId: number, uuid: string, loadedVersion: number): boolean {
  const hasIds = state.mappings.values().some(mapping => mapping.projectId === projectId && mapping.personUuid === uuid)
  for (const key of state.overrides.keys()) {
    const [overrideProject, personUuid] = JSON.parse(key) as [number, string]
    if (overrideProject === projectId && personUuid === uuid) state.overrides.delete(key)
  }
  state.memberships.delete(keyOf(projectId, uuid))
  return !hasIds && remove(state.persons, keyOf(projectId, uuid), loadedVersion)
}

function remove<T extends { readonly version: number }>(
  rows: Map<string, T>,
  key: string,
  loadedVersion: number,
): boolean {
  return rows.get(key)?.version === loadedVersion && rows.delete(key)
}
