// Evaluates a flag for one person in the format of PostHog's tools; `explain-flag.ts` does it in Pennon's own format.

import Type from 'typebox'
import type { JsonObject } from '#core/json.ts'
import { removeMembers } from '#core/json-text.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { PersonStore, PersonView } from '#ports/state/person-store.ts'
import { evaluateForExplanation } from '#services/flags/explain-flag.ts'
import { encodeExplanation } from '#wire/management/flags/explanation.ts'
import { encodeTestEvaluation, testEvaluationSchema } from '#wire/management/flags/test-evaluation.ts'
import { jsonObjectSchema, nullable } from '#wire/management/shapes.ts'
import type { WireError } from '#wire/wire-error.ts'
import {
  createInvalidInputError,
  createNotFoundError,
  createRequiredError,
  refusal,
  stateUnavailable,
} from '../kit/answers.ts'
import { hasScope } from '../kit/authenticate.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import type { ManagementRoute } from '../kit/endpoint.ts'
import { flagRoutes } from '../kit/flag-endpoint.ts'
import { findPersonById, noSuchPerson, type PersonFinder } from '../kit/person-filters.ts'
import { readSubjectRequest } from './explain-flag.ts'

const idLengthMax = 1_000

const bodySchema = Type.Object({
  distinct_id: Type.Optional(Type.String({ maxLength: idLengthMax, description: 'Send this or `person_id`.' })),
  person_id: Type.Optional(
    Type.String({
      maxLength: idLengthMax,
      description: "Uuid or id of a person; evaluated with the person's first distinct id.",
    }),
  ),
  groups: Type.Optional(nullable(jsonObjectSchema('Group keys by group type.'))),
  person_properties: Type.Optional(nullable(jsonObjectSchema('Override stored properties, key by key.'))),
  group_properties: Type.Optional(nullable(jsonObjectSchema('Group properties by group type.'))),
  timestamp: Type.Optional(nullable(Type.String({ description: 'Only null: past states of persons are not stored.' }))),
})

export function testEvaluationRoutes(deps: ManagementDeps): ManagementRoute[] {
  return flagRoutes(deps, {
    route: 'POST /feature_flags/:flagId/test_evaluation',
    id: 'feature_flags_test_evaluation',
    summary:
      'Evaluate the flag for one person, with the reason. Nothing is stored or counted. `explain` returns every step.',
    // The answer contains stored data of the person.
    scope: 'feature_flag:read person:read',
    body: bodySchema,
    success: { status: 200, schema: testEvaluationSchema },
    handle: async ({ caller, project, item: flag, body }) => {
      if (flag.deleted) return refusal(deletedFlag)
      if (body.timestamp != null) return refusal(noPast)
      const served = deps.servedProject(project.id)
      if (served === null) return refusal(stateUnavailable)
      const found = await findSubject(deps.management, project.id, body)
      if (!found.ok) return refusal(found.error)
      const { distinctId, person } = found.value
      const overrides = body.person_properties ?? {}
      const asked: JsonObject = {
        ...{ distinct_id: distinctId, person_properties: overrides },
        ...{ groups: body.groups ?? {}, group_properties: body.group_properties ?? {} },
      }
      const request = readSubjectRequest(asked, project.apiToken)
      if (!request.ok) return refusal(request.error)
      const explained = await evaluateForExplanation(deps.decide, served, flag, request.value, deps.clock.nowMs())
      const view = {
        showsPersons: true,
        showsGroups: hasScope(caller, 'group:read'),
        showsCohorts: hasScope(caller, 'cohort:read'),
      }
      const json = encodeTestEvaluation(encodeExplanation(explained, view), {
        distinctId,
        personPropertiesJson: applyOverrides(person?.propertiesJson ?? '{}', overrides),
      })
      return { status: 200, json }
    },
  })
}

/** Replaces stored properties by properties of the request with the same name. */
function applyOverrides(storedJson: string, overrides: JsonObject): string {
  const stored = removeMembers(storedJson, new Set(Object.keys(overrides)))
  const members = [stored, JSON.stringify(overrides)].map(text => text.slice(1, -1)).filter(text => text.trim() !== '')
  return `{${members.join(',')}}`
}

const deletedFlag = createNotFoundError('This flag is deleted and no longer served.')

const noPast = createInvalidInputError(
  'timestamp',
  'Past states of persons are not stored, so past flag values cannot be computed. …/explain/ accepts `at`, the time for relative dates.',
)

/** A distinct id without a person is allowed, as for a visitor before the first event; a `person_id` must exist. */
async function findSubject(
  persons: PersonStore & PersonFinder,
  projectId: number,
  { distinct_id: distinctId, person_id: personId }: { readonly distinct_id?: string; readonly person_id?: string },
): Promise<Result<{ readonly distinctId: string; readonly person: PersonView | null }, WireError>> {
  if (distinctId !== undefined && personId !== undefined)
    return err(createInvalidInputError('person_id', 'Send distinct_id or person_id, not both.'))
  if (personId === undefined) {
    if (distinctId === undefined || distinctId === '') return err(createRequiredError('distinct_id'))
    const { results } = await persons.listPersons(projectId, { distinctId, limit: 1, offset: 0 })
    return ok({ distinctId, person: results[0] ?? null })
  }
  const person = await findPersonById(persons, projectId, personId)
  const first = person?.distinctIds[0]?.distinctId
  return first === undefined ? err(noSuchPerson) : ok({ distinctId: first, person })
}
