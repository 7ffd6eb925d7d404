// `response_vectors`: a request and the whole body of its answer, with or without the configuration besides the flags.
// `flags: "common"` refers to the definitions in `response_flags`.

import {
  assertKnownFields,
  assertKnownVectorFields,
  CannotRun,
  exactDifferences,
  type Fields,
  isObject,
  presentDifferences,
  unequal,
} from '../compare.ts'
import { type Answer, type Exchange, jsonOf } from '../exchange.ts'
import type { Instances } from '../instance.ts'
import { createFlags, type FlagDefinition, useUpQuotas } from '../state.ts'
import { anyTime, type VectorCase } from '../vector-case.ts'

export interface ResponseVector extends Fields {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** "common" = `response_flags`. */
  readonly flags: 'common' | readonly FlagDefinition[]
  readonly team?: Fields
  readonly request: Fields
  readonly expect: ExpectedResponse & Fields
}

/** Source: docs/wire/evaluation.md 2.5. Without `quotaLimited`, which the vectors have in their bodies. */
const configKeys = [
  ...['supportedCompression', 'config', 'toolbarParams', 'editorParams', 'isAuthenticated', 'hasFeatureFlags'],
  ...['sessionRecording', 'surveys', 'survey_config', 'heatmaps', 'capturePerformance', 'autocaptureExceptions'],
  ...['autocapture_opt_out', 'captureDeadClicks', 'analytics', 'elementsChainAsString', 'errorTracking'],
  ...['defaultIdentifiedOnly', 'siteApps', 'flagsPersistenceDefault', 'logs', 'productTours', 'conversations'],
  'chat_opt_in',
]
/** The fields that every answer with the configuration has. Source: docs/wire/service.md §2.2. */
const requiredConfigKeys = ['supportedCompression', 'config', 'toolbarParams', 'isAuthenticated']

export function responseCases(
  vectors: readonly ResponseVector[],
  commonFlags: readonly FlagDefinition[],
  projectKey: string,
): VectorCase[] {
  return vectors.map(vector => ({
    id: vector.id,
    run: instances => runVector(instances, vector, commonFlags, projectKey),
  }))
}

async function runVector(
  instances: Instances,
  vector: ResponseVector,
  commonFlags: readonly FlagDefinition[],
  projectKey: string,
): Promise<string[]> {
  assertKnownResponseVector(vector)
  const token = vector.request.token ?? vector.request.api_key ?? vector.request.$token
  const needs = {
    projectKey: typeof token === 'string' ? token : projectKey,
    nowMs: Date.parse(anyTime),
    worker: false,
  }
  return instances.with(needs, async instance => {
    await createFlags(instance, vector.flags === 'common' ? commonFlags : vector.flags)
    if (vector.team?.feature_flags_quota_exceeded === true) await useUpQuotas(instance, ['feature_flag_requests'])
    return responseDifferences(vector.expect, await instance.send(responseExchange(vector)))
  })
}

/** @throws CannotRun for a field that the form does not have. Fields of flags are checked by their readers. */
export function assertKnownResponseVector(vector: ResponseVector): void {
  assertKnownVectorFields(vector, ['method', 'path', 'headers', 'flags', 'team', 'request', 'expect'])
  assertKnownFields(vector.expect, 'expect', ['status', 'body', 'config_keys'])
  assertKnownFields(vector.team ?? {}, 'team', ['feature_flags_quota_exceeded'])
}

export function responseExchange({ method, path, headers, request }: ResponseVector): Exchange {
  return {
    ...{ method, path, headers: { 'content-type': 'application/json', ...headers } },
    body: JSON.stringify(request),
  }
}

export interface ExpectedResponse {
  readonly status: number
  readonly body: Fields
  readonly config_keys: string
}

export function responseDifferences(expected: ExpectedResponse, answer: Pick<Answer, 'status' | 'text'>): string[] {
  const body = jsonOf(answer.text)
  if (!isObject(body)) return [unequal('body', expected.body, answer.text)]
  return [
    ...exactDifferences(expected.status, answer.status, 'status'),
    ...compareConfig(expected.config_keys, body),
    ...exactDifferences(expected.body, comparable(expected.body, body), 'body'),
  ]
}

function compareConfig(rule: string, body: Fields): string[] {
  switch (rule) {
    case 'absent':
      return presentDifferences(configKeys, body, 'config')
    case 'merged at the top level':
      return requiredConfigKeys.filter(key => !Object.hasOwn(body, key)).map(key => `config.${key}: is absent`)
    default:
      throw new CannotRun(`there is no rule of config_keys "${rule}"`)
  }
}

/** The answer without its configuration, and without `has_experiment`, which expected bodies leave out. */
function comparable(expected: Fields, body: Fields): Fields {
  const rest = Object.fromEntries(
    Object.entries(body).filter(([key]) => !configKeys.includes(key) || Object.hasOwn(expected, key)),
  )
  if (!isObject(rest.flags)) return rest
  const flags = Object.entries(rest.flags).map(([key, detail]) => {
    if (!isObject(detail) || !isObject(detail.metadata)) return [key, detail] as const
    const { has_experiment: _leftOut, ...metadata } = detail.metadata
    return [key, { ...detail, metadata }] as const
  })
  return { ...rest, flags: Object.fromEntries(flags) }
}
