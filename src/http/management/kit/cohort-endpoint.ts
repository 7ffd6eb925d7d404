// Endpoints of one cohort: they are called with it, and what a write of it answers. The endpoints themselves are in
// `cohorts.ts` and `cohort-persons.ts`.

import type { Static, TSchema } from 'typebox'
import type { Cohort } from '#core/flags/definitions/cohort.ts'
import type { Result } from '#core/result.ts'
import type { CohortRefusal, WrittenCohort } from '#services/manage/manage-cohorts.ts'
import { encodeCohort, encodeMemberReport } from '#wire/management/management.ts'
import { type Answer, answer, invalidInput, missing, notFoundHere, refusal } from './answers.ts'
import { refuseInvalid, refuseStale } from './definition-refusals.ts'
import type { ManagementDeps } from './deps.ts'
import { type ManagementRoute, type ProjectCall, type ProjectEndpoint, projectRoutes } from './endpoint.ts'
import type { QuerySpec } from './query-params.ts'

export interface CohortCall<Q extends QuerySpec, B> extends ProjectCall<Q, B> {
  readonly cohort: Cohort
}

export interface CohortEndpoint<Q extends QuerySpec, S extends TSchema>
  extends Omit<ProjectEndpoint<Q, S>, 'prefixes' | 'handle'> {
  /** Below the cohort: `/persons`, '' for the cohort itself. */
  readonly path: string
  readonly handle: (call: CohortCall<Q, Static<S>>) => Promise<Answer>
}

/** Called with the cohort of the project that `:cohortId` names; 404 when there is none. */
export function cohortRoutes<Q extends QuerySpec, S extends TSchema>(
  deps: ManagementDeps,
  endpoint: CohortEndpoint<Q, S>,
): ManagementRoute[] {
  return projectRoutes<Q, S>(deps, {
    ...endpoint,
    path: `/cohorts/:cohortId${endpoint.path}`,
    handle: async call => {
      const id = call.params.cohortId!
      const cohort = /^\d{1,15}$/.test(id) ? await deps.management.findCohort(call.project.id, Number(id)) : null
      return cohort === null ? refusal(noSuchCohort) : endpoint.handle({ ...call, cohort })
    },
  })
}

export const noSuchCohort = missing('There is no cohort with this id here.')

/** The cohort as it is after a write, what became of the ids, and what validation would have refused when it was skipped. */
export function answerCohortWrite(
  status: number,
  written: Result<WrittenCohort, CohortRefusal>,
  options: { withWarnings: boolean; isCalculating: boolean },
): Answer {
  if (!written.ok) return refuseCohort(written.error)
  const { cohort, members, warnings } = written.value
  return answer(status, {
    ...encodeCohort(cohort, options),
    ...(members === null ? {} : { members: encodeMemberReport(members) }),
    ...(options.withWarnings
      ? { warnings: warnings.map(({ path, code, message }) => ({ attr: path, code, detail: message })) }
      : {}),
  })
}

/** Source: ours; `attr` is the path of the first mistake, and its sentence is `detail`. */
export function refuseCohort(error: CohortRefusal): Answer {
  switch (error.kind) {
    case 'not_found':
      return refusal(notFoundHere)
    case 'not_static':
      return refusal(
        invalidInput(
          'is_static',
          'Only a static cohort that is not deleted has members that are given. Send is_static: true when it is created.',
        ),
      )
    case 'invalid':
      return refuseInvalid(error.issues)
    case 'stale_version':
      return refuseStale('cohort', error)
    default:
      return error satisfies never
  }
}
