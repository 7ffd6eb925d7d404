// What the endpoints of one cohort share: each is called with the cohort, and all of them answer a write the same way. The
// endpoints themselves are in `cohorts.ts` and `cohort-persons.ts`.

import type { Static, TSchema } from 'typebox'
import type { Cohort } from '#core/flags/definitions/cohort.ts'
import type { Result } from '#core/result.ts'
import type { CohortRefusal, MemberReport, WrittenCohort } from '#services/manage/manage-cohorts.ts'
import type { flagWarningSchema } from '#wire/management/flags/flags.ts'
import { encodeCohort, encodeMemberReport } from '#wire/management/persons/cohorts.ts'
import { type Answer, answer, createInvalidInputError, createNotFoundError, notFoundHere, refusal } from './answers.ts'
import { refuseInvalidDefinition, refuseStaleVersion } from './definition-refusals.ts'
import type { ManagementDeps } from './deps.ts'
import { type ItemEndpoint, itemRoutes, type ManagementRoute, parseIdNumber } from './endpoint.ts'
import type { QuerySpec } from './query-params.ts'

/** Routes that are called with the cohort that `:cohortId` names; 404 when the project has no such cohort. */
export function cohortRoutes<Q extends QuerySpec, S extends TSchema>(
  deps: ManagementDeps,
  endpoint: ItemEndpoint<Cohort, Q, S>,
): ManagementRoute[] {
  const find = async (projectId: number, text: string) => {
    const id = parseIdNumber(text)
    return id === null ? null : deps.management.findCohort(projectId, id)
  }
  return itemRoutes(deps, { param: 'cohortId', find, missing: noSuchCohort }, endpoint)
}

export const noSuchCohort = createNotFoundError('The project has no cohort with this id.')

/**
 * Answers with the cohort after a write, the outcome for the ids, and, when validation was skipped, the issues that it
 * would have refused.
 */
export function answerCohortWrite(
  status: number,
  written: Result<WrittenCohort, CohortRefusal>,
  options: { withWarnings: boolean; isCalculating: boolean },
): Answer {
  if (!written.ok) return refuseCohort(written.error)
  const { cohort, members, warnings } = written.value
  const shown: Static<typeof flagWarningSchema>[] = warnings.map(({ path, code, message }) => ({
    attr: path,
    code,
    detail: message,
  }))
  if (members !== null && hasOnlyUnknownIds(members)) shown.push(nobodyFound)
  return answer(status, {
    ...encodeCohort(cohort, options),
    ...(members === null ? {} : { members: encodeMemberReport(members) }),
    ...(options.withWarnings || shown.length > 0 ? { warnings: shown } : {}),
  })
}

function hasOnlyUnknownIds({ changedCount, unchangedCount, unknownIds }: MemberReport): boolean {
  return changedCount + unchangedCount === 0 && unknownIds.length > 0
}

const nobodyFound = {
  attr: 'members',
  code: 'nobody_found',
  detail: 'None of the ids belongs to a person, so the cohort is unchanged. members.unknown lists the ids as read.',
}

/** Source: ours; `attr` is the path of the first mistake and `detail` its message. */
export function refuseCohort(error: CohortRefusal): Answer {
  switch (error.kind) {
    case 'not_found':
      return refusal(notFoundHere)
    case 'not_static':
      return refusal(
        createInvalidInputError(
          'is_static',
          'Members can only be set for a static cohort that is not deleted. Send is_static: true when you create it.',
        ),
      )
    case 'invalid':
      return refuseInvalidDefinition(error.issues)
    case 'stale_version':
      return refuseStaleVersion('cohort', error)
    default:
      return error satisfies never
  }
}
