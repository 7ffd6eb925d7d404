// Copies a flag to other projects. Source: PostHog's `organizations/…/feature_flags/copy_flags`.

import Type from 'typebox'
import { type CopyRefusal, copyFlag } from '#services/manage/copy-flag.ts'
import { flagSchema } from '#wire/management/flags/flags.ts'
import { organizationId } from '#wire/management/projects.ts'
import { idSchema } from '#wire/management/shapes.ts'
import {
  answer,
  createInvalidInputError,
  createNotFoundError,
  createPermissionDeniedError,
  refusal,
} from '../kit/answers.ts'
import { hasScope, mayUseProject } from '../kit/authenticate.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { instanceRoutes, type ManagementRoute } from '../kit/endpoint.ts'
import { encodeFlags, flagsTooLarge } from '../kit/flag-endpoint.ts'

const targetCountMax = 50

const copySchema = Type.Object({
  feature_flag_key: Type.String({ minLength: 1, maxLength: 1_600 }),
  from_project: idSchema,
  target_project_ids: Type.Array(idSchema, { minItems: 1, maxItems: targetCountMax }),
  disable_copied_flag: Type.Optional(
    Type.Boolean({ description: 'true: the copy is inactive even if the source is active.' }),
  ),
  copy_schedule: Type.Optional(
    Type.Boolean({ description: 'Scheduled changes are not supported, so none are copied.' }),
  ),
  copy_dependencies: Type.Optional(
    Type.Boolean({ description: 'Only false is supported: copy the flags it depends on first.' }),
  ),
})

const copiedSchema = Type.Object({
  success: Type.Array(
    Type.Object({
      ...flagSchema.properties,
      project_id: Type.Integer(),
      notes: Type.Array(Type.String({ description: 'Copied cohorts, and what could not be copied with them.' })),
    }),
  ),
  failed: Type.Array(Type.Object({ project_id: Type.Integer(), errors: Type.Array(Type.String()) })),
})

export function copyFlagsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return instanceRoutes(deps, {
    route: 'POST /api/organizations/@current/feature_flags/copy_flags',
    aliases: [`/api/organizations/${organizationId}/feature_flags/copy_flags`],
    id: 'feature_flags_copy',
    tag: 'feature_flags',
    summary: 'Copy a flag to other projects. A flag with the same key there is overwritten as a new version.',
    scope: 'feature_flag:write',
    body: copySchema,
    success: { status: 200, schema: copiedSchema },
    handle: async ({ caller, change, body }) => {
      if (body.copy_dependencies === true) return refusal(noDependencies)
      if (!mayUseProject(caller, body.from_project))
        return refusal(createPermissionDeniedError('This API key has no access to this project.'))
      const flag = await deps.management.findFlagByKey(body.from_project, body.feature_flag_key)
      if (flag === null) return refusal(createNotFoundError('The project has no flag with this key.'))
      if (body.target_project_ids.includes(body.from_project))
        return refusal(createInvalidInputError('target_project_ids', 'A flag cannot be copied onto itself.'))
      const success: object[] = []
      const failed: { project_id: number; errors: readonly string[] }[] = []
      const options = {
        change,
        mayWriteCohorts: hasScope(caller, 'cohort:write'),
        isDisabled: body.disable_copied_flag === true,
      }
      for (const projectId of new Set(body.target_project_ids)) {
        const addFailure = (errors: readonly string[]) => failed.push({ project_id: projectId, errors })
        if (!mayUseProject(caller, projectId)) addFailure(['This API key has no access to this project.'])
        else if ((await deps.management.findProject(projectId)) === null) addFailure(['This project does not exist.'])
        else {
          const copied = await copyFlag(deps, flag, projectId, options)
          if (copied.ok) {
            const [shown] = await encodeFlags(deps, caller, [copied.value.flag])
            success.push({ ...shown, project_id: projectId, notes: copied.value.notes })
          } else addFailure(describeCopyRefusal(copied.error))
        }
      }
      return answer(200, { success, failed })
    },
  })
}

const noDependencies = createInvalidInputError(
  'copy_dependencies',
  'Dependencies are not copied with the flag: copy the flags it depends on first.',
)

function describeCopyRefusal(error: CopyRefusal): readonly string[] {
  switch (error.kind) {
    case 'refused':
      return error.reasons
    case 'invalid':
      return error.issues.map(({ message }) => message)
    case 'stale_version':
      return ['The flag with this key was changed in the target project by another request. Try again.']
    case 'key_taken':
      return ['A flag with this key was created in the target project by another request. Try again.']
    case 'flags_too_large':
      return [flagsTooLarge.detail]
    case 'not_found':
      return ['The flag with this key was deleted in the target project by another request. Try again.']
    default:
      return error satisfies never
  }
}
