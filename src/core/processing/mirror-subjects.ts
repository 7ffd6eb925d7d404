// Encodes which persons and groups a commit changed, as the text that the state store keeps until the event store's mirror
// has them.

import type { Group } from '../groups/group.ts'
import { noImportChanges } from '../imports/import-changes.ts'
import type { Person } from '../persons/person.ts'
import type { ChunkChanges } from './chunk.ts'

export type MirroredPerson = Omit<Person, 'properties' | 'marks' | 'version' | 'lastSeenAtMs'> & {
  readonly propertiesJson: string
}

export type MirroredGroup = Omit<Group, 'properties' | 'marks' | 'version'> & { readonly propertiesJson: string }

export interface MirroredPersonKey {
  readonly projectId: number
  readonly uuid: string
}

export interface MirroredGroupKey {
  readonly projectId: number
  readonly typeIndex: number
  readonly key: string
}

/** Without repeats, in any order. */
export interface MirrorSubjects {
  readonly persons: readonly MirroredPersonKey[]
  readonly groups: readonly MirroredGroupKey[]
}

/** Persons by project, so that a chunk of ten thousand persons takes 390 KB; groups as (project, type, key). */
interface SubjectsJson {
  readonly p?: { readonly [projectId: string]: readonly string[] }
  readonly g?: readonly (readonly [number, number, string])[]
}

/** @returns null when the chunk changes no person and no group. */
export function encodeChangedSubjects(
  changes: Pick<ChunkChanges, 'persons' | 'deletedPersons' | 'groups' | 'imports'>,
): string | null {
  const { deletedPersons, imports } = changes
  const { removedPersons, removedGroups } = imports ?? noImportChanges
  const persons = [...changes.persons.map(({ row }) => row), ...deletedPersons, ...removedPersons].filter(isOfProject)
  const groups = [...changes.groups.map(({ row }) => row), ...removedGroups].filter(isOfProject)
  return persons.length === 0 && groups.length === 0 ? null : encodeSubjects({ persons, groups })
}

/** Staging overlays of pending imports are not projects and are not mirrored. */
function isOfProject({ projectId }: { readonly projectId: number }): boolean {
  return projectId > 0
}

export function encodeSubjects({ persons, groups }: MirrorSubjects): string {
  const p: Record<string, string[]> = {}
  for (const { projectId, uuid } of persons) {
    p[projectId] ??= []
    p[projectId].push(uuid)
  }
  const g = groups.map(({ projectId, typeIndex, key }) => [projectId, typeIndex, key] as const)
  return JSON.stringify({ ...(persons.length > 0 && { p }), ...(groups.length > 0 && { g }) } satisfies SubjectsJson)
}

/** Decodes several texts from `encodeSubjects` into one list of subjects, without repeats. */
export function decodeSubjects(texts: readonly string[]): MirrorSubjects {
  const persons = new Map<string, MirroredPersonKey>()
  const groups = new Map<string, MirroredGroupKey>()
  for (const text of texts) {
    const { p = {}, g = [] } = JSON.parse(text) as SubjectsJson
    for (const [project, uuids] of Object.entries(p))
      for (const uuid of uuids) persons.set(`${project} ${uuid}`, { projectId: Number(project), uuid })
    for (const [projectId, typeIndex, key] of g)
      groups.set(`${projectId} ${typeIndex} ${key}`, { projectId, typeIndex, key })
  }
  return { persons: [...persons.values()], groups: [...groups.values()] }
}
