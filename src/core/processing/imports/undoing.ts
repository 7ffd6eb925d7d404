// Collects the changes of undoing a published job: rows to write and to remove, undo records that are done or rewritten, and
// notes about what stays. Source: docs/wire/import.md §2.11.

import type { PersonIdOverride } from '#core/events/stored-event.ts'
import type { Group } from '#core/groups/group.ts'
import { type ImportChanges, noImportChanges, type UndoRecord } from '#core/imports/import-changes.ts'
import type { JsonObject } from '#core/json.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import { noChunkChanges, type Versioned } from '#core/processing/chunk.ts'
import { countedNotes, type PublishedBatch } from './publish-staging.ts'
import { type UndoBatch, UndoContext } from './undo-batch.ts'

/** Why something is left unchanged. The names are the reasons of the job's notes. */
export type UndoRefusal =
  /** Since the job, other events have linked or unlinked ids of the merged person, or merged the person. */
  | 'undo_left:merge_was_built_on'
  /** Live data or another job links the same ids. */
  | 'undo_left:link_was_confirmed'
  /**
   * Other events requested a link later, and it was refused because of the job. To get the link, send the event again.
   */
  | 'undo_left:link_was_refused'
  /** The id had no person before, and other events use the person that it was linked to. */
  | 'undo_left:link_is_used'
  /** The merge is split, but values that other events of the restored person have written since stay with the survivor. */
  | 'undo_left:values_stay_with_survivor'
  /** Other events have written a later value. */
  | 'undo_left:property_was_written'
  /** The job's value had shadowed a value of a later import, which would make the subject too large. */
  | 'undo_left:outranked_value_is_missing'
  /** Another merge has taken over the earlier time of creation. */
  | 'undo_left:created_at_was_merged'
  /** The job created the person, group or group type, and other events use it. */
  | 'undo_left:person_is_used'
  | 'undo_left:group_is_used'
  | 'undo_left:group_type_is_used'
  /** The subject has too many other events for the event store to evaluate. */
  | 'undo_left:events_not_readable'
  /** The person or group was deleted after the job. */
  | 'undo_left:person_is_gone'
  | 'undo_left:group_is_gone'

/** The collected changes of an undo. */
export interface Undoing {
  /** By uuid: two undo records may belong to what is now one person. */
  readonly persons: Map<string, Versioned<Person>>
  readonly mappings: Versioned<DistinctIdMapping>[]
  readonly groups: Versioned<Group>[]
  readonly overrides: PersonIdOverride[]
  readonly removedPersons: ImportChanges['removedPersons'][number][]
  readonly removedMappings: ImportChanges['removedMappings'][number][]
  readonly removedGroups: ImportChanges['removedGroups'][number][]
  readonly returnedAssignments: ImportChanges['returnedAssignments'][number][]
  readonly nextVersions: ImportChanges['nextVersions'][number][]
  readonly doneUndoRecords: UndoRecord[]
  readonly notes: { readonly reason: UndoRefusal; readonly details: JsonObject }[]
}

export function collectUndo(batch: UndoBatch, apply: (context: UndoContext, undoing: Undoing) => void): PublishedBatch {
  const collected: Undoing = {
    persons: new Map(),
    mappings: [],
    groups: [],
    overrides: [],
    removedPersons: [],
    removedMappings: [],
    removedGroups: [],
    returnedAssignments: [],
    nextVersions: [],
    doneUndoRecords: [],
    notes: [],
  }
  const context = new UndoContext(batch)
  apply(context, collected)
  const { persons, mappings, groups, overrides, notes, ...imports } = supersedePublished(collected, batch)
  return {
    overrides,
    changes: {
      ...noChunkChanges,
      persons: [...persons.values()],
      mappings,
      groups,
      imports: {
        ...noImportChanges,
        ...imports,
        rewrittenUndoRecords: context.rewrittenUndoRecords(),
        notes: countedNotes(batch.importJobId, notes),
      },
    },
  }
}

/** Raises versions above those of overrides that an earlier try may have left in the event store. */
function supersedePublished(undoing: Undoing, { publishedOverrides = [] }: UndoBatch): Undoing {
  const publishedVersions = new Map(Array.from(publishedOverrides, override => [override.distinctId, override.version]))
  const raise = (distinctId: string, version: number) =>
    Math.max(version, (publishedVersions.get(distinctId) ?? -1) + 1)
  return {
    ...undoing,
    mappings: undoing.mappings.map(({ row, loadedVersion }) => ({
      row: { ...row, version: raise(row.distinctId, row.version) },
      loadedVersion,
    })),
    overrides: undoing.overrides.map(row => ({ ...row, version: raise(row.distinctId, row.version) })),
    nextVersions: undoing.nextVersions.map(row => ({ ...row, version: raise(row.distinctId, row.version - 1) + 1 })),
  }
}

export function moveMappingBack(undoing: Undoing, now: DistinctIdMapping, personId: string): void {
  const { projectId, distinctId } = now
  const version = now.version + 1
  undoing.mappings.push({ row: { projectId, distinctId, personUuid: personId, version }, loadedVersion: now.version })
  undoing.overrides.push({ projectId, distinctId, personId, version })
}

/** If the id had an override, a higher override must map the id's rows to the person derived from the id again. */
export function removeMapping(undoing: Undoing, { projectId, distinctId, version }: DistinctIdMapping): void {
  undoing.removedMappings.push({ projectId, distinctId, loadedVersion: version })
  if (version === 0) return
  const personId = personUuid(projectId, distinctId)
  undoing.overrides.push({ projectId, distinctId, personId, version: version + 1 })
  undoing.nextVersions.push({ projectId, distinctId, version: version + 2 })
}

/**
 * The changes that detach an id from its person.
 * @param publishedVersion the version of an override that an earlier try has written.
 */
export function mappingRemoval(
  { projectId, distinctId, version: loadedVersion }: DistinctIdMapping,
  publishedVersion: number | undefined,
) {
  const mapping = { projectId, distinctId, loadedVersion }
  if (loadedVersion === 0 && publishedVersion === undefined) return { mapping, override: null, nextVersion: null }
  const version = Math.max(loadedVersion, publishedVersion ?? 0) + 1
  return {
    mapping,
    override: { projectId, distinctId, personId: personUuid(projectId, distinctId), version },
    nextVersion: { projectId, distinctId, version: version + 1 },
  }
}

/**
 * Notes the links that others requested later and that were refused because of the job; undoing the job does not create
 * them. If the job identified this person, its ids could not be linked to other persons. If the job created it
 * (`isMade`), an id that would otherwise have had no person could not simply join another person.
 */
export function noteRefusedLinks(
  context: UndoContext,
  undoing: Undoing,
  { uuid, isMade }: { readonly uuid: string; readonly isMade: boolean },
  distinctIds: readonly string[],
): void {
  for (const id of distinctIds)
    for (const { distinctId, otherId } of [
      ...context.refusedLinksTo(id, uuid),
      ...(isMade ? context.refusedLinksFrom(id, uuid) : []),
    ])
      undoing.notes.push({ reason: 'undo_left:link_was_refused', details: { distinctId, otherId } })
}

/** Notes values of later imports that are not restored because the subject would be too large. */
export function noteMissing(undoing: Undoing, details: JsonObject, keys: readonly string[]): void {
  for (const key of keys)
    undoing.notes.push({ reason: 'undo_left:outranked_value_is_missing', details: { ...details, key } })
}

/** The person without the field that only undo records have. */
export function omitAnyId({ anyId: _, ...person }: Person & { readonly anyId?: string }): Person {
  return person
}

const shownIdsMax = 20

export function cutIdList(ids: readonly ({ readonly distinctId: string } | { readonly subject: string })[]): string[] {
  return ids.slice(0, shownIdsMax).map(id => ('subject' in id ? id.subject : id.distinctId))
}
