// Publishes an import job: makes its links among the project's persons, then joins the persons and groups of its staging
// overlay with the project's persons and groups, by the rules for imports, so that the order of batches makes no
// difference. Pure; `services/imports/publish-job.ts` loads and commits batch by batch. Source: docs/wire/import.md §2.11,
// §3.4, §3.5.

import type { PersonIdOverride } from '#core/events/stored-event.ts'
import type { Group } from '#core/groups/group.ts'
import { type ImportChanges, type ImportLink, type ImportNote, noImportChanges } from '#core/imports/import-changes.ts'
import { type ImportOptions, toStagingProjectId, usualOptions } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import type { Person } from '#core/persons/person.ts'
import { noKeys } from '#core/persons/profile.ts'
import { applyEventWithoutLink, applyPersonEvent, type RaiseWarning } from '#core/processing/apply-person-event.ts'
import type { ChunkChanges, LoadedChunk } from '#core/processing/chunk.ts'
import { openChunkState, type ProjectState } from '#core/processing/chunk-state.ts'
import { mergeProfiles } from '#core/processing/properties/import-update.ts'
import { exceedsMarksLimit } from '#core/processing/properties/marks-limit.ts'
import { exceedsPersonLimit } from '#core/processing/properties/person-update.ts'
import { collectStateChanges } from '#core/processing/state-changes.ts'

export interface PublishedBatch {
  readonly changes: ChunkChanges
  readonly overrides: readonly PersonIdOverride[]
}

/** The input shared by publishing and undoing: the job, the loaded state, and overrides of uncommitted tries. */
export interface JobBatch {
  readonly importJobId: number
  readonly projectId: number
  readonly loaded: LoadedChunk
  /** By default, an import never replaces a live value. */
  readonly options?: ImportOptions
  readonly publishedOverrides?: Iterable<PersonIdOverride>
}

/** The job's project no longer exists. */
export class ProjectGoneError extends Error {}

/** Makes links in the given order. @param links each link with its id in the job's list of links. */
export function publishImportLinks(
  batch: JobBatch,
  links: readonly { readonly id: number; readonly link: ImportLink }[],
) {
  return publishBatch(batch, (state, notes) => {
    applyImportLinks(
      state,
      links.map(({ link }) => link),
      notes,
    )
    return {
      doneLinkIds: links.map(({ id }) => id),
      keepsAssignmentsFor: batch.importJobId,
    }
  })
}

/** Makes links in the given order, except those that are refused. */
export function applyImportLinks(
  state: ProjectState,
  links: readonly ImportLink[],
  notes: JobNote[],
  isRefused: (link: ImportLink) => boolean = () => false,
): void {
  for (const link of links) {
    const { distinctId, otherId, dangerously, timestampMs, uuid, importJobId } = link
    const event = {
      distinctId,
      merge: { otherId, dangerously },
      set: null,
      setOnce: null,
      unset: noKeys,
      timestampMs,
      uuid,
      importJobId,
      historical: true,
      writesKnownPersons: true,
      writesFilteredKeys: true,
    }
    const note: RaiseWarning = (type, details) => notes.push({ reason: type, details })
    if (!isRefused(link)) applyPersonEvent(state, event, note)
    else if (state.findPerson(distinctId) !== undefined) applyEventWithoutLink(state, event, note)
  }
}

export function mergeStagedPersons(
  state: ProjectState,
  staged: readonly (readonly [string, Profiled])[],
  options: ImportOptions,
  notes: JobNote[],
): void {
  for (const [distinctId, person] of staged) joinPerson(state, distinctId, person, options, notes)
}

type Profiled = Pick<Person, 'properties' | 'marks' | 'createdAtMs' | 'isIdentified' | 'lastSeenAtMs'>

export function addPersonlessIds(state: ProjectState, distinctIds: Iterable<string>): void {
  for (const distinctId of distinctIds)
    if (state.mappings.has(distinctId)) requireOverride(state, distinctId)
    else state.rememberPersonless(distinctId)
}

export function mergeStagedGroups(
  state: ProjectState,
  groups: readonly Group[],
  typeNames: ReadonlyMap<number, string>,
  notes: JobNote[],
): void {
  for (const group of groups) joinGroup(state, group, typeNames.get(group.typeIndex), notes)
}

/**
 * Joins persons of the staging overlay with the project's persons that have the same distinct ids. The overlay's mappings
 * are the list of remaining work, so they are removed. The overlay's persons are scattered over the table, where each
 * removal would write a page in a commit that live events wait for: they stay until the overlay is cleared in table order.
 */
export function publishPersons(batch: JobBatch, distinctIds: readonly string[]): PublishedBatch {
  const { importJobId, loaded } = batch
  const stagingId = toStagingProjectId(importJobId)
  const staged = new Map(loaded.persons.filter(row => row.projectId === stagingId).map(row => [row.uuid, row]))
  const uuidOf = new Map(loaded.mappings.filter(row => row.projectId === stagingId).map(row => [row.distinctId, row]))
  return publishBatch(batch, (state, notes) => {
    const removedMappings: ImportChanges['removedMappings'][number][] = []
    for (const distinctId of distinctIds) {
      const mapping = uuidOf.get(distinctId)
      const person = mapping && staged.get(mapping.personUuid)
      if (mapping === undefined || person === undefined) continue
      joinPerson(state, distinctId, person, batch.options ?? usualOptions, notes)
      removedMappings.push({ projectId: stagingId, distinctId, loadedVersion: mapping.version })
    }
    return { removedMappings }
  })
}

/** Ensures that rows of ids without a person are assigned to the person that the id has got since, or gets later. */
export function publishPersonlessIds(batch: JobBatch, distinctIds: readonly string[]): PublishedBatch {
  return publishBatch(batch, state => {
    addPersonlessIds(state, distinctIds)
    return {}
  })
}

/**
 * Joins groups of the staging overlay with the project's groups.
 * @param typeNames the type name that the job's events used for each index.
 */
export function publishGroups(
  batch: JobBatch,
  groups: readonly Pick<Group, 'typeIndex' | 'key'>[],
  typeNames: ReadonlyMap<number, string>,
): PublishedBatch {
  const { importJobId, loaded } = batch
  const stagingId = toStagingProjectId(importJobId)
  const staged = new Map(
    loaded.groups.filter(row => row.projectId === stagingId).map(row => [`${row.typeIndex}:${row.key}`, row]),
  )
  return publishBatch(batch, (state, notes) => {
    const removedGroups: ImportChanges['removedGroups'][number][] = []
    for (const { typeIndex, key } of groups) {
      const group = staged.get(`${typeIndex}:${key}`)
      if (group === undefined) continue
      joinGroup(state, group, typeNames.get(typeIndex), notes)
      removedGroups.push({ projectId: stagingId, typeIndex, key, loadedVersion: group.version })
    }
    return { removedGroups }
  })
}

/** A value that stays unchanged, or is lost: counted in the job's notes. */
export interface JobNote {
  readonly reason: string
  readonly details: JsonObject
}

function publishBatch(
  { importJobId, projectId, loaded, publishedOverrides }: JobBatch,
  apply: (state: ProjectState, notes: JobNote[]) => Partial<ImportChanges>,
): PublishedBatch {
  const projects = openChunkState(loaded)
  const state = projects.get(projectId)
  if (state === undefined) throw new ProjectGoneError(`project ${projectId} of import job ${importJobId} is gone`)
  const notes: JobNote[] = []
  const done = apply(state, notes)
  const { changes, overrides } = collectStateChanges(new Map([[projectId, state]]), publishedOverrides)
  const imports = { ...noImportChanges, ...done, notes: groupNotesByReason(importJobId, notes) }
  return { changes: { ...changes, calledFlags: [], warnings: [], outcomes: [], imports }, overrides }
}

/** Notes by reason, with all details as samples: the store limits how many it keeps. */
export function groupNotesByReason(importJobId: number, notes: readonly JobNote[]): ImportNote[] {
  return Array.from(
    Map.groupBy(notes, ({ reason }) => reason),
    ([reason, ofReason]) => ({
      importJobId,
      reason,
      count: ofReason.length,
      samples: ofReason.map(({ details }) => details),
    }),
  )
}

function joinPerson(
  state: ProjectState,
  distinctId: string,
  staged: Profiled,
  options: ImportOptions,
  notes: JobNote[],
): void {
  const person = state.findPerson(distinctId)
  const { properties, marks, createdAtMs, isIdentified, lastSeenAtMs } = staged
  if (person === undefined) {
    const uuid = state.uuidOf(distinctId)
    const created = state.createPerson(uuid, { properties, marks }, createdAtMs, isIdentified)
    created.lastSeenAtMs = lastSeenAtMs
    state.attach(distinctId, created, state.versionFor(distinctId, uuid))
    return
  }
  requireOverride(state, distinctId)
  const joined = mergeProfiles(person, staged, options)
  const isTooLarge =
    joined !== person && (exceedsPersonLimit(JSON.stringify(joined.properties)) || exceedsMarksLimit(joined.marks))
  if (isTooLarge)
    notes.push({ reason: 'person_properties_size_violation', details: { distinctId, personId: person.uuid } })
  const isChanged =
    (joined !== person && !isTooLarge) ||
    createdAtMs < person.createdAtMs ||
    (isIdentified && !person.isIdentified) ||
    lastSeenAtMs > person.lastSeenAtMs
  if (!isChanged) return
  if (!isTooLarge) {
    person.properties = joined.properties
    person.marks = joined.marks
    person.ownsProperties = false
    person.propertiesJson = null
  }
  person.createdAtMs = Math.min(person.createdAtMs, createdAtMs)
  person.lastSeenAtMs = Math.max(person.lastSeenAtMs, lastSeenAtMs)
  person.isIdentified ||= isIdentified
  person.version += 1
  person.changed = true
}

/** The job's rows have the person uuid derived from their id, so a different person needs an override. */
function requireOverride(state: ProjectState, distinctId: string): void {
  const mapping = state.mappings.get(distinctId)!
  if (mapping.version > 0 || mapping.person.uuid === state.uuidOf(distinctId)) return
  mapping.version = 1
  mapping.changed = true
}

function joinGroup(state: ProjectState, staged: Group, typeName: string | undefined, notes: JobNote[]): void {
  const { typeIndex, key, createdAtMs } = staged
  const nameToday = state.nameOfGroupType(typeIndex)
  if (nameToday === undefined || typeName !== nameToday) {
    notes.push({ reason: 'group_type_deleted', details: { groupTypeIndex: typeIndex, groupKey: key } })
    return
  }
  const group = state.findGroup(typeIndex, key)
  if (group === null) {
    state.saveGroup({ ...staged, projectId: state.project.id, version: 1 })
    return
  }
  const joined = mergeProfiles(group, staged)
  if (exceedsPersonLimit(JSON.stringify(joined.properties)) || exceedsMarksLimit(joined.marks)) {
    notes.push({ reason: 'group_properties_size_violation', details: { groupTypeIndex: typeIndex, groupKey: key } })
    return
  }
  if (joined === group && createdAtMs >= group.createdAtMs) return
  const { properties, marks } = joined
  const earliestMs = Math.min(group.createdAtMs, createdAtMs)
  state.saveGroup({ ...group, properties, marks, createdAtMs: earliestMs, version: group.version + 1 })
}
