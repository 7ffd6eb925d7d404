// Groups and group types, which come from events. Types can be deleted.

import Type from 'typebox'
import { omitUndefined } from '#core/omit-undefined.ts'
import { err } from '#core/result.ts'
import { deleteGroupType } from '#services/manage/delete-group-type.ts'
import { encodeGroup, encodeGroupType, groupSchema, groupTypeSchema } from '#wire/management/persons/groups.ts'
import { uncountedPageSchema } from '#wire/management/shapes.ts'
import { answer, createInvalidInputError, createNotFoundError, noContent, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { answerUncountedList, encodeRows } from '../kit/list-answers.ts'
import { pageParams, requiredParam, searchParam, textParam, wholeNumberParam } from '../kit/query-params.ts'

const tag = 'groups'
const typeIndex = requiredParam(wholeNumberParam({ description: 'Index of the group type.', minimum: 0, maximum: 4 }))

const noSuchType = createNotFoundError('The project has no group type with this index.')

function formatInUseMessage(flagKeys: readonly string[]): string {
  const named = flagKeys.slice(0, namedFlagsMax).join(', ')
  const others = flagKeys.length > namedFlagsMax ? ' and others' : ''
  return `This group type is used by the flags ${named}${others}. Remove it from their filters, or delete them, first.`
}

const namedFlagsMax = 20

const usedByImport = createInvalidInputError(
  'group_type_index',
  'Events of an import job use this group type: publish or discard the job first.',
)

export function groupsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'GET /groups_types',
      id: 'groups_types_list',
      tag,
      summary: 'List the group types of the project, at most five. Returns a plain list.',
      scope: 'group:read',
      success: { status: 200, schema: Type.Array(groupTypeSchema) },
      handle: async ({ project }) => {
        const types = await deps.management.listGroupTypes(project.id)
        return answer(200, types.map(encodeGroupType))
      },
    }),
    ...projectRoutes(deps, {
      route: 'DELETE /groups_types/:groupTypeIndex',
      id: 'groups_types_destroy',
      tag,
      summary:
        'Delete a group type and its groups, and free its index. 400 while a flag or an unpublished import uses it.',
      scope: 'group:write',
      success: { status: 204 },
      handle: async ({ change, project, params }) => {
        const index = params.groupTypeIndex!
        const deleted = /^\d$/.test(index)
          ? await deleteGroupType(deps, project.id, Number(index), change)
          : err('not_found' as const)
        if (deleted.ok) return noContent
        if (deleted.error === 'not_found') return refusal(noSuchType)
        if (deleted.error === 'used_by_import') return refusal(usedByImport)
        return refusal(createInvalidInputError('group_type_index', formatInUseMessage(deleted.error.usedBy)))
      },
    }),
    ...projectRoutes(deps, {
      route: 'GET /groups',
      id: 'groups_list',
      summary: 'List groups of one type, newest first.',
      scope: 'group:read',
      query: {
        ...pageParams(),
        group_type_index: typeIndex,
        search: searchParam('Substring of the key or the properties.'),
        group_key: searchParam('Substring of the key, case-insensitive.'),
      },
      success: { status: 200, schema: uncountedPageSchema(groupSchema) },
      handle: call => {
        const { project, query } = call
        const filters = omitUndefined({ search: query.search, keyPart: query.group_key })
        return answerUncountedList(
          call,
          query,
          slice => deps.management.listGroups(project.id, { ...slice, typeIndex: query.group_type_index, ...filters }),
          encodeRows(encodeGroup),
        )
      },
    }),
    ...projectRoutes(deps, {
      route: 'GET /groups/find',
      id: 'groups_find',
      summary: 'Get one group by type and key.',
      scope: 'group:read',
      query: { group_type_index: typeIndex, group_key: requiredParam(textParam('Group key.')) },
      success: { status: 200, schema: groupSchema },
      handle: async ({ project, query }) => {
        const group = await deps.management.findStoredGroup(project.id, query.group_type_index, query.group_key)
        return group === null
          ? refusal(createNotFoundError('No group of this type has this key.'))
          : { status: 200, json: encodeGroup(group) }
      },
    }),
  ]
}
