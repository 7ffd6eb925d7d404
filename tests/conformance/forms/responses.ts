// `response_vectors`: a request and the whole body of its answer, with or without the configuration beside the flags.
// `response_flags` are the definitions that `flags: "common"` stands for.

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
import { type Instances, jsonOf } from '../instance.ts'
import { createFlags, type FlagDefinition, useUpQuotas } from '../state.ts'
import type { VectorCase } from '../vector-case.ts'

interface ResponseVector extends Fields {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** "common" = `response_flags`. */
  readonly flags: 'common' | readonly FlagDefinition[]
  readonly team?: Fields
  readonly request: Fields
  readonly expect: { readonly status: number; readonly body: Fields; readonly config_keys: string }
}

const anyTime = '2026-01-15T12:00:00Z'

/** Source: docs/wire/evaluation.md 2.5. `quotaLimited` is none of them: the vectors name it in their bodies. */
const configKeys = [
  ...['supportedCompression', 'config', 'toolbarParams', 'editorParams', 'isAuthenticated', 'hasFeatureFlags'],
  ...['sessionRecording', 'surveys', 'survey_config', 'heatmaps', 'capturePerformance', 'autocaptureExceptions'],
  ...['autocapture_opt_out', 'captureDeadClicks', 'analytics', 'elementsChainAsString', 'errorTracking'],
  ...['defaultIdentifiedOnly', 'siteApps', 'flagsPersistenceDefault', 'logs', 'productTours', 'conversations'],
  'chat_opt_in',
]
/** Those that no answer with the configuration goes without. Source: docs/wire/service.md §2.2. */
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
  assertKnownVectorFields(vector, ['method', 'path', 'headers', 'flags', 'team', 'request', 'expect'])
  assertKnownFields(vector.expect, 'expect', ['status', 'body', 'config_keys'])
  const { team = {} } = vector
  assertKnownFields(team, 'team', ['feature_flags_quota_exceeded'])
  const token = vector.request.token ?? vector.request.api_key ?? vector.request.$token
  const needs = {
    projectKey: typeof token === 'string' ? token : projectKey,
    nowMs: Date.parse(anyTime),
    worker: false,
  }
  return instances.with(needs, async instance => {
    await createFlags(instance, vector.flags === 'common' ? commonFlags : vector.flags)
    if (team.feature_flags_quota_exceeded === true) await useUpQuotas(instance, ['feature_flag_requests'])
    const answer = await instance.send({
      method: vector.method,
      path: vector.path,
      headers: { 'content-type': 'application/json', ...vector.headers },
      body: JSON.stringify(vector.request),
    })
    const body = jsonOf(answer.text)
    if (!isObject(body)) return [unequal('body', vector.expect.body, answer.text)]
    return [
      ...exactDifferences(vector.expect.status, answer.status, 'status'),
      ...compareConfig(vector.expect.config_keys, body),
      ...exactDifferences(vector.expect.body, comparable(vector.expect.body, body), 'body'),
    ]
  })
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
