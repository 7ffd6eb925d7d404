// Turns an OFREP request into an evaluation request like those of `/flags`: OpenFeature's evaluation context becomes person
// and groups, the way PostHog's own OpenFeature providers map it. Source: docs/wire/ofrep.md 2, 3.

import type { EvaluationRequest } from '#core/flags/evaluation/evaluation-request.ts'
import { detectRequestRuntime } from '#core/flags/evaluation/select-flags.ts'
import { isJsonObject, type JsonObject, setOwnValue } from '#core/json.ts'
import { err, type Result } from '#core/result.ts'
import type { RequestHeaders } from '../address/client-address.ts'
import { decideErrors } from './decide-errors.ts'
import { parseDecideRequest } from './decide-request.ts'
import { decodeFlagsBody, type FlagsBody } from './flags-body.ts'
import { type OfrepError, ofrepBodyBytesMax, ofrepErrors, ofrepValuesMax, toOfrepError } from './ofrep-errors.ts'

export interface OfrepQuestion {
  readonly apiKey: string
  /** Null for all flags. */
  readonly flagKey: string | null
  readonly userAgent: string
  /** From `findGeoipAddress` of client-address.ts. */
  readonly address: string
}

/** The project API key from `Authorization: Bearer` or `X-API-Key`; '' when neither has one. */
export function readOfrepApiKey(headers: RequestHeaders): string {
  const { authorization } = headers
  const bearer = typeof authorization === 'string' ? /^Bearer +(\S+) *$/i.exec(authorization)?.[1] : undefined
  if (bearer !== undefined) return bearer
  const apiKey = headers['x-api-key']
  return typeof apiKey === 'string' ? apiKey.trim() : ''
}

/**
 * Runs on the event loop: `ofrepBodyBytesMax` and `ofrepValuesMax` keep bodies small, also decompressed.
 * @returns a request whose distinct id is null when there is no targeting key: the right error depends on the project.
 */
export function decodeOfrepRequest(
  body: Omit<FlagsBody, 'compression'>,
  question: OfrepQuestion,
): Result<EvaluationRequest, OfrepError> {
  if (body.bytes.length > ofrepBodyBytesMax) return err(ofrepErrors.bodyTooLarge)
  const decoded = decodeFlagsBody({ ...body, compression: '' }, inlineLimits)
  if (!decoded.ok) {
    if (decoded.error === 'decompressed_too_large') return err(ofrepErrors.bodyTooLarge)
    return err(decoded.error === 'too_much_to_parse' ? ofrepErrors.tooManyValues : toOfrepError(decoded.error))
  }
  if (!isJsonObject(decoded.value)) return err(ofrepErrors.notAnObject)
  const { context = {} } = decoded.value as JsonObject
  if (context !== null && !isJsonObject(context)) return err(ofrepErrors.contextNotAnObject)
  const request = parseDecideRequest(toFlagsBody(context ?? {}, question), {
    endpoint: 'flags',
    query: noQuery,
    userAgent: question.userAgent,
    hasBrowserHeader: false,
    address: question.address,
  })
  if (request.ok) return request
  return err(request.error === decideErrors.invalidJson ? ofrepErrors.invalidContext : toOfrepError(request.error))
}

const inlineLimits = { decompressedBytesMax: ofrepBodyBytesMax, valuesMax: ofrepValuesMax }

const noQuery = {
  shape: 'V2',
  withConfig: false,
  surveyFlagsOnly: false,
  onlyUseOverridePersonProperties: false,
  detailedAnalysis: false,
  compression: '',
} as const

/** A context field that is not a property of the person. PostHog's providers write it in camel case or snake case. */
const groupPropertiesNames = ['groupProperties', 'group_properties']

/** Context fields that are also person properties, by their names in events. Each fills a field of the request. */
const cookielessFields: ReadonlyMap<string, string> = new Map([
  ['$timezone', 'timezone'],
  ['$cookieless_extra', 'cookieless_hash_extra'],
])

function toFlagsBody(context: JsonObject, question: OfrepQuestion): JsonObject {
  const personProperties: JsonObject = {}
  const body: JsonObject = {
    token: question.apiKey,
    person_properties: personProperties,
    evaluation_runtime: detectRuntime(question),
  }
  if (question.flagKey !== null) body.flag_keys_to_evaluate = [question.flagKey]
  for (const name of Object.keys(context)) {
    const value = context[name]!
    if (name === 'targetingKey') body.distinct_id = value === '' ? null : value
    else if (name === 'groups' && isJsonObject(value)) body.groups = value
    else if (groupPropertiesNames.includes(name) && isJsonObject(value)) body.group_properties = value
    else if (name === '$geoip_disable' && typeof value === 'boolean') body.geoip_disable = value
    else setOwnValue(personProperties, name, value)
    const cookielessField = cookielessFields.get(name)
    if (cookielessField !== undefined && typeof value === 'string') body[cookielessField] = value
  }
  return body
}

/**
 * Guesses the runtime when the user agent does not tell it: OpenFeature's servers ask for one flag at a time, with the
 * current user; apps and pages ask for all flags once. Browser headers prove nothing, since Node's fetch sends them too.
 */
function detectRuntime({ flagKey, userAgent }: OfrepQuestion): 'client' | 'server' | 'all' {
  const runtime = detectRequestRuntime({ declared: null, userAgent, hasBrowserHeader: false })
  if (runtime !== 'unknown') return runtime
  return flagKey === null ? 'client' : 'server'
}
