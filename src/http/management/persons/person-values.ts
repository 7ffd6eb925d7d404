// The values of a person property, which tools suggest for conditions.

import Type from 'typebox'
import { omitUndefined } from '#core/omit-undefined.ts'
import { answerFromEventStore, listAnswer } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { requiredParam, searchParam, textParam } from '../kit/query-params.ts'

/** As in PostHog. */
const valueCountMax = 20

const valuesSchema = Type.Object({
  results: Type.Array(Type.Object({ name: Type.Unknown({ description: 'The value.' }), count: Type.Integer() }), {
    description: `The ${valueCountMax} most frequent values, with the number of persons.`,
  }),
  refreshing: Type.Literal(false),
  value_count: Type.Integer({ description: 'Number of distinct values.' }),
  is_sample: Type.Boolean({ description: 'True if not all persons were examined.' }),
})

export function personValuesRoutes(deps: ManagementDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    route: 'GET /persons/values',
    id: 'persons_values',
    summary: 'List the most frequent values of a property among up to 50,000 persons.',
    scope: 'person:read',
    query: {
      key: requiredParam(textParam('Property name.')),
      value: searchParam('Substring of the value, case-insensitive.'),
    },
    success: { status: 200, schema: valuesSchema },
    handle: ({ project, query, signal }) =>
      answerFromEventStore(async () => {
        const { key: name, value: search } = query
        const asked = { projectId: project.id, of: 'person', name, limit: valueCountMax } as const
        const found = await deps.events.listPropertyValues({ ...asked, ...omitUndefined({ search }) }, signal)
        return listAnswer(
          { refreshing: false, value_count: found.valueCount, is_sample: found.isSample },
          found.results.map(({ valueJson, count }) => `{"name":${valueJson},"count":${count}}`),
        )
      }),
  })
}
