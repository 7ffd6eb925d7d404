// Queries in PostHog's shape: one endpoint, and a table of the kinds of query there are.

import Type from 'typebox'
import type { JsonObject } from '#core/json.ts'
import type { Project } from '#core/project.ts'
import { sqlAnswerSchema } from '#wire/insights/sql-answer.ts'
import { trendsAnswerSchema } from '#wire/insights/trends-results.ts'
import { jsonObjectSchema } from '#wire/management/shapes.ts'
import { type Answer, answerFromEventStore, invalidInput, refusal } from '../kit/answers.ts'
import type { EndpointDeps } from '../kit/endpoint.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { answerHogQLQuery, type HogQLQueryDeps } from './hogql-query.ts'
import { answerTrendsQuery, type TrendsQueryDeps } from './trends-query.ts'

export type QueryDeps = EndpointDeps & TrendsQueryDeps & HogQLQueryDeps

/** What a kind of query is answered with. Errors name fields from `query`; failures of the event store may be thrown. */
export type AnswerQuery = (deps: QueryDeps, project: Project, query: JsonObject, signal: AbortSignal) => Promise<Answer>

/** By the `kind` of the query. */
const kinds = new Map<string, AnswerQuery>([
  ['TrendsQuery', answerTrendsQuery],
  ['HogQLQuery', answerHogQLQuery],
])

const kindNames = [...kinds.keys()].join(', ')

const body = Type.Object({
  query: jsonObjectSchema(`The query: \`kind\` is one of ${kindNames}, and its other fields depend on it.`),
})

export function queryRoutes(deps: QueryDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    method: 'POST',
    path: '/query',
    id: 'query_create',
    tag: 'query',
    summary: `Counts over events, and SQL. Kinds of query: ${kindNames}.`,
    scope: 'query:read',
    body,
    success: { status: 200, schema: Type.Union([trendsAnswerSchema, sqlAnswerSchema]) },
    handle: async ({ project, body: { query }, signal }) => {
      const answerQuery = typeof query.kind === 'string' ? kinds.get(query.kind) : undefined
      if (answerQuery === undefined) {
        return refusal(invalidInput('query.kind', `The kinds of query that there are: ${kindNames}.`))
      }
      return answerFromEventStore(() => answerQuery(deps, project, query, signal))
    },
  })
}
