// Who is in a cohort: members of static ones are added and taken out by id.

import type { Cohort } from '#core/cohorts/cohort.ts'
import type { MemberIds } from '#core/cohorts/member-ids.ts'
import { changeMembers } from '#services/manage-cohorts.ts'
import { addMembersSchema, decodeMembers, removeMembersSchema, writtenCohortSchema } from '#wire/management.ts'
import { type Answer, refusal, required } from './answers.ts'
import { answerCohortWrite, cohortRoutes } from './cohort-endpoint.ts'
import type { ManagementDeps } from './deps.ts'
import type { ManagementRoute } from './endpoint.ts'

const tag = 'cohorts'

export function cohortPersonsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...cohortRoutes(deps, {
      method: 'PATCH',
      path: '/add_persons_to_static_cohort',
      id: 'cohorts_add_persons_to_static_cohort',
      tag,
      summary: 'Add persons to a static cohort. Flags see it at once; `members` says which ids led to nobody.',
      scope: 'cohort:write',
      body: addMembersSchema,
      success: { status: 200, schema: writtenCohortSchema },
      handle: ({ cohort, body }) =>
        change(cohort, 'add', decodeMembers({ persons: body.person_ids, distinctIds: body.distinct_ids })),
    }),
    ...cohortRoutes(deps, {
      method: 'PATCH',
      path: '/remove_person_from_static_cohort',
      id: 'cohorts_remove_person_from_static_cohort',
      tag,
      summary: 'Take one or several persons out of a static cohort. Flags see it at once.',
      scope: 'cohort:write',
      body: removeMembersSchema,
      success: { status: 200, schema: writtenCohortSchema },
      handle: ({ cohort, body }) => {
        const persons = [...(body.person_id === undefined ? [] : [body.person_id]), ...(body.person_ids ?? [])]
        return change(cohort, 'remove', decodeMembers({ persons, distinctIds: body.distinct_ids }))
      },
    }),
  ]

  async function change(cohort: Cohort, action: 'add' | 'remove', members: readonly MemberIds[]): Promise<Answer> {
    if (members.length === 0) return refusal(required(action === 'add' ? 'person_ids' : 'person_id'))
    return answerCohortWrite(200, await changeMembers(deps, cohort, action, members), { withWarnings: false })
  }
}
