// The answers to OFREP requests, joined from texts that are prepared once per flag and outcome.
// Source: docs/wire/ofrep.md 3.

import type { Flag } from '#core/flags/definitions/flag.ts'
import type { CompiledFlag } from '#core/flags/evaluation/compile-flag.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import { type FlagOutcome, flagValueOf } from '#core/flags/evaluation/flag-outcome.ts'
import type { PreparedOutcome } from '#core/flags/evaluation/prepared-outcomes.ts'
import { type JsonValue, toComparableText } from '#core/json.ts'
import { type MaybeSteps, runAllSteps } from '#core/maybe-steps.ts'
import { err, ok, type Result } from '#core/result.ts'
import { describeReason, reasonCodeOf } from './flag-texts.ts'
import { createFlagNotComputedError, encodeOfrepError, type OfrepError, ofrepErrors } from './ofrep-errors.ts'
import { type CachedTexts, cachePreparedText } from './prepared-texts.ts'

export type OfrepReason = 'STATIC' | 'TARGETING_MATCH' | 'SPLIT' | 'DEFAULT' | 'DISABLED' | 'UNKNOWN'

/** The runtime that the request asked for; in this file it selects among flags that are not evaluated. */
export type RequestedRuntime = string | null

/** One flag of a project, with the texts of its answers. */
type Entry =
  | { readonly kind: 'evaluated'; readonly flag: CompiledFlag; readonly position: number; readonly texts: Texts }
  | FixedEntry

/**
 * The answer of a flag that is inactive or cannot be evaluated, the same for all subjects; null before the first request.
 */
interface FixedEntry {
  readonly kind: 'fixed'
  readonly flag: Flag
  answer: OfrepAnswer | null
}

type OfrepAnswer = Result<string, OfrepError>
type Texts = CachedTexts<OfrepAnswer>

/**
 * The answer about one flag.
 * @returns err(flagNotFound) for a flag that does not exist or is not for this runtime; err of status 500 for a flag
 *   that could not be computed.
 */
export function encodeOfrepAnswer(evaluation: FlagEvaluation, flagKey: string, runtime: RequestedRuntime): OfrepAnswer {
  const entry = getEntries(evaluation.project).get(flagKey)
  return (entry && buildAnswer(entry, evaluation, runtime)) ?? err(ofrepErrors.flagNotFound)
}

/**
 * The answer about all flags, by ascending id. It is never an error: a flag that could not be computed has its own
 * error in the list.
 * @param eventStreams from `encodeEventStreams`; '' for none.
 */
export function encodeOfrepBulkAnswer(
  evaluation: FlagEvaluation,
  runtime: RequestedRuntime,
  eventStreams: string,
): MaybeSteps<OfrepAnswer> {
  const steps = encodeInSteps(evaluation, runtime, eventStreams)
  return evaluation.project.definitions.flags.length > flagsPerStep ? steps : runAllSteps(steps)
}

/** How many flags one step encodes: making a text takes up to 10 µs, using a prepared one a tenth of that. */
const flagsPerStep = 128

function* encodeInSteps(
  evaluation: FlagEvaluation,
  runtime: RequestedRuntime,
  eventStreams: string,
): Generator<undefined, OfrepAnswer> {
  let flags = ''
  let flagCount = 0
  for (const [flagKey, entry] of getEntries(evaluation.project)) {
    const answer = buildAnswer(entry, evaluation, runtime)
    if (answer === undefined) continue
    if (flags !== '') flags += ','
    flags += answer.ok ? answer.value : encodeOfrepError(answer.error, flagKey)
    if (++flagCount % flagsPerStep === 0) yield
  }
  return ok(`{"flags":[${flags}]${eventStreams}}`)
}

/** Undefined for a flag that is not in the answer. */
function buildAnswer(entry: Entry, { outcomes }: FlagEvaluation, runtime: RequestedRuntime): OfrepAnswer | undefined {
  if (entry.kind === 'fixed') {
    if (!isForRuntime(entry.flag, runtime)) return undefined
    entry.answer ??= ok(encodeDisabled(entry.flag))
    return entry.answer
  }
  const outcome = outcomes[entry.position]
  if (outcome === undefined) return undefined
  const known = entry.texts[outcome.slot]
  if (known !== undefined) return known
  const made = encodeOutcome(entry.flag, outcome)
  return cachePreparedText(entry.texts, outcome, made, made.ok ? made.value.length : 0)
}

/** Whether the flag is for the runtime, by the rule of `selectFlags` for evaluated flags. */
function isForRuntime({ evaluationRuntime }: Flag, runtime: RequestedRuntime): boolean {
  const isLimited = evaluationRuntime === 'client' || evaluationRuntime === 'server'
  return !isLimited || runtime === 'all' || runtime === evaluationRuntime
}

/** Texts live as long as their compiled flag, which survives changes of other flags. */
const textsOfFlag = new WeakMap<CompiledFlag, Texts>()
const entryOfInactive = new WeakMap<Flag, FixedEntry>()
/** Entries live as long as the compiled definitions of their project. */
const entriesOfProject = new WeakMap<CompiledProject, ReadonlyMap<string, Entry>>()

function getEntries(project: CompiledProject): ReadonlyMap<string, Entry> {
  const known = entriesOfProject.get(project)
  if (known !== undefined) return known
  const entries = new Map<string, Entry>()
  for (const flag of project.definitions.flags) {
    // Flags with encrypted payloads are not evaluated, so they are not shown here.
    if (flag.deleted || flag.hasEncryptedPayloads) continue
    entries.set(flag.key, getEntry(flag, project))
  }
  entriesOfProject.set(project, entries)
  return entries
}

function getEntry(flag: Flag, project: CompiledProject): Entry {
  if (!flag.active) {
    const known = entryOfInactive.get(flag) ?? { kind: 'fixed', flag, answer: null }
    entryOfInactive.set(flag, known)
    return known
  }
  const position = project.positionOfKey.get(flag.key)
  if (position === undefined) return { kind: 'fixed', flag, answer: beyondEvaluation }
  const compiled = project.flags[position]!
  const texts = textsOfFlag.get(compiled) ?? []
  textsOfFlag.set(compiled, texts)
  return { kind: 'evaluated', flag: compiled, position, texts }
}

const beyondEvaluation = err(
  createFlagNotComputedError('The flag definition is invalid, or the flag depends on itself through other flags.'),
)

function encodeDisabled({ id, key, version }: Flag): string {
  return encodeSuccess({ key, value: false, reason: 'DISABLED', variant: 'false', metadata: { id, version } })
}

function encodeOutcome(flag: CompiledFlag, outcome: PreparedOutcome): OfrepAnswer {
  const value = flagValueOf(outcome)
  if (outcome.kind === 'unknown' || value === undefined)
    return err(createFlagNotComputedError(`${describeReason(outcome)}.`))
  const { typed, payload } = outcome
  const metadata = { id: flag.id, version: flag.version, reason: reasonCodeOf(outcome.reason) }
  const answer = { key: flag.key, reason: toOfrepReason(flag, outcome), variant: String(value) }
  if (typed === undefined) {
    return ok(
      encodeSuccess({ ...answer, value, metadata: typeof payload === 'string' ? { ...metadata, payload } : metadata }),
    )
  }
  return ok(
    encodeSuccess({
      ...answer,
      ...(typed.value === null ? {} : { value: typed.value }),
      variant: typed.variantKey ?? toComparableText(typed.value),
      metadata: { ...metadata, config_version: 2 },
    }),
  )
}

interface Success {
  readonly key: string
  /** Absent when the flag has no value: the client then uses the caller's default. */
  readonly value?: JsonValue
  readonly reason: OfrepReason
  /** Always present, because typed providers read it unconditionally. */
  readonly variant: string
  /** Flat: providers drop values that are not text, numbers or booleans. */
  readonly metadata: Readonly<Record<string, string | number>>
}

function encodeSuccess({ key, value, reason, variant, metadata }: Success): string {
  return JSON.stringify({ key, value, reason, variant, metadata })
}

/** The reason of the value, in the protocol's words. Source: docs/wire/ofrep.md 3.2. */
export function toOfrepReason(flag: CompiledFlag, outcome: FlagOutcome): OfrepReason {
  switch (outcome.reason) {
    case 'condition_match':
      return findMatchReason(flag, outcome)
    case 'out_of_rollout_bound':
    case 'holdout_condition_value':
      return 'SPLIT'
    case 'no_group_type':
      return flag.sets.length === 0 ? 'STATIC' : 'TARGETING_MATCH'
    case 'experiment_split':
      return 'SPLIT'
    case 'experiment_paused':
    case 'holdout':
    case 'rollout_miss':
    case 'no_rule_match':
      return 'DEFAULT'
    case 'targeting_match':
    case 'super_condition_value':
    case 'no_condition_match':
    case 'no_condition_match_groups_not_sent':
    case 'no_condition_match_behavioral_cohort':
      return 'TARGETING_MATCH'
    default:
      return 'UNKNOWN'
  }
}

function findMatchReason(flag: CompiledFlag, { kind, conditionIndex }: FlagOutcome): OfrepReason {
  const set = flag.sets[conditionIndex ?? 0]
  if (set === undefined) return 'UNKNOWN'
  const isVariantHashed = kind === 'variant' && set.variantIndex < 0
  if (set.rolloutPercentage !== null || isVariantHashed) return 'SPLIT'
  const isForEverybody =
    conditionIndex === 0 &&
    set.tests.length === 0 &&
    set.cohortTests.length === 0 &&
    set.groupTypeIndex === null &&
    flag.enrollmentKey === null &&
    flag.holdoutPercentage === null
  return isForEverybody ? 'STATIC' : 'TARGETING_MATCH'
}
