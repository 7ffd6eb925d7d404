// Explains why a flag has its value for one subject: takes a request body like that of /flags and answers with every step
// of the evaluation.

import Type from 'typebox'
import type { EvaluationRequest } from '#core/flags/evaluation/evaluation-request.ts'
import type { JsonObject } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import { evaluateForExplanation } from '#services/flags/explain-flag.ts'
import type { SubjectRequest } from '#services/flags/load-subject.ts'
import { parseDecideRequest } from '#wire/flags/decide-request.ts'
import { encodeExplanation } from '#wire/management/flags/explanation.ts'
import { explanationSchema } from '#wire/management/flags/explanation-shapes.ts'
import { nullable } from '#wire/management/shapes.ts'
import type { WireError } from '#wire/wire-error.ts'
import { answer, createInvalidError, createRequiredError, refusal, stateUnavailable } from '../kit/answers.ts'
import { hasScope } from '../kit/authenticate.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import type { ManagementRoute } from '../kit/endpoint.ts'
import { flagRoutes } from '../kit/flag-endpoint.ts'
import { readInstant } from '../kit/instants.ts'

const optionalUnknown = (description?: string) =>
  Type.Optional(Type.Unknown(description === undefined ? {} : { description }))

/** Only names the fields: the parser of /flags reads them and knows all their forms. */
const explainSchema = Type.Object({
  distinct_id: optionalUnknown('Required.'),
  person_properties: optionalUnknown('Override stored properties, key by key.'),
  groups: optionalUnknown('Group keys by group type.'),
  group_properties: optionalUnknown('Group properties by group type.'),
  $device_id: optionalUnknown(),
  $anon_distinct_id: optionalUnknown(),
  evaluation_runtime: optionalUnknown('`client` or `server`. If omitted, flags of both runtimes are explained.'),
  evaluation_contexts: optionalUnknown(),
  only_use_override_person_properties: Type.Optional(nullable(Type.Boolean())),
  ip: Type.Optional(
    nullable(
      Type.String({ maxLength: 100, description: 'IP address to look up the location of. If omitted: no location.' }),
    ),
  ),
  at: Type.Optional(
    nullable(
      Type.String({
        maxLength: 100,
        description:
          'Evaluation time: 2026-01-31T12:00:00Z, a date, or a span such as -7d. Default: now. Properties are always the current ones.',
      }),
    ),
  ),
  // Older and alternative names of these fields, and other fields that SDKs send.
  $distinct_id: optionalUnknown(),
  $properties: optionalUnknown(),
  $groups: optionalUnknown(),
  device_id: optionalUnknown(),
  anon_distinct_id: optionalUnknown(),
  evaluation_environments: optionalUnknown(),
  flag_keys: optionalUnknown(),
  flag_keys_to_evaluate: optionalUnknown(),
  token: optionalUnknown(),
  api_key: optionalUnknown(),
  timezone: optionalUnknown(),
  geoip_disable: optionalUnknown(),
})

export function explainFlagRoutes(deps: ManagementDeps): ManagementRoute[] {
  return flagRoutes(deps, {
    route: 'POST /feature_flags/:flagId/explain',
    id: 'feature_flags_explain',
    summary: 'Explain the value of the flag for one person, step by step. Nothing is stored.',
    scope: 'feature_flag:read',
    // The value alone tells something about a stored person.
    scopeOfPersons: 'feature_flag:read person:read',
    body: explainSchema,
    success: { status: 200, schema: explanationSchema },
    handle: async ({ caller, project, item: flag, body }) => {
      const served = deps.servedProject(project.id)
      if (served === null) return refusal(stateUnavailable)
      const request = readSubjectRequest(body as JsonObject, project.apiToken)
      if (!request.ok) return refusal(request.error)
      const nowMs = deps.clock.nowMs()
      const zone = { timezone: project.timezone, nowMs }
      const at = typeof body.at === 'string' ? readInstant(body.at, 'at', zone) : ok(nowMs)
      if (!at.ok) return refusal(at.error)
      const explained = await evaluateForExplanation(deps.decide, served, flag, request.value, at.value)
      const view = {
        showsPersons: hasScope(caller, 'person:read'),
        showsGroups: hasScope(caller, 'group:read'),
        showsCohorts: hasScope(caller, 'cohort:read'),
      }
      return answer(200, encodeExplanation(explained, view))
    },
  })
}

/** Uses the parser of /flags, so that the explanation is of the request as an SDK would send it. */
export function readSubjectRequest(body: JsonObject, apiKey: string): Result<SubjectRequest, WireError> {
  const { ip, only_use_override_person_properties: onlyOverrides } = body
  const parsed = parseDecideRequest(
    { ...body, token: apiKey, evaluation_runtime: body.evaluation_runtime ?? 'all' },
    {
      endpoint: 'flags',
      query: {
        shape: 'V2',
        withConfig: false,
        compression: '',
        surveyFlagsOnly: false,
        onlyUseOverridePersonProperties: onlyOverrides === true,
        detailedAnalysis: true,
      },
      userAgent: '',
      hasBrowserHeader: false,
      address: typeof ip === 'string' ? ip : '',
    },
  )
  if (!parsed.ok) return err(createInvalidError(null, 'One of the fields has a type that /flags does not accept.'))
  return hasDistinctId(parsed.value) ? ok(parsed.value) : err(createRequiredError('distinct_id'))
}

function hasDistinctId(request: EvaluationRequest): request is SubjectRequest {
  return request.distinctId !== null
}
