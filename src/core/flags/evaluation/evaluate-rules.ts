// Evaluates the rules of a flag of version 2 for one subject: the first that decides wins. Only the distinct id is hashed.
// Source: docs/wire/evaluation.md 11.3.

import { computeFlagHash01, computeHoldoutHash01, isInRollout, pickVariant } from '#core/flags/rollout/rollout.ts'
import type { ExperimentRule, PercentageRollout, RuleHoldout } from '../definitions/rules-document.ts'
import { doAllTestsMatch, isTimeUpAfterTest } from './all-tests-match.ts'
import type { CompiledRule, CompiledRules } from './compile-rules.ts'
import type { SubjectReader } from './evaluation-subject.ts'
import type { DecidedOutcomes } from './filter-test.ts'
import { ruleFailures } from './flag-outcome.ts'
import { createPausedProgress } from './flag-progress.ts'
import { outOfTime } from './out-of-time.ts'
import type { PreparedOutcome } from './prepared-outcomes.ts'

/** @returns null when it cannot decide; `reader.failure` says why. */
export function evaluateRules(
  { rules, otherwise }: CompiledRules,
  reader: SubjectReader,
  decided: DecidedOutcomes,
): PreparedOutcome | null {
  let fromTest = reader.pausedAt?.testIndex ?? 0
  const first = reader.pausedAt?.setIndex ?? 0
  reader.pausedAt = null
  for (let index = first; index < rules.length; index++) {
    const rule = rules[index]!
    if (reader.trace !== null) reader.trace.beginSet(index)
    if (doAllTestsMatch(rule.tests, fromTest, reader, decided)) {
      const outcome = decideByRule(rule, reader)
      if (reader.trace !== null) reader.trace.ruleAnswered(outcome ?? rule.missed)
      if (outcome !== null) return outcome
    } else if (reader.failure === null) {
      if (reader.trace !== null) reader.trace.setAnswered('no_condition_match')
    } else {
      if (reader.failure === outOfTime) reader.pausedAt = createPausedProgress(index, reader.pausedTestIndex)
      // Every other failure means that the stored person could not be read.
      else if (!(ruleFailures as readonly string[]).includes(reader.failure)) reader.failure = 'missing_properties'
      return null
    }
    fromTest = 0
    if (isTimeUpAfterTest(index, rules.length, reader)) {
      reader.pausedAt = createPausedProgress(index + 1, 0)
      reader.failure = outOfTime
      return null
    }
  }
  return otherwise
}

/** The outcome that a rule gives a subject that it targets; null to continue with the next rule. */
function decideByRule(compiled: CompiledRule, reader: SubjectReader): PreparedOutcome | null {
  const { rule, values, variantBounds } = compiled
  if (rule.type === 'targeted_release') return values[0]!
  if (rule.type === 'experiment') {
    if (rule.paused) return compiled.paused
    if (rule.holdout !== null && isHeldOut(rule.holdout, reader)) return compiled.heldOut
  }
  if (!isInRuleRollout(rule, reader)) return rule.continuesOnMiss ? null : compiled.missed
  if (rule.type === 'percentage_rollout') return values[0]!
  const { distinctId } = reader.subject
  const hash01 = computeFlagHash01(rule.seed, distinctId, 'variant')
  if (reader.trace !== null) {
    reader.trace.bucketed('distinct_id', distinctId)
    reader.trace.variantHashed(hash01)
  }
  const picked = pickVariant(hash01, variantBounds)
  // A hash past all bounds gets the last variant, even one of weight 0.
  return values[picked < 0 ? values.length - 1 : picked]!
}

function isHeldOut({ seed, exclusionPercentage }: RuleHoldout, { subject, trace }: SubjectReader): boolean {
  const { distinctId } = subject
  if (distinctId === '') return false
  const hash01 = computeHoldoutHash01(distinctId, seed)
  const isHit = isInRollout(hash01, exclusionPercentage)
  if (trace !== null) trace.holdoutAsked(distinctId, hash01, isHit)
  return isHit
}

/** An empty id is in no rollout; in version 1 it is in every rollout. */
function isInRuleRollout(
  { seed, rolloutPercentage }: PercentageRollout | ExperimentRule,
  { subject, trace }: SubjectReader,
): boolean {
  const { distinctId } = subject
  if (distinctId === '') return false
  if (rolloutPercentage === 100) return true
  const hash01 = computeFlagHash01(seed, distinctId, '')
  if (trace !== null) {
    trace.bucketed('distinct_id', distinctId)
    trace.rolledOut(hash01)
  }
  return isInRollout(hash01, rolloutPercentage)
}
