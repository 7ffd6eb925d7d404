// The answers of `/decide` and `/flags`, joined from texts that are prepared once per flag and outcome.
// Source: docs/wire/service.md §2.2; docs/wire/evaluation.md 2.

import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { EvaluationTrace, TracedSet } from '#core/flags/evaluation/evaluation-trace.ts'
import type { MaybeSteps, Steps } from '#core/maybe-steps.ts'
import type { Project } from '#core/project.ts'
import type { PageHeaders } from '#core/recording-domains.ts'
import { chooseConfigMembers, clientConfigOf } from '../browser/client-config.ts'
import type { AnswerShape, DecideEndpoint } from './decide-query.ts'
import { buildFlagDetail, buildFlagRecord, describeReason, prepareFlagJson, reasonCodeOf } from './flag-texts.ts'
import { flagsPerStep, PreparedTexts } from './prepared-texts.ts'

export interface AnswerOptions {
  readonly shape: AnswerShape
  readonly endpoint: DecideEndpoint
  readonly withConfig: boolean
  /** A canonical UUID. */
  readonly requestId: string
  /** Epoch ms. */
  readonly evaluatedAtMs: number
  /** Headers of the page that asks, since some configuration is only for certain pages; absent for other callers. */
  readonly page?: PageHeaders
  /** Whether the project's quota of recordings is used up; when absent, it is not. */
  readonly isOverRecordingQuota?: (project: Project) => boolean
}

/** The answer to a completed evaluation. */
export function encodeEvaluation(evaluation: FlagEvaluation, options: AnswerOptions): MaybeSteps<string> {
  if (evaluation.trace !== null || evaluation.outcomes.length > flagsPerStep) return encodeInSteps(evaluation, options)
  return assembleEvaluated(encodeFlagsPart(evaluation, options.shape), evaluation, options)
}

function* encodeInSteps(evaluation: FlagEvaluation, options: AnswerOptions): Steps<string> {
  const { trace } = evaluation
  if (trace !== null && hasDetails(options.shape)) {
    const entryOf = options.shape === 'V2' ? buildFlagDetail : buildFlagRecord
    const entries = yield* encodeFlagsWithConditions(evaluation, trace, entryOf)
    return assembleEvaluated(`"flags":{${entries}}`, evaluation, options)
  }
  yield* (options.shape === 'V3' ? records : texts).prepareAll(evaluation)
  // Joining texts that are already prepared takes a tenth of the time of making them, so it needs no steps.
  return assembleEvaluated(encodeFlagsPart(evaluation, options.shape), evaluation, options)
}

function assembleEvaluated(flags: string, evaluation: FlagEvaluation, options: AnswerOptions): string {
  return assembleAnswer(flags, evaluation.hasErrors, evaluation.project, false, options)
}

/**
 * The answer without flags: the caller disabled them, or the project's quota of flag requests is used up.
 * Source: docs/wire/evaluation.md 2.8.
 */
export function encodeWithoutFlags(
  project: CompiledProject,
  reason: 'disabled' | 'quota_limited',
  options: AnswerOptions,
): string {
  return assembleAnswer(emptyFlags[options.shape], false, project, reason === 'quota_limited', options)
}

/** The fixed answer to a GET: names no flag and no project. Source: docs/wire/evaluation.md 2.6. */
export function encodeMinimalAnswer(options: Omit<AnswerOptions, 'withConfig' | 'page'>): string {
  return (
    `{${configStart}"errorsWhileComputingFlags":false,"isAuthenticated":false,` +
    `${supportedCompression[options.endpoint]}${emptyFlags[options.shape]},"sessionRecording":false,${encodeTail(options)}}`
  )
}

const configStart = '"config":{"enable_collect_everything":true},"toolbarParams":{},'
const supportedCompression: Record<DecideEndpoint, string> = {
  decide: '"supportedCompression":["gzip","gzip-js","lz64"],',
  flags: '"supportedCompression":["gzip","gzip-js"],',
}

const editorParams: Record<DecideEndpoint, string> = { decide: '"editorParams":{},', flags: '' }

const emptyFlags: Record<AnswerShape, string> = {
  V1: '"featureFlags":{},"featureFlagPayloads":{}',
  V2: '"flags":{}',
  V3: '"flags":{}',
  D1: '"featureFlags":[]',
  D2: '"featureFlags":{}',
}

function assembleAnswer(
  flags: string,
  hasErrors: boolean,
  project: CompiledProject,
  isOverFlagQuota: boolean,
  options: AnswerOptions,
): string {
  const { shape, endpoint, withConfig, page = noPage } = options
  const config = clientConfigOf(project, options.isOverRecordingQuota)
  const saysErrors = shape === 'V1' || hasDetails(shape)
  const errors = !saysErrors
    ? ''
    : hasErrors
      ? '"errorsWhileComputingFlags":true,'
      : '"errorsWhileComputingFlags":false,'
  const minimal = hasDetails(shape) && config.minimalFlagCalledEvents ? '"minimalFlagCalledEvents":true,' : ''
  if (!withConfig)
    return `{${errors}${flags},${minimal}${encodeQuotaLimited(isOverFlagQuota, false)}${encodeTail(options)}}`
  const persistence = endpoint === 'decide' ? config.flagsPersistenceDefault : null
  return (
    `{${configStart}${errors}"isAuthenticated":false,${supportedCompression[endpoint]}${flags},${minimal}` +
    `${encodeQuotaLimited(isOverFlagQuota, config.isOverRecordingQuota)}${encodeTail(options)},` +
    `"hasFeatureFlags":${project.flags.length > 0},${editorParams[endpoint]}` +
    `${persistence === null ? '' : `"flagsPersistenceDefault":${persistence},`}${chooseConfigMembers(config, page)}}`
  )
}

function hasDetails(shape: AnswerShape): boolean {
  return shape === 'V2' || shape === 'V3'
}

const noPage: PageHeaders = {}

/** The field `quotaLimited`; left out when no quota is used up. Source: docs/wire/clients.md 1, rule 11. */
function encodeQuotaLimited(isOverFlagQuota: boolean, isOverRecordingQuota: boolean): string {
  if (isOverFlagQuota) {
    return isOverRecordingQuota ? '"quotaLimited":["feature_flags","recordings"],' : '"quotaLimited":["feature_flags"],'
  }
  return isOverRecordingQuota ? '"quotaLimited":["recordings"],' : ''
}

function encodeTail({ requestId, evaluatedAtMs }: Pick<AnswerOptions, 'requestId' | 'evaluatedAtMs'>): string {
  return `"requestId":"${requestId}","evaluatedAt":${evaluatedAtMs}`
}

function encodeFlagsPart(evaluation: FlagEvaluation, shape: AnswerShape): string {
  switch (shape) {
    case 'V1':
      return encodeValuesAndPayloads(evaluation)
    case 'V2':
      return `"flags":{${joinFragments(texts, evaluation, ({ detail }) => detail)}}`
    case 'V3':
      return `"flags":{${joinFragments(records, evaluation, record => record)}}`
    case 'D1':
      return `"featureFlags":[${joinFragments(texts, evaluation, ({ enabledKey }) => enabledKey)}]`
    case 'D2':
      return `"featureFlags":{${joinFragments(texts, evaluation, ({ enabledValue }) => enabledValue)}}`
    default:
      return shape satisfies never
  }
}

/** The texts of shape V3, prepared apart from the other texts, since most projects never need them. */
const records = new PreparedTexts(
  (flag, outcome) => `,${JSON.stringify(flag.key)}:${JSON.stringify(buildFlagRecord(flag, outcome))}`,
  text => text.length,
)
const texts = new PreparedTexts(
  prepareFlagJson,
  ({ value, payload, detail }) => value.length + payload.length + detail.length,
)

function encodeValuesAndPayloads(evaluation: FlagEvaluation): string {
  let values = ''
  let payloads = ''
  for (const { value, payload } of texts.of(evaluation)) {
    values += value
    payloads += payload
  }
  // Drop the comma with which each text starts.
  return `"featureFlags":{${values.slice(1)}},"featureFlagPayloads":{${payloads.slice(1)}}`
}

function joinFragments<T extends NonNullable<unknown>>(
  prepared: PreparedTexts<T>,
  evaluation: FlagEvaluation,
  textOf: (texts: T) => string,
): string {
  let text = ''
  for (const texts of prepared.of(evaluation)) text += textOf(texts)
  return text.slice(1)
}

/** Maximum number of conditions shown for a flag, so that a public answer stays small for any definition. */
const conditionCountMax = 100

interface ConditionDetail {
  readonly condition_index: number
  readonly matched: boolean
  /** Null for a condition set that was not reached or in which the evaluation failed. */
  readonly reason: { readonly code: string; readonly description: string } | null
}

/** How many flags and conditions are encoded without a break. */
const detailsPerStep = 256

/**
 * Encodes the members of `flags`, each with its `conditions`, for a request with `detailed_analysis`: the result of every
 * condition set, in the order of the definition. Any holder of the public project key may ask, so the answer shows the
 * codes of a flag's `reason` but no filters and properties; those are in the private API's explanation. A flag of version 2
 * has no conditions: it has rules. Source: ours, docs/wire/evaluation.md 2.3.
 * @param entryOf returns a flag's entry without `conditions`.
 */
function* encodeFlagsWithConditions(
  { project, outcomes }: FlagEvaluation,
  trace: EvaluationTrace,
  entryOf: typeof buildFlagDetail | typeof buildFlagRecord,
): Generator<undefined, string> {
  let text = ''
  let detailCount = 0
  for (const [position, outcome] of outcomes.entries()) {
    const flag = project.flags[position]
    if (outcome === undefined || flag === undefined) continue
    const traced = trace.of(flag)?.sets ?? []
    const conditions = flag.sets.slice(0, conditionCountMax).map((_set, index) => encodeCondition(index, traced[index]))
    const entry = entryOf(flag, outcome)
    text += `,${JSON.stringify(flag.key)}:${JSON.stringify(flag.rules === null ? { ...entry, conditions } : entry)}`
    detailCount += 1 + conditions.length
    if (detailCount < detailsPerStep) continue
    detailCount = 0
    yield
  }
  return text.slice(1)
}

function encodeCondition(index: number, set: TracedSet | undefined): ConditionDetail {
  if (set === undefined || set.missed === undefined) return { condition_index: index, matched: false, reason: null }
  const reason = set.missed ?? 'condition_match'
  const description = describeReason({ reason, conditionIndex: index })
  return { condition_index: index, matched: set.missed === null, reason: { code: reasonCodeOf(reason), description } }
}
