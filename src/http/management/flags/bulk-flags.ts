// Deletes or archives many flags at once, with a result for each.

import type { Flag } from '#core/flags/definitions/flag.ts'
import { type RetiredFlag, type RetireFlagsDeps, retireFlags } from '#services/manage/retire-flags.ts'
import {
  type BulkErrorJson,
  bulkArchivedSchema,
  bulkDeletedSchema,
  bulkFlagsSchema,
  encodeDeletedFlag,
  encodeRetiredFlag,
} from '#wire/management/flags/bulk-flags.ts'
import { answer } from '../kit/answers.ts'
import type { Caller } from '../kit/authenticate.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, type ProjectCall, parseIdNumber, projectRoutes } from '../kit/endpoint.ts'
import { encodeFlagInUseReason } from '../kit/flag-endpoint.ts'
import type { QuerySpec } from '../kit/query-params.ts'

export function bulkFlagsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'POST /feature_flags/bulk_delete',
      id: 'feature_flags_bulk_delete',
      summary: 'Delete flags by id. Flags in use are kept; the response says what uses them.',
      scope: 'feature_flag:write',
      body: bulkFlagsSchema,
      success: { status: 200, schema: bulkDeletedSchema },
      handle: async call => {
        const { done, errors } = await retireSentFlags(deps, call, 'delete')
        return answer(200, { deleted: done.map(encodeDeletedFlag), errors })
      },
    }),
    ...projectRoutes(deps, {
      route: 'POST /feature_flags/bulk_archive',
      id: 'feature_flags_bulk_archive',
      summary:
        'Archive flags by id, which also disables them. Flags in use are kept; the response says what uses them.',
      scope: 'feature_flag:write',
      body: bulkFlagsSchema,
      success: { status: 200, schema: bulkArchivedSchema },
      handle: async call => {
        const { done, errors } = await retireSentFlags(deps, call, 'archive')
        return answer(200, { archived: done.map(encodeRetiredFlag), errors })
      },
    }),
  ]
}

async function retireSentFlags(
  deps: RetireFlagsDeps,
  {
    caller,
    change,
    project,
    body: { ids: sent },
  }: ProjectCall<QuerySpec, { readonly ids: readonly (number | string)[] }>,
  how: 'delete' | 'archive',
): Promise<{ readonly done: readonly Flag[]; readonly errors: readonly BulkErrorJson[] }> {
  const numbers = sent.map(id => parseIdNumber(String(id)))
  const ids = [...new Set(numbers.filter(id => id !== null))]
  const results = await retireFlags(deps, project.id, ids, how, change)
  const unreadable = sent.filter((_id, index) => numbers[index] === null)
  return {
    done: results.flatMap(({ flag, refused }) => (flag !== null && refused === null ? [flag] : [])),
    errors: [
      ...unreadable.map(id => ({ id, reason: 'Not a flag id: flag ids are whole numbers.', used_by: [] })),
      ...results.flatMap(result => encodeRefusal(result, how, caller)),
    ],
  }
}

function encodeRefusal({ flagId: id, flag, refused }: RetiredFlag, how: string, caller: Caller): BulkErrorJson[] {
  if (refused === null) return []
  if (flag === null || refused.kind === 'not_found')
    return [{ id, reason: 'The project has no flag with this id.', used_by: [] }]
  const { key } = flag
  if (refused.kind === 'busy')
    return [{ id, key, reason: "The project's definitions changed during every attempt. Try again.", used_by: [] }]
  return [{ id, key, ...encodeFlagInUseReason(refused.by, how, caller) }]
}
