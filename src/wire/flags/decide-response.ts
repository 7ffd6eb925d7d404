// The answers of `/decide` and `/flags`, joined from texts that are prepared once per flag and outcome.
// Source: docs/wire/service.md §2.2; docs/wire/evaluation.md 2.

import type { CompiledFlag } from '#core/flags/evaluation/compile-flag.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { MaybeSteps, Steps } from '#core/maybe-steps.ts'
import type { Project } from '#core/project.ts'
import type { PageHeaders } from '#core/recording-domains.ts'
import { clientConfigOf, membersFor } from '../browser/client-config.ts'
import type { AnswerShape, DecideEndpoint } from './decide-query.ts'
import { detailsWithConditions } from './flag-conditions.ts'
import { type FlagTexts, prepareFlagTexts } from './flag-texts.ts'

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

/** More flags than this are prepared in steps of this many, because making a text takes up to 10 µs. */
const flagsPerStep = 128

/** The answer to a completed evaluation. */
export function encodeEvaluation(evaluation: FlagEvaluation, options: AnswerOptions): MaybeSteps<string> {
  if (evaluation.trace !== null || evaluation.outcomes.length > flagsPerStep) return encodeInSteps(evaluation, options)
  return assembleEvaluated(flagsPart(evaluation, options.shape), evaluation, options)
}

function* encodeInSteps(evaluation: FlagEvaluation, options: AnswerOptions): Steps<string> {
  const { trace } = evaluation
  if (trace !== null && options.shape === 'V2') {
    const details = yield* detailsWithConditions(evaluation, trace)
    return assembleEvaluated(`"flags":{${details}}`, evaluation, options)
  }
  yield* prepareAll(evaluation)
  // Joining texts that are already prepared takes a tenth of the time.
  return assembleEvaluated(flagsPart(evaluation, options.shape), evaluation, options)
}

function assembleEvaluated(flags: string, evaluation: FlagEvaluation, options: AnswerOptions): string {
  return assemble(flags, evaluation.hasErrors, evaluation.project, false, options)
}

/**
 * The answer without flags: the caller disabled them, or the project's quota of flag requests is used up.
 * Source: docs/wire/evaluation.md 2.8.
 */
export function encodeWithoutFlags(
  project: CompiledProject,
  why: 'disabled' | 'quota_limited',
  options: AnswerOptions,
): string {
  return assemble(emptyFlags[options.shape], false, project, why === 'quota_limited', options)
}

/** The fixed answer to a GET: names no flag and no project. Source: docs/wire/evaluation.md 2.6. */
export function encodeMinimal(options: Omit<AnswerOptions, 'withConfig' | 'page'>): string {
  return (
    `{${configStart}"errorsWhileComputingFlags":false,"isAuthenticated":false,` +
    `${supportedCompression[options.endpoint]}${emptyFlags[options.shape]},"sessionRecording":false,${tail(options)}}`
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
  D1: '"featureFlags":[]',
  D2: '"featureFlags":{}',
}

function assemble(
  flags: string,
  hasErrors: boolean,
  project: CompiledProject,
  isOverFlagQuota: boolean,
  options: AnswerOptions,
): string {
  const { shape, endpoint, withConfig, page = noPage } = options
  const config = clientConfigOf(project, options.isOverRecordingQuota)
  const saysErrors = shape === 'V1' || shape === 'V2'
  const errors = !saysErrors
    ? ''
    : hasErrors
      ? '"errorsWhileComputingFlags":true,'
      : '"errorsWhileComputingFlags":false,'
  const minimal = shape === 'V2' && config.minimalFlagCalledEvents ? '"minimalFlagCalledEvents":true,' : ''
  if (!withConfig) return `{${errors}${flags},${minimal}${quotaLimited(isOverFlagQuota, false)}${tail(options)}}`
  const persistence = endpoint === 'decide' ? config.flagsPersistenceDefault : null
  return (
    `{${configStart}${errors}"isAuthenticated":false,${supportedCompression[endpoint]}${flags},${minimal}` +
    `${quotaLimited(isOverFlagQuota, config.isOverRecordingQuota)}${tail(options)},` +
    `"hasFeatureFlags":${project.flags.length > 0},${editorParams[endpoint]}` +
    `${persistence === null ? '' : `"flagsPersistenceDefault":${persistence},`}${membersFor(config, page)}}`
  )
}

const noPage: PageHeaders = {}

/** The field `quotaLimited`; left out when no quota is used up. Source: docs/wire/clients.md 1, rule 11. */
function quotaLimited(isOverFlagQuota: boolean, isOverRecordingQuota: boolean): string {
  if (isOverFlagQuota) {
    return isOverRecordingQuota ? '"quotaLimited":["feature_flags","recordings"],' : '"quotaLimited":["feature_flags"],'
  }
  return isOverRecordingQuota ? '"quotaLimited":["recordings"],' : ''
}

function tail({ requestId, evaluatedAtMs }: Pick<AnswerOptions, 'requestId' | 'evaluatedAtMs'>): string {
  return `"requestId":"${requestId}","evaluatedAt":${evaluatedAtMs}`
}

function flagsPart(evaluation: FlagEvaluation, shape: AnswerShape): string {
  switch (shape) {
    case 'V1':
      return valuesAndPayloads(evaluation)
    case 'V2':
      return `"flags":{${joined(evaluation, texts => texts.detail)}}`
    case 'D1':
      return `"featureFlags":[${joined(evaluation, texts => texts.enabledKey)}]`
    case 'D2':
      return `"featureFlags":{${joined(evaluation, texts => texts.enabledValue)}}`
    default:
      return shape satisfies never
  }
}

type TextsBySlot = (FlagTexts | undefined)[]

/** Prepared texts of a flag. They live as long as the compiled flag, which survives changes of other flags. */
const textsOfFlag = new WeakMap<CompiledFlag, TextsBySlot>()
/** The same by position, so that an answer needs only one lookup, for the project. */
const textsOfProject = new WeakMap<CompiledProject, TextsBySlot[]>()

function preparedTexts(project: CompiledProject): TextsBySlot[] {
  const known = textsOfProject.get(project)
  if (known !== undefined) return known
  const texts = project.flags.map(flag => {
    if (flag === undefined) return []
    const ofFlag = textsOfFlag.get(flag) ?? []
    textsOfFlag.set(flag, ofFlag)
    return ofFlag
  })
  textsOfProject.set(project, texts)
  return texts
}

function* prepareAll({ project, outcomes }: FlagEvaluation): Generator<undefined, void> {
  const prepared = preparedTexts(project)
  let madeCount = 0
  for (let position = 0; position < outcomes.length; position++) {
    const outcome = outcomes[position]
    if (outcome === undefined) continue
    const ofFlag = prepared[position]!
    if (ofFlag[outcome.slot] !== undefined) continue
    prepare(ofFlag, project.flags[position]!, outcome)
    if (++madeCount % flagsPerStep === 0) yield
  }
}

function valuesAndPayloads({ project, outcomes }: FlagEvaluation): string {
  const prepared = preparedTexts(project)
  const { flags } = project
  let values = ''
  let payloads = ''
  for (let position = 0; position < outcomes.length; position++) {
    const outcome = outcomes[position]
    if (outcome === undefined) continue
    const ofFlag = prepared[position]!
    const texts = ofFlag[outcome.slot] ?? prepare(ofFlag, flags[position]!, outcome)
    values += texts.value
    payloads += texts.payload
  }
  // Drop the comma with which each text starts.
  return `"featureFlags":{${values.slice(1)}},"featureFlagPayloads":{${payloads.slice(1)}}`
}

function joined({ project, outcomes }: FlagEvaluation, textOf: (texts: FlagTexts) => string): string {
  const prepared = preparedTexts(project)
  let text = ''
  for (let position = 0; position < outcomes.length; position++) {
    const outcome = outcomes[position]
    if (outcome === undefined) continue
    const ofFlag = prepared[position]!
    text += textOf(ofFlag[outcome.slot] ?? prepare(ofFlag, project.flags[position]!, outcome))
  }
  return text.slice(1)
}

function prepare(
  ofFlag: (FlagTexts | undefined)[],
  flag: CompiledFlag,
  outcome: NonNullable<FlagEvaluation['outcomes'][number]>,
): FlagTexts {
  const texts = prepareFlagTexts(flag, outcome)
  ofFlag[outcome.slot] = texts
  return texts
}
