// How often a flag was called, by value and by hour or day, and how many persons it exposed to its variants.

import { answerExposure } from '#services/insights/flag-exposure.ts'
import { answerFlagUsage, type FlagCallRange, type FlagCallRangeIssue } from '#services/insights/flag-usage.ts'
import {
  encodeFlagExposure,
  encodeFlagUsage,
  flagExposureSchema,
  flagUsageSchema,
} from '#wire/management/flags/flag-usage.ts'
import type { WireError } from '#wire/wire-error.ts'
import { answer, answerFromEventStore, createInvalidInputError, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import type { ManagementRoute } from '../kit/endpoint.ts'
import { flagRoutes } from '../kit/flag-endpoint.ts'
import { addDefaultValue, choiceParam, textParam } from '../kit/query-params.ts'

const query = {
  date_from: textParam('Start: a time, a date, a span such as -7d or mStart, or `all`. Default: -30d.'),
  date_to: textParam('End, inclusive. Default: today.'),
  interval: addDefaultValue(
    choiceParam(['hour', 'day'], 'Bucket size, in the project’s time zone. Default: day.'),
    'day',
  ),
}

export function flagUsageRoutes(deps: ManagementDeps): ManagementRoute[] {
  const insights = { insights: deps.events, clock: deps.clock }
  return [
    ...flagRoutes(deps, {
      route: 'GET /feature_flags/:flagId/usage',
      id: 'feature_flags_usage',
      summary: 'Count flag calls and persons by value, per hour or day.',
      scope: 'feature_flag:read',
      query,
      success: { status: 200, schema: flagUsageSchema },
      handle: async ({ project, item: flag, query, signal }) => {
        const [lastCall] = await deps.management.listLastCalls(project.id, [flag.id])
        return answerFromEventStore(async () => {
          const counted = await answerFlagUsage(insights, project, flag.key, toCallRange(query), signal)
          if (!counted.ok) return refusal(toRangeError(counted.error))
          const { usage, buckets } = counted.value
          return answer(200, encodeFlagUsage(usage, buckets, project.timezone, lastCall?.calledAtMs ?? null))
        })
      },
    }),
    ...flagRoutes(deps, {
      route: 'GET /feature_flags/:flagId/exposure',
      id: 'feature_flags_exposure',
      summary:
        'Count persons by the variant they first saw, per hour or day, and check the split against the definition.',
      scope: 'feature_flag:read',
      query,
      success: { status: 200, schema: flagExposureSchema },
      handle: async ({ project, item: flag, query, signal }) => {
        const range = { ...toCallRange(query), importJobIds: await deps.management.listJobsInExperiments(project.id) }
        return answerFromEventStore(async () => {
          const counted = await answerExposure(insights, project, flag, range, signal)
          if (!counted.ok) return refusal(toRangeError(counted.error))
          return answer(200, encodeFlagExposure(counted.value, project.timezone))
        })
      },
    }),
  ]
}

function toCallRange(query: {
  date_from: string | undefined
  date_to: string | undefined
  interval: 'hour' | 'day'
}): FlagCallRange {
  return { from: query.date_from ?? null, to: query.date_to ?? null, interval: query.interval }
}

function toRangeError(issue: FlagCallRangeIssue): WireError {
  switch (issue.kind) {
    case 'dates':
      return createInvalidInputError(`date_${issue.issue.field}`, issue.issue.message)
    case 'too_many_buckets':
      return createInvalidInputError(
        'date_from',
        `The result would have more than ${issue.bucketsMax} buckets: request a shorter range or a longer interval.`,
      )
  }
}
