// Turns the JSON body of an evaluation request into a typed request; no later code checks types again.
// Source: docs/wire/service.md §2.1; docs/wire/evaluation.md 1.4, 1.5.

import { cookielessSentinel } from '#core/cookieless/visitor-hash.ts'
import type { EvaluationRequest } from '#core/flags/evaluation/evaluation-request.ts'
import { isJsonObject, isRawNumber, type JsonObject, type JsonValue, toComparableText } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '../wire-error.ts'
import { decideErrors } from './decide-errors.ts'
import type { DecideEndpoint, DecideQuery } from './decide-query.ts'

export interface DecideContext {
  readonly endpoint: DecideEndpoint
  readonly query: DecideQuery
  readonly userAgent: string
  /** Whether the request has a header that only browsers send. */
  readonly hasBrowserHeader: boolean
  /** From `findGeoipAddress` of client-address.ts. */
  readonly address: string
}

/** Deeper nesting is refused: the text form of a value is computed recursively. */
const depthMax = 128
const distinctIdBytesMax = 200
const distinctIdCharsMax = 200

/**
 * Unknown fields are ignored, null means absent, and an empty list means an empty map (PHP writes one as `[]`).
 * @returns err(invalidJson) for a wrong type in a known field, err(missingApiKey) without a key. A missing distinct id
 *   is null: whether that is an error depends on the project.
 */
export function parseDecideRequest(body: JsonValue, context: DecideContext): Result<EvaluationRequest, WireError> {
  if (!isJsonObject(body)) return err(decideErrors.invalidJson)
  try {
    const request = readRequest(body, context)
    return request.apiKey === '' ? err(decideErrors.missingApiKey) : ok(request)
  } catch (error) {
    if (error === wrongType) return err(decideErrors.invalidJson)
    throw error
  }
}

/** Thrown by the readers below and caught above. A single shared object, because bad bodies come in floods. */
const wrongType = new Error('wrong JSON type')

function readRequest(body: JsonObject, context: DecideContext): EvaluationRequest {
  const { query, endpoint } = context
  const personProperties = readMap(body.person_properties ?? body.$properties)
  const timezone = readText(body.timezone)
  const extra = readText(body.cookieless_hash_extra) ?? ''
  readText(body.ip_address)
  const distinctId = readDistinctId(body.distinct_id ?? body.$distinct_id, endpoint)
  const anonDistinctId =
    readAnonId(body.$anon_distinct_id ?? body.anon_distinct_id, endpoint) ??
    textOrNull(personProperties.$anon_distinct_id)
  return {
    apiKey: readText(body.token ?? body.api_key ?? body.$token) ?? '',
    distinctId,
    anonDistinctId: anonDistinctId === cookielessSentinel ? null : anonDistinctId,
    deviceId: (readText(body.$device_id ?? body.device_id) || textOrNull(personProperties.$device_id)) ?? null,
    groups: readMap(body.groups ?? body.$groups),
    personProperties,
    groupProperties: readGroupProperties(body.group_properties ?? body.$group_properties),
    selection: {
      flagKeys: readTextList(body.flag_keys_to_evaluate ?? body.flag_keys),
      contexts: readTextList(body.evaluation_contexts ?? body.evaluation_environments) ?? [],
      runtime: {
        declared: readText(body.evaluation_runtime),
        userAgent: context.userAgent,
        hasBrowserHeader: context.hasBrowserHeader,
      },
      surveyFlagsOnly: query.surveyFlagsOnly,
    },
    disableFlags: readBoolean(body.disable_flags),
    onlyUseOverridePersonProperties: query.onlyUseOverridePersonProperties,
    detailedAnalysis: query.detailedAnalysis,
    geoipAddress: readBoolean(body.geoip_disable) || readBoolean(body.disable_geoip) ? '' : context.address,
    cookieless: distinctId === cookielessSentinel ? { timezone, extra } : null,
  }
}

/**
 * Text as it is, a number as its text; on `/decide` any other value as its compact JSON text.
 * Source: docs/wire/evaluation.md 1.5.
 */
function readDistinctId(value: JsonValue | undefined, endpoint: DecideEndpoint): string | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'string') return shortenId(value)
  if (typeof value === 'number' || isRawNumber(value)) return shortenId(toComparableText(value))
  if (endpoint === 'flags' || exceedsDepth(value, depthMax)) throw wrongType
  return shortenId(toComparableText(value))
}

/** Truncates text of more than 200 bytes to 200 characters, so 150 characters of two bytes stay whole. */
function shortenId(id: string): string {
  if (id.length * 3 <= distinctIdBytesMax || Buffer.byteLength(id, 'utf8') <= distinctIdBytesMax) return id
  if (id.length <= distinctIdCharsMax) return id
  // Twice as many UTF-16 units always contain enough characters, even if all of these are surrogate pairs.
  return Array.from(id.slice(0, 2 * distinctIdCharsMax))
    .slice(0, distinctIdCharsMax)
    .join('')
}

/** `/decide` also accepts a number, as its text; `/flags` does not. Empty text is not an id. */
function readAnonId(value: JsonValue | undefined, endpoint: DecideEndpoint): string | null {
  if (endpoint === 'decide' && value !== undefined && (typeof value === 'number' || isRawNumber(value))) {
    return toComparableText(value)
  }
  return readText(value) || null
}

function textOrNull(value: JsonValue | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function readText(value: JsonValue | undefined): string | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'string') throw wrongType
  return value
}

function readBoolean(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw wrongType
  return value
}

function readTextList(value: JsonValue | undefined): string[] | null {
  if (value === undefined || value === null) return null
  if (!Array.isArray(value) || !value.every(entry => typeof entry === 'string')) throw wrongType
  return value
}

function readMap(value: JsonValue | undefined): JsonObject {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return {}
  if (!isJsonObject(value) || exceedsDepth(value, depthMax)) throw wrongType
  return value
}

function readGroupProperties(value: JsonValue | undefined): JsonObject {
  const ofTypes = readMap(value)
  for (const typeName of Object.keys(ofTypes)) {
    const properties = ofTypes[typeName]!
    // Replaces the value of an own key. Under `__proto__`, an assignment would replace the prototype instead.
    if (!isJsonObject(properties)) Object.defineProperty(ofTypes, typeName, { value: readMap(properties) })
  }
  return ofTypes
}

function exceedsDepth(value: JsonValue, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (depth === 0) return true
  if (Array.isArray(value)) return value.some(entry => exceedsDepth(entry, depth - 1))
  for (const key in value) {
    const inner = (value as JsonObject)[key]!
    if (typeof inner === 'object' && exceedsDepth(inner, depth - 1)) return true
  }
  return false
}
