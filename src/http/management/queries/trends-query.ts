// Answers a TrendsQuery of `POST …/query/`.

import type { Condition } from '#core/insights/conditions.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { answerTrends, type TrendsIssue } from '#services/insights/trends.ts'
import { readTestAccountFilters } from '#wire/insights/property-filters.ts'
import { readTrendsQuery } from '#wire/insights/trends-query.ts'
import { encodeTrendResult } from '#wire/insights/trends-results.ts'
import type { WireError } from '#wire/wire-error.ts'
import { type Answer, answer, invalidInput, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import type { AskedQuery } from './hogql-query.ts'

export async function answerTrendsQuery(
  { events: insights, management, clock }: ManagementDeps,
  { project, query: json, isComplete: complete, importJobId }: AskedQuery,
  signal: AbortSignal,
): Promise<Answer> {
  const query = readTrendsQuery(json)
  if (!query.ok) return refusal(query.error)
  let { condition } = query.value
  if (query.value.leavesOutTestAccounts) {
    const filters = readTestAccountFilters(project.clientSettings.test_account_filters ?? [])
    if (!filters.ok) return refusal(unreadableFiltersError(filters.error))
    condition = { kind: 'all', conditions: [condition, filters.value] } satisfies Condition
  }
  const asked = omitUndefined({ ...query.value, condition, importJobId })
  const counted = await answerTrends({ insights, management, clock }, project, asked, signal)
  if (!counted.ok) return refusal(issueError(counted.error))
  const results = counted.value.map(line => encodeTrendResult(line, project.timezone, query.value))
  return answer(200, { results, timezone: project.timezone, is_cached: false, complete })
}

function unreadableFiltersError({ attr, detail }: WireError): WireError {
  return invalidInput('query.filterTestAccounts', `The project's setting is not supported. ${attr}: ${detail}`)
}

function issueError(issue: TrendsIssue): WireError {
  switch (issue.kind) {
    case 'dates':
      return invalidInput(`query.dateRange.date_${issue.issue.field}`, issue.issue.message)
    case 'too_many_points': {
      const remedy = 'request a shorter range, a longer interval, or a lower breakdown_limit.'
      return invalidInput('query.dateRange', `The result could exceed ${issue.pointsMax} points: ${remedy}`)
    }
    case 'cohort':
      return invalidInput(issue.issue.path, issue.issue.message)
    case 'too_many_conditions':
      return invalidInput(
        'query.properties',
        'The filters, including those of cohorts, are too many for one query of the event store. Use fewer filters, or create a static cohort of the matching persons.',
      )
    case 'unsupported_pattern':
      return invalidInput(
        'query.properties',
        'The event store cannot search for the pattern or text of a filter. Use a plainer one.',
      )
  }
}
