// The query of an evaluation request: the shape of the answer, whether it carries the configuration, and switches.
// Source: docs/wire/evaluation.md 1.2, 2.1.

import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '../wire-error.ts'
import { decideErrors } from './decide-errors.ts'

/** `decide` also stands for `/flags` behind a proxy that sends `X-Original-Endpoint: decide`. */
export type DecideEndpoint = 'decide' | 'flags'

/**
 * D1: a list of keys; D2: enabled flags; V1: values and payloads; V2: details; V3: details with typed values.
 * Source: docs/wire/evaluation.md 2.3, 2.4, 2.9.
 */
export type AnswerShape = 'D1' | 'D2' | 'V1' | 'V2' | 'V3'

export interface DecideQuery {
  readonly shape: AnswerShape
  readonly withConfig: boolean
  /** Lower case; '' when absent. */
  readonly compression: string
  readonly surveyFlagsOnly: boolean
  /** Ignores stored properties of the person, but not of groups. */
  readonly onlyUseOverridePersonProperties: boolean
  /** Each flag of V2 and V3 shows the result of its condition sets, and nothing is written. */
  readonly detailedAnalysis: boolean
}

/** As Fastify parses it: a repeated parameter is a list. */
export type RawDecideQuery = { readonly [name: string]: string | readonly string[] | undefined }

const integerForm = /^[+-]?\d+$/

/** @returns err when `sent_at` or `_` is not an integer. Other parameters are never wrong; unknown ones are ignored. */
export function parseDecideQuery(query: RawDecideQuery, endpoint: DecideEndpoint): Result<DecideQuery, WireError> {
  if (!isIntegerOrAbsent(query.sent_at) || !isIntegerOrAbsent(query._)) return err(decideErrors.invalidQuery)
  const version = parseVersion([...toValues(query.v), ...toValues(query.version)], endpoint)
  const config = parseBoolean(query.config)
  const modern = endpoint === 'flags' && version === null && config === null
  return ok({
    shape: modern ? 'V2' : chooseShape(version, endpoint),
    withConfig: config ?? (modern || endpoint === 'decide'),
    compression: (toValues(query.compression)[0] ?? '').toLowerCase(),
    surveyFlagsOnly: parseBoolean(query.only_evaluate_survey_feature_flags) ?? false,
    onlyUseOverridePersonProperties: parseBoolean(query.only_use_override_person_properties) ?? false,
    detailedAnalysis: parseBoolean(query.detailed_analysis) ?? false,
  })
}

/** The shape of the fixed answer to a GET, V1 unless the query names another. Source: docs/wire/evaluation.md 2.6. */
export function chooseMinimalShape(query: RawDecideQuery, endpoint: DecideEndpoint): AnswerShape {
  const version = parseVersion([...toValues(query.v), ...toValues(query.version)], endpoint)
  return version === null ? 'V1' : chooseShape(version, endpoint)
}

/** The first integer value; null when there is no value at all. posthog-js 1.19.0 sends `v=2&v=1.19.0`. */
function parseVersion(values: readonly string[], endpoint: DecideEndpoint): number | null {
  const given = values.filter(value => value !== '')
  if (given.length === 0) return null
  const integer = given.find(value => integerForm.test(value))
  if (integer !== undefined) return Number(integer)
  return endpoint === 'decide' ? 2 : 1
}

function chooseShape(version: number | null, endpoint: DecideEndpoint): AnswerShape {
  if (endpoint === 'flags') return version === null || version < 2 ? 'V1' : version === 2 ? 'V2' : 'V3'
  if (version === null || version <= 1) return 'D1'
  if (version === 2) return 'D2'
  return version === 3 ? 'V1' : 'V2'
}

function toValues(value: string | readonly string[] | undefined): readonly string[] {
  return value === undefined ? [] : typeof value === 'string' ? [value] : value
}

/** Null when absent; `?config` and `?config=maybe` mean true. */
function parseBoolean(value: string | readonly string[] | undefined): boolean | null {
  const text = toValues(value)[0]
  if (text === undefined) return null
  return !['false', '0', 'no', 'off'].includes(text.toLowerCase())
}

function isIntegerOrAbsent(value: string | readonly string[] | undefined): boolean {
  return toValues(value).every(text => text === '' || integerForm.test(text))
}
