// Groups and group types.

import Type, { type Static } from 'typebox'
import type { Group, GroupType } from '#core/groups/group.ts'
import { instant, instantSchema, jsonObjectSchema } from './shapes.ts'

export const groupTypeSchema = Type.Object({ group_type: Type.String(), group_type_index: Type.Integer() })
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
  return { group_type: type.name, group_type_index: type.index }
}

export function encodeGroup(group: Omit<Group, 'marks'>): GroupJson {
  return {
    group_type_index: group.typeIndex,
    group_key: group.key,
    group_properties: group.properties,
    created_at: instant(group.createdAtMs),
    version: group.version,
  }
}
