// Reads what a chunk's events may touch, in a transaction of the caller's so that it all fits together: one statement
// each, however many ids a chunk has, and one more for long texts. Nothing is read beyond what a load may hold.

import type { Selectable } from 'kysely'
import {
  addLargePersons,
  idsByProject,
  type LoadedGroupRow,
  loadedGroupsOf,
  longestTextBytes,
  type MappedPersonRow,
  mappedPersonsOf,
  type PersonMappingRow,
  type PersonTextRow,
  personMappingCountMax,
  personMappingsOf,
  TextRoom,
  takeMappings,
  wantedGroups,
  wantedPersonIds,
} from '#adapters/sql/chunk-rows.ts'
import { groupTypeOf, projectOf } from '#adapters/sql/rows.ts'
import type { GroupTypeTable, ProjectTable, StateSchema } from '#adapters/sql/schema.ts'
import type { Group, GroupType } from '#core/groups/group.ts'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import type { ChunkSubjects, LoadedChunk } from '#ports/chunk-store.ts'
import * as text from './chunk-texts.ts'
import type { Session } from './open-postgres.ts'

/** @throws what the driver throws, or PortError `corrupt`. */
export async function loadChunk(
  session: Session,
  subjects: ChunkSubjects,
  textBytesMax: number,
): Promise<LoadedChunk | 'too_large'> {
  const room = new TextRoom(textBytesMax)
  const projectIds = [...new Set(subjects.projectIds)]
  const projects = await list<ProjectTable>(text.loadProjectsText, [projectIds])
  const types = (await list<Selectable<GroupTypeTable>>(text.loadGroupTypesText, [projectIds])).map(groupTypeOf)

  const distinctIds = [...idsByProject(subjects.distinctIds)].flatMap(([projectId, ids]) =>
    Array.from(ids, distinctId => ({ projectId, distinctId })),
  )
  const idLists = [distinctIds.map(({ projectId }) => projectId), distinctIds.map(({ distinctId }) => distinctId)]
  const mappedRows = await list<MappedPersonRow>(
    text.loadMappedPersonsText,
    idLists,
    room.textBytesOfEach(distinctIds.length),
  )
  const mapped = mappedPersonsOf(mappedRows, room)
  if (room.isExceeded) return 'too_large'
  addLargePersons(mapped, await list<PersonTextRow>(text.loadPersonTextsText, [[...mapped.large.keys()]]))
  const personIds = wantedPersonIds(mapped, subjects.mergingDistinctIds)
  const personMappings = await list<PersonMappingRow>(
    text.loadPersonMappingsText,
    [personIds],
    personDistinctIdCountMax + 1,
    personMappingCountMax(room) + 1,
  )
  takeMappings(room, personMappings.length)
  if (room.isExceeded) return 'too_large'
  const personless = await list<StateSchema['personless_distinct_id']>(text.loadPersonlessText, idLists)

  const groups = await loadGroups(types)
  if (room.isExceeded) return 'too_large'
  return {
    projects: projects.map(projectOf),
    mappings: mapped.mappings,
    persons: [...mapped.persons.values()],
    personPropertiesJson: mapped.personPropertiesJson,
    personMappings: personMappingsOf(personMappings, mapped),
    personlessDistinctIds: personless.map(row => ({ projectId: row.project_id, distinctId: row.distinct_id })),
    groupTypes: types,
    textBytes: room.takenBytes,
    groups,
  }

  /** What is found until the room is exceeded. */
  async function loadGroups(types: readonly GroupType[]): Promise<Group[]> {
    const wanted = wantedGroups(subjects.groups, types).flatMap(({ projectId, index, keys }) =>
      Array.from(keys, key => ({ project_id: projectId, group_type_index: index, group_key: key })),
    )
    const { groups, large } = loadedGroupsOf(await ofKeys(wanted, room.textBytesOfEach(wanted.length)), room)
    if (room.isExceeded || large.length === 0) return groups
    return groups.concat(
      loadedGroupsOf(await ofKeys(large, longestTextBytes), new TextRoom(Number.POSITIVE_INFINITY)).groups,
    )
  }

  function ofKeys(
    keys: readonly Pick<LoadedGroupRow, 'project_id' | 'group_type_index' | 'group_key'>[],
    textBytes: number,
  ): Promise<LoadedGroupRow[]> {
    const lists = [
      keys.map(key => key.project_id),
      keys.map(key => key.group_type_index),
      keys.map(key => key.group_key),
    ]
    return list<LoadedGroupRow>(text.loadGroupsText, lists, textBytes)
  }

  /** Lists of no length find nothing. */
  async function list<Row extends object>(
    statement: string,
    lists: unknown[][],
    ...limits: readonly number[]
  ): Promise<Row[]> {
    return lists[0]!.length === 0 ? [] : (await session.query<Row>(statement, [...lists, ...limits])).rows
  }
}
