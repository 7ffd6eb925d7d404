// Queries in PostHog's shape: one endpoint, and a table of the supported kinds.

import Type from 'typebox'
import type { Condition } from '#core/insights/conditions.ts'
import { isJsonObject, type JsonObject } from '#core/json.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { PortError } from '#ports/port-error.ts'
import { answerTrends, type TrendsIssue } from '#services/insights/trends.ts'
import { isCaughtUp } from '#services/progress/is-caught-up.ts'
import { readTestAccountFilters } from '#wire/insights/property-filters.ts'
import { sqlAnswerSchema } from '#wire/insights/sql-answer.ts'
import { readTrendsQuery } from '#wire/insights/trends-query.ts'
import { encodeTrendResult, trendsAnswerSchema } from '#wire/insights/trends-results.ts'
import { postHogQueryFields } from '#wire/management/posthog-fields.ts'
import { jsonObjectSchema } from '#wire/management/shapes.ts'
import type { WireError } from '#wire/wire-error.ts'
import { type Answer, answer, answerFromEventStore, createInvalidInputError, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { answerWithJob, importJobParam } from '../kit/import-job-param.ts'
import { ignoredParam } from '../kit/query-params.ts'
import { answerHogQLQuery, type HogQLRequest, listClosedTables } from './hogql-query.ts'

/**
 * Answers one kind of query. Errors name fields by their path from `query` on; failures of the event store may be thrown.
 */
export type AnswerQuery = (deps: ManagementDeps, asked: HogQLRequest, signal: AbortSignal) => Promise<Answer>

/** The function that answers a query, by the query's `kind`. */
const kinds = new Map<string, AnswerQuery>([
  ['TrendsQuery', answerTrendsQuery],
  ['HogQLQuery', answerHogQLQuery],
])

const kindNames = [...kinds.keys()].join(', ')

/** Kinds that describe the display of their `source`; only the source is answered. */
const wrappers = new Set(['InsightVizNode', 'DataVisualizationNode', 'DataTableNode'])

/** Fields of queries, to recognise a query that was sent without `query` around it. */
const queryFields = ['kind', 'series', 'source', 'dateRange', 'interval', 'breakdownFilter', 'properties'] as const

const body = Type.Object({
  query: jsonObjectSchema(`The query. \`kind\` is one of ${kindNames}; the other fields depend on it.`),
})

export function queryRoutes(deps: ManagementDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    route: 'POST /query',
    id: 'query_create',
    summary: `Run an insight or SQL query over events. Query kinds: ${kindNames}.`,
    scope: 'query:read',
    query: {
      refresh: ignoredParam('No effect: results are not cached, and every query runs synchronously.'),
      async: ignoredParam('Older name of `refresh`.'),
      ...importJobParam,
    },
    body,
    postHogFields: postHogQueryFields,
    wrongNames: Object.fromEntries(queryFields.map(name => [name, `query.${name}`])),
    success: { status: 200, schema: Type.Union([trendsAnswerSchema, sqlAnswerSchema]) },
    handle: async call => {
      const { caller, project, body, signal } = call
      const isWrapped = wrappers.has(String(body.query.kind)) && isJsonObject(body.query.source)
      const query = isWrapped ? (body.query.source as JsonObject) : body.query
      const answerQuery = typeof query.kind === 'string' ? kinds.get(query.kind) : undefined
      const answered = await answerWithJob(deps, call, job =>
        answerFromEventStore(async () => {
          if (answerQuery === undefined) return refusal(unknownKind)
          const isComplete = await isCertainlyCaughtUp(deps, project.id)
          return answerQuery(
            deps,
            omitUndefined({ project, query, isComplete, importJobId: job?.id, closedTables: listClosedTables(caller) }),
            signal,
          )
        }),
      )
      return isWrapped ? pointErrorAtSource(answered) : answered
    },
  })
}

/**
 * Whether the worker has processed all accepted events. False if the log or the state is unavailable: stored events can
 * still be counted.
 */
export async function isCertainlyCaughtUp(deps: ManagementDeps, projectId: number): Promise<boolean> {
  const { log, management: positions, clock, startedAtMs, isProcessing } = deps
  try {
    return await isCaughtUp({ log, positions, clock, startedAtMs, isProcessing }, projectId)
  } catch (error) {
    if (!(error instanceof PortError)) throw error
    return false
  }
}

const unknownKind = createInvalidInputError(
  'query.kind',
  `Unsupported query kind. Supported: ${kindNames}, also as the source of ${[...wrappers].join(', ')}.`,
)

/** Prefixes the field of an error, so that its path fits the query as it was sent. */
function pointErrorAtSource(answered: Answer): Answer {
  if (answered.status !== 400) return answered
  const error = JSON.parse(String(answered.json)) as { readonly attr: string | null }
  const attr = error.attr?.replace(/^query/, 'query.source') ?? null
  return { ...answered, json: JSON.stringify({ ...error, attr }) }
}

async function answerTrendsQuery(
  { events: insights, management, clock }: ManagementDeps,
  { project, query: json, isComplete: complete, importJobId }: HogQLRequest,
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
  if (!counted.ok) return refusal(toWireError(counted.error))
  const results = counted.value.map(line => encodeTrendResult(line, project.timezone, query.value))
  return answer(200, { results, timezone: project.timezone, is_cached: false, complete })
}

function unreadableFiltersError({ attr, detail }: WireError): WireError {
  return createInvalidInputError(
    'query.filterTestAccounts',
    `The project's setting is not supported. ${attr}: ${detail}`,
  )
}

function toWireError(issue: TrendsIssue): WireError {
  switch (issue.kind) {
    case 'dates':
      return createInvalidInputError(`query.dateRange.date_${issue.issue.field}`, issue.issue.message)
    case 'too_many_points': {
      const remedy = 'request a shorter range, a longer interval, or a lower breakdown_limit.'
      return createInvalidInputError('query.dateRange', `The result could exceed ${issue.pointsMax} points: ${remedy}`)
    }
    case 'cohort':
      return createInvalidInputError(issue.issue.path, issue.issue.message)
    case 'too_many_conditions':
      return createInvalidInputError(
        'query.properties',
        'The filters, including those of cohorts, are too many for one query of the event store. Use fewer filters, or create a static cohort of the matching persons.',
      )
    case 'unsupported_pattern':
      return createInvalidInputError(
        'query.properties',
        'The event store cannot search for the pattern or text of a filter. Use a plainer one.',
      )
  }
}
