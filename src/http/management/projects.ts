// Projects, under `/api/projects`, its alias `/api/environments`, and the organization, where PostHog's tools look.

import { noSecretKeys, type Project, type SecretKeys } from '#core/project.ts'
import type { Result } from '#core/result.ts'
import type { ProjectStore } from '#ports/state/project-store.ts'
import type { Page } from '#ports/state/written.ts'
import { deleteBackupSecretKey, rotateSecretKey } from '#services/manage/manage-keys.ts'
import {
  createProject,
  deleteProject,
  type ProjectRefusal,
  resetProjectKey,
  updateProject,
} from '#services/manage/manage-projects.ts'
import { findClientSettingsIssue } from '#wire/management/client-settings.ts'
import { postHogProjectFields } from '#wire/management/posthog-fields.ts'
import {
  createProjectSchema,
  decodeProject,
  encodeProject,
  organizationId,
  projectSchema,
  updateProjectSchema,
} from '#wire/management/projects.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import {
  type Answer,
  answer,
  createInvalidInputError,
  createPermissionDeniedError,
  noContent,
  notFoundHere,
  refusal,
} from './kit/answers.ts'
import { type Caller, isLimitedToProjects } from './kit/authenticate.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { instanceRoutes, type ManagementRoute, projectPrefixes, projectRoutes } from './kit/endpoint.ts'
import { answerCountedList, encodeRowsInBulk, type PageRequest } from './kit/list-answers.ts'
import { pageParams } from './kit/query-params.ts'

const organizationPaths = ['@current', organizationId].map(id => `/api/organizations/${id}/projects`)
const otherListPaths = ['/api/environments', ...organizationPaths]
const own = { tag: 'projects', prefixes: [...projectPrefixes, ...organizationPaths.map(path => `${path}/:projectId`)] }

export function projectsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...instanceRoutes(deps, {
      route: 'GET /api/projects',
      aliases: otherListPaths,
      id: 'projects_list',
      summary: 'List the projects that the key can access, by ascending id.',
      scope: 'project:read',
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(projectSchema) },
      handle: call =>
        answerCountedList(
          call,
          call.query,
          slice => listVisibleProjects(deps, call.caller, slice),
          encodeRowsInBulk(projects => encodeProjects(deps, projects)),
        ),
    }),
    ...instanceRoutes(deps, {
      route: 'POST /api/projects',
      aliases: otherListPaths,
      id: 'projects_create',
      summary: 'Create a project.',
      scope: 'project:write',
      body: createProjectSchema,
      postHogFields: postHogProjectFields,
      success: { status: 201, schema: projectSchema },
      handle: async ({ caller, change, body }) => {
        if (isLimitedToProjects(caller)) {
          return refusal(createPermissionDeniedError('A key limited to some projects cannot create projects.'))
        }
        const fields = decodeProject(body)
        const wrongSetting = findSettingRefusal(fields.clientSettings)
        if (wrongSetting !== null) return wrongSetting
        const created = await createProject(
          deps,
          {
            ...fields,
            name: body.name,
            ...(body.api_token === undefined ? {} : { apiToken: body.api_token }),
          },
          change,
        )
        return answerProjectWrite(deps, 201, created)
      },
    }),
    ...projectRoutes(deps, {
      ...own,
      route: 'GET /',
      id: 'projects_retrieve',
      summary: 'Get one project.',
      scope: 'project:read',
      success: { status: 200, schema: projectSchema },
      handle: async ({ project }) => answerProject(deps, 200, project),
    }),
    ...projectRoutes(deps, {
      ...own,
      route: 'PATCH /',
      id: 'projects_update',
      summary: 'Update fields of a project. Omitted quotas and settings are unchanged; null unsets them.',
      scope: 'project:write',
      body: updateProjectSchema,
      postHogFields: postHogProjectFields,
      success: { status: 200, schema: projectSchema },
      handle: async ({ change, project, body }) => {
        const fields = decodeProject(body)
        const wrongSetting = findSettingRefusal(fields.clientSettings)
        if (wrongSetting !== null) return wrongSetting
        const updated = await updateProject(deps, project.id, fields, change)
        return answerProjectWrite(deps, 200, updated)
      },
    }),
    ...projectRoutes(deps, {
      ...own,
      route: 'DELETE /',
      id: 'projects_destroy',
      summary: 'Delete a project. Its id is never reused.',
      scope: 'project:write',
      success: { status: 204 },
      handle: async ({ change, project }) => {
        const deleted = await deleteProject(deps, project.id, change)
        return deleted.ok ? noContent : refusal(notFoundHere)
      },
    }),
    ...projectRoutes(deps, {
      ...own,
      route: 'PATCH /reset_token',
      id: 'projects_reset_token',
      summary: 'Generate a new project API key. The old key stops working immediately.',
      scope: 'project:write',
      success: { status: 200, schema: projectSchema },
      handle: async ({ change, project }) => {
        const updated = await resetProjectKey(deps, project.id, change)
        return answerProjectWrite(deps, 200, updated)
      },
    }),
    ...projectRoutes(deps, {
      ...own,
      route: 'PATCH /rotate_secret_token',
      id: 'projects_rotate_secret_token',
      summary:
        'Generate a new secret key, `secret_api_token`, returned only once. The previous key becomes the backup.',
      scope: 'project:write',
      success: { status: 200, schema: projectSchema },
      handle: async ({ change, project }) => {
        const rotated = await rotateSecretKey(deps, project.id, change)
        if (!rotated.ok) return refusal(notFoundHere)
        return answer(200, encodeProject(project, { ...rotated.value.keys, primary: rotated.value.secret }))
      },
    }),
    ...projectRoutes(deps, {
      ...own,
      route: 'PATCH /delete_secret_token_backup',
      id: 'projects_delete_secret_token_backup',
      summary: 'Delete the backup secret key, from before the last rotation.',
      scope: 'project:write',
      success: { status: 200, schema: projectSchema },
      handle: async ({ change, project }) => {
        const deleted = await deleteBackupSecretKey(deps, project.id, change)
        return deleted.ok ? answer(200, encodeProject(project, deleted.value)) : refusal(notFoundHere)
      },
    }),
  ]
}

/** A page of the projects that a key may see. */
export function listVisibleProjects(
  deps: { readonly management: Pick<ProjectStore, 'listProjects'> },
  caller: Pick<Caller, 'scopedProjectIds'>,
  { limit, offset }: PageRequest,
): Promise<Page<Project>> {
  const ids = isLimitedToProjects(caller) ? { ids: caller.scopedProjectIds } : {}
  return deps.management.listProjects({ limit, offset, ...ids })
}

async function encodeProjects(deps: ManagementDeps, projects: readonly Project[]) {
  const found = await deps.management.listSecretKeys(projects.map(project => project.id))
  const keysOf = new Map<number, SecretKeys>(found.map(keys => [keys.projectId, keys]))
  return projects.map(project => encodeProject(project, keysOf.get(project.id) ?? noSecretKeys))
}

async function answerProject(deps: ManagementDeps, status: number, project: Project) {
  const [encoded] = await encodeProjects(deps, [project])
  return answer(status, encoded)
}

async function answerProjectWrite(
  deps: ManagementDeps,
  status: number,
  written: Result<Project, ProjectRefusal>,
): Promise<Answer> {
  if (written.ok) return answerProject(deps, status, written.value)
  return refusal(written.error === 'not_found' ? notFoundHere : projectErrors[written.error])
}

function findSettingRefusal(settings: Project['clientSettings'] | undefined): Answer | null {
  const issue = settings === undefined ? null : findClientSettingsIssue(settings)
  return issue === null ? null : refusal(createInvalidInputError(issue.name, issue.message))
}

const projectErrors: Record<Exclude<ProjectRefusal, 'not_found'>, WireError> = {
  token_taken: wireError(400, 'unique', 'Another project uses this project API key.', 'api_token'),
  invalid_token: createInvalidInputError(
    'api_token',
    'A project API key has 1 to 64 printable ASCII characters, no white space, slash, question mark, hash or per cent ' +
      'sign, and does not start with phx_ or phs_.',
  ),
  unknown_timezone: createInvalidInputError('timezone', 'Unknown time zone: use an IANA name such as Europe/Berlin.'),
  blank_name: createInvalidInputError('name', 'This field may not be blank.'),
}
