// `users/@me` and the organization, which PostHog's scripts request first, to identify the instance.

import type { Project } from '#core/project.ts'
import { encodeAuthor } from '#wire/management/author.ts'
import { organizationId } from '#wire/management/projects.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import {
  type OrganizationJson,
  organizationSchema,
  type ProjectSummaryJson,
  type UserJson,
  userSchema,
} from '#wire/management/users.ts'
import { answer } from './kit/answers.ts'
import type { Caller } from './kit/authenticate.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { findCurrentProject, instanceRoutes, type ManagementRoute } from './kit/endpoint.ts'
import { encodeCountAndPageLinks } from './kit/list-answers.ts'
import { limitParam, pageParams } from './kit/query-params.ts'
import { listVisibleProjects } from './projects.ts'

/** The most projects that an organization lists; `/api/projects/` has all. */
const projectCountMax = 1_000
const organizationNames = { id: organizationId, name: 'Pennon', slug: 'pennon' }

export function usersRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...instanceRoutes(deps, {
      route: 'GET /api/users/@me',
      id: 'users_me',
      summary:
        'Get the caller, a personal API key or a person who signed in, with their current project and the organization.',
      scope: 'user:read',
      // Accepted because tools that test a key send a limit with every request.
      query: { limit: limitParam() },
      success: { status: 200, schema: userSchema },
      handle: async ({ caller }) => {
        const team = await findCurrentProject(deps.management, caller)
        const user: UserJson = {
          ...encodeAuthor(caller)!,
          distinct_id: caller.id,
          is_staff: false,
          team: team === null ? null : encodeProjectSummary(team),
          organization: await encodeOrganization(deps, caller),
          organizations: [organizationNames],
        }
        return answer(200, user)
      },
    }),
    ...instanceRoutes(deps, {
      route: 'GET /api/organizations',
      id: 'organizations_list',
      summary: 'List the single organization of this instance; tools look up its id by slug here.',
      scope: 'organization:read',
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(organizationSchema) },
      handle: async ({ request, caller, query }) => {
        const results = query.offset === 0 ? [await encodeOrganization(deps, caller)] : []
        return answer(200, { ...encodeCountAndPageLinks(request, query, 1, results.length), results })
      },
    }),
    ...instanceRoutes(deps, {
      route: 'GET /api/organizations/@current',
      aliases: [`/api/organizations/${organizationId}`],
      id: 'organizations_current',
      summary: 'Get the single organization of this instance.',
      scope: 'organization:read',
      success: { status: 200, schema: organizationSchema },
      handle: async ({ caller }) => answer(200, await encodeOrganization(deps, caller)),
    }),
  ]
}

async function encodeOrganization(deps: ManagementDeps, caller: Caller): Promise<OrganizationJson> {
  const projects = await listProjectSummaries(deps, caller)
  return { ...organizationNames, projects, teams: projects }
}

export async function listProjectSummaries(
  deps: Pick<ManagementDeps, 'management'>,
  caller: Pick<Caller, 'scopedProjectIds'>,
): Promise<ProjectSummaryJson[]> {
  const projects: ProjectSummaryJson[] = []
  // Several pages may be needed: each has at most a mebibyte of settings, of which little is shown here.
  for (let count = 1; projects.length < Math.min(count, projectCountMax); ) {
    const page = { limit: projectCountMax - projects.length, offset: projects.length }
    const found = await listVisibleProjects(deps, caller, page)
    projects.push(...found.results.map(encodeProjectSummary))
    count = found.results.length === 0 ? 0 : found.count
  }
  return projects
}

function encodeProjectSummary(project: Project): ProjectSummaryJson {
  const { id, uuid, name, apiToken, timezone } = project
  return { id, uuid, organization: organizationId, name, api_token: apiToken, timezone }
}
