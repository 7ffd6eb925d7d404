// Evaluates one flag for one subject: enrolment, holdout, then its sets in stored order. The first set that matches
// wins; if none does, the most telling reason wins. When the time is up, it stops within the flag and resumes there.
// A flag of version 2 has rules instead: `evaluate-rules.ts`.
// Source: docs/wire/evaluation.md 5.2–5.7.

import { computeFlagHash01, computeHoldoutHash01, isInRollout, pickVariant } from '#core/flags/rollout/rollout.ts'
import { doAllTestsMatch, isTimeUpAfterTest } from './all-tests-match.ts'
import type { CompiledFlag, CompiledSet } from './compile-flag.ts'
import { evaluateRules } from './evaluate-rules.ts'
import type { SubjectReader } from './evaluation-subject.ts'
import type { BucketedBy } from './evaluation-trace.ts'
import type { DecidedOutcomes } from './filter-test.ts'
import { outOfTime } from './out-of-time.ts'
import type { PreparedOutcome, SetOffReason } from './prepared-outcomes.ts'

/** Ranks of the sets' reasons. The highest wins, the latest among equals. Source: docs/wire/evaluation.md 5.5. */
const rankOf: Record<SetOffReason, number> = {
  no_group_type: 1,
  no_condition_match: 2,
  no_condition_match_groups_not_sent: 2,
  no_condition_match_behavioral_cohort: 2,
  out_of_rollout_bound: 3,
}

/**
 * Evaluates a flag whose dependencies are decided.
 * @returns null when the time is up: call again with the same reader, which knows where to resume.
 */
export function evaluateFlag(
  flag: CompiledFlag,
  reader: SubjectReader,
  decided: DecidedOutcomes,
): PreparedOutcome | null {
  reader.failure = null
  if (reader.trace !== null) reader.trace.beginFlag(flag)
  const outcome =
    flag.rules === null ? decideByFilters(flag, reader, decided) : evaluateRules(flag.rules, reader, decided)
  if (reader.failure === null) return outcome
  if (reader.failure === outOfTime) return null
  if (reader.trace !== null) reader.trace.flagFailed()
  return flag.outcomes.unknown(reader.failure)
}

function decideByFilters(flag: CompiledFlag, reader: SubjectReader, decided: DecidedOutcomes): PreparedOutcome | null {
  const early = reader.pausedAt === null ? decideEarly(flag, reader) : null
  return early ?? decideBySets(flag, reader, decided)
}

/** Decides by enrolment and holdout, which come before every set. */
function decideEarly(flag: CompiledFlag, reader: SubjectReader): PreparedOutcome | null {
  if (flag.enrollmentKey !== null) {
    const enrollment = reader.personValue(flag.enrollmentKey)
    if (reader.trace !== null) reader.trace.enrollmentRead(enrollment)
    if (enrollment !== undefined) return flag.outcomes.enrollment(enrollment === true || enrollment === 'true')
  }
  if (flag.holdoutPercentage !== null && isHeldOut(flag, flag.holdoutPercentage, reader)) return flag.outcomes.holdout()
  return null
}

function isHeldOut(flag: CompiledFlag, percentage: number, reader: SubjectReader): boolean {
  const identifier = chooseHoldoutId(flag, reader)
  const hash01 = percentage >= 100 ? null : computeHoldoutHash01(identifier)
  const isHit = hash01 === null || isInRollout(hash01, percentage)
  if (reader.trace !== null) reader.trace.holdoutAsked(identifier, hash01, isHit)
  return isHit
}

/**
 * The id to hash for a holdout. It is chosen like the id for a set at the flag's own level, but override rows are ignored
 * and a missing device id falls back to the distinct id.
 */
function chooseHoldoutId(flag: CompiledFlag, reader: SubjectReader): string {
  const { subject } = reader
  if (flag.groupTypeIndex !== null) return reader.groupKey(flag.groupTypeIndex)
  switch (flag.bucketing) {
    case 'distinct_id':
      return subject.distinctId
    case 'device_id':
      return subject.deviceId ?? subject.distinctId
    case 'continuity':
      return subject.anonDistinctId ?? subject.distinctId
    default:
      return flag.bucketing satisfies never
  }
}

/** Tries the sets in order. @returns null when it cannot decide; `reader.failure` says why. */
function decideBySets(flag: CompiledFlag, reader: SubjectReader, decided: DecidedOutcomes): PreparedOutcome | null {
  let setIndex = 0
  let testIndex = 0
  let bestReason: SetOffReason = 'no_group_type'
  let bestIndex = -1
  let groupsSkipped = false
  if (reader.pausedAt !== null) {
    ;({ setIndex, testIndex, bestReason, bestIndex, groupsSkipped } = reader.pausedAt)
    reader.pausedAt = null
  }
  for (let index = setIndex; index < flag.sets.length; index++) {
    const set = flag.sets[index]!
    if (reader.trace !== null) reader.trace.beginSet(index)
    const missed = findMissReason(flag, set, reader, decided, testIndex)
    if (reader.failure !== null) {
      if (reader.failure === outOfTime) {
        reader.pausedAt = { setIndex: index, testIndex: reader.pausedTestIndex, bestReason, bestIndex, groupsSkipped }
      }
      return null
    }
    testIndex = 0
    if (reader.trace !== null) reader.trace.setAnswered(missed)
    if (missed === null) return flag.outcomes.match(index, chooseVariantIndex(flag, set, reader))
    if (missed === 'out_of_rollout_bound' && flag.earlyExit && !lacksDeviceId(flag, set, reader)) {
      return flag.outcomes.noMatch(missed, index)
    }
    if (missed === 'no_group_type') groupsSkipped = true
    if (rankOf[missed] >= rankOf[bestReason]) {
      bestReason = missed
      bestIndex = index
    }
    if (isTimeUpAfterTest(index, flag.sets.length, reader)) {
      reader.pausedAt = { setIndex: index + 1, testIndex: 0, bestReason, bestIndex, groupsSkipped }
      reader.failure = outOfTime
      return null
    }
  }
  if (bestReason === 'no_condition_match' && groupsSkipped) bestReason = 'no_condition_match_groups_not_sent'
  return flag.outcomes.noMatch(bestReason, bestIndex)
}

/** Why a set does not match, or null when it does. Source: docs/wire/evaluation.md 5.4. */
function findMissReason(
  flag: CompiledFlag,
  set: CompiledSet,
  reader: SubjectReader,
  decided: DecidedOutcomes,
  fromTest: number,
): SetOffReason | null {
  if (lacksDeviceId(flag, set, reader)) return 'out_of_rollout_bound'
  if (set.groupTypeIndex !== null && reader.groupKey(set.groupTypeIndex) === '') return 'no_group_type'
  const { tests } = set
  if (!doAllTestsMatch(tests, fromTest, reader, decided)) return reader.failure === null ? 'no_condition_match' : null
  if (set.cohortTests.length > 0) {
    const missed = findCohortMissReason(set, reader, decided, Math.max(0, fromTest - tests.length))
    if (missed !== null || reader.failure !== null) return missed
  }
  if (set.rolloutPercentage === null) return null
  const hash01 = computeFlagHash01(flag.key, resolveBucketingId(flag, set, reader), '')
  if (reader.trace !== null) reader.trace.rolledOut(hash01)
  return isInRollout(hash01, set.rolloutPercentage) ? null : 'out_of_rollout_bound'
}

function lacksDeviceId(flag: CompiledFlag, set: CompiledSet, reader: SubjectReader): boolean {
  return flag.bucketing === 'device_id' && set.groupTypeIndex === null && reader.subject.deviceId === null
}

/** Checks that every cohort is known before testing any: an unknown cohort fails the flag at any position. */
function findCohortMissReason(
  { tests, cohortTests }: CompiledSet,
  reader: SubjectReader,
  decided: DecidedOutcomes,
  fromCohort: number,
): SetOffReason | null {
  if (fromCohort === 0) {
    for (const [index, { cohort }] of cohortTests.entries()) {
      if (cohort.ok) continue
      reader.failure = cohort.error
      if (reader.trace !== null) reader.trace.testAnswered(tests.length + index, false, cohort.error)
      return null
    }
  }
  for (let index = fromCohort; index < cohortTests.length; index++) {
    const { cohort, wanted } = cohortTests[index]!
    if (!cohort.ok) continue // reported above
    if (wanted === null) {
      if (reader.trace !== null) reader.trace.testAnswered(tests.length + index, false, null)
      return 'no_condition_match'
    }
    const isMember = cohort.value.isMember(reader, decided)
    if (reader.trace !== null) reader.trace.testAnswered(tests.length + index, isMember === wanted, reader.failure)
    if (reader.failure !== null) {
      reader.pausedTestIndex = tests.length + index
      return null
    }
    if (isMember !== wanted) {
      return cohort.value.isApproximated ? 'no_condition_match_behavioral_cohort' : 'no_condition_match'
    }
    if (isTimeUpAfterTest(index, cohortTests.length, reader)) {
      reader.pausedTestIndex = tests.length + index + 1
      reader.failure = outOfTime
      return null
    }
  }
  return null
}

function chooseVariantIndex(flag: CompiledFlag, set: CompiledSet, reader: SubjectReader): number {
  if (set.variantIndex >= 0) return set.variantIndex
  if (flag.variantBounds.length === 0) return -1
  const hash01 = computeFlagHash01(flag.key, resolveBucketingId(flag, set, reader), 'variant')
  if (reader.trace !== null) reader.trace.variantHashed(hash01)
  return pickVariant(hash01, flag.variantBounds)
}

/** The id to hash for a set's rollout and its variant. Source: docs/wire/evaluation.md 5.3. */
function resolveBucketingId(flag: CompiledFlag, set: CompiledSet, reader: SubjectReader): string {
  const { subject } = reader
  if (set.groupTypeIndex !== null) return traceBucketing('group_key', reader.groupKey(set.groupTypeIndex), reader)
  switch (flag.bucketing) {
    case 'distinct_id':
      return traceBucketing('distinct_id', subject.distinctId, reader)
    case 'device_id':
      return traceBucketing('device_id', subject.deviceId ?? '', reader)
    case 'continuity': {
      const { rows, failure } = subject.hashKeyOverrides
      const stored = rows.get(flag.key)
      if (stored === undefined && failure !== null) reader.failure = failure
      if (stored !== undefined) return traceBucketing('stored_override', stored, reader)
      const { anonDistinctId, distinctId } = subject
      return anonDistinctId === null
        ? traceBucketing('distinct_id', distinctId, reader)
        : traceBucketing('anon_distinct_id', anonDistinctId, reader)
    }
    default:
      return flag.bucketing satisfies never
  }
}

function traceBucketing(by: BucketedBy, identifier: string, { trace }: SubjectReader): string {
  if (trace !== null) trace.bucketed(by, identifier)
  return identifier
}
