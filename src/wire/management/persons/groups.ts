// Groups and group types.

import Type, { type Static } from 'typebox'
import type { Group, GroupType } from '#core/groups/group.ts'
import { formatInstant, instantSchema, jsonObjectSchema } from '../shapes.ts'

export const groupTypeSchema = Type.Object({
  group_type: Type.String(),
  group_type_index: Type.Integer(),
  being_deleted: Type.Optional(
    Type.Literal(true, { description: 'It was deleted, and not all of its groups are gone: DELETE completes it.' }),
  ),
})
export type GroupTypeJson = Static<typeof groupTypeSchema>

export const groupSchema = Type.Object({
  group_type_index: Type.Integer(),
  group_key: Type.String(),
  group_properties: jsonObjectSchema(),
  created_at: instantSchema,
  version: Type.Integer(),
})
export type GroupJson = Static<typeof groupSchema>

export function encodeGroupType(type: GroupType): GroupTypeJson {
  const json = { group_type: type.name, group_type_index: type.index }
  return type.isBeingDeleted === true ? { ...json, being_deleted: true } : json
}

/** JSON text of a group; its properties are spliced in as stored. */
export function encodeGroup(group: GroupToEncode): string {
  const head: Omit<GroupJson, 'group_properties'> = {
    group_type_index: group.typeIndex,
    group_key: group.key,
    created_at: formatInstant(group.createdAtMs),
    version: group.version,
  }
  return `${JSON.stringify(head).slice(0, -1)},"group_properties":${group.propertiesJson}}`
}

export interface GroupToEncode extends Omit<Group, 'marks' | 'properties'> {
  readonly propertiesJson: string
}
