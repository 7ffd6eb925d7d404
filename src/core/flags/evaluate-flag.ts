// One flag for one subject: dependency, enrolment, holdout, then its sets in stored order; the first match wins, and
// without one the most telling reason does. Source: docs/wire/evaluation.md 5.2–5.7.

import type { CohortTest } from './compile-filter.ts'
import type { CompiledFlag, CompiledSet } from './compile-flag.ts'
import type { SubjectReader } from './evaluation-subject.ts'
import type { DecidedOutcomes } from './filter-test.ts'
import type { PreparedOutcome, SetOffReason } from './prepared-outcomes.ts'
import { flagHash01, holdoutHash01, isInRollout, pickVariant } from './rollout.ts'

/** Ranks of the reasons that sets compete with; the higher wins, the later among equals. Source: docs/wire/evaluation.md 5.5. */
const rankOf: Record<SetOffReason, number> = {
  no_group_type: 1,
  no_condition_match: 2,
  no_condition_match_groups_not_sent: 2,
  no_condition_match_behavioral_cohort: 2,
  out_of_rollout_bound: 3,
}

/** Its dependencies must have been decided. */
export function evaluateFlag(flag: CompiledFlag, reader: SubjectReader, decided: DecidedOutcomes): PreparedOutcome {
  reader.failure = null
  const outcome = decideEarly(flag, reader) ?? decideBySets(flag, reader, decided)
  return reader.failure === null ? outcome : flag.outcomes.unknown(reader.failure)
}

/** Enrolment and holdout, which come before every set. */
function decideEarly(flag: CompiledFlag, reader: SubjectReader): PreparedOutcome | null {
  if (flag.enrollmentKey !== null) {
    const enrollment = reader.personValue(flag.enrollmentKey)
    if (enrollment !== undefined) return flag.outcomes.enrollment(enrollment === true || enrollment === 'true')
  }
  if (flag.holdoutPercentage !== null && isHeldOut(flag, flag.holdoutPercentage, reader)) return flag.outcomes.holdout()
  return null
}

function isHeldOut(flag: CompiledFlag, percentage: number, reader: SubjectReader): boolean {
  return percentage >= 100 || isInRollout(holdoutHash01(holdoutId(flag, reader)), percentage)
}

/** As for a set at the flag's own level, but override rows play no part and a missing device id falls back. */
function holdoutId(flag: CompiledFlag, reader: SubjectReader): string {
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

function decideBySets(flag: CompiledFlag, reader: SubjectReader, decided: DecidedOutcomes): PreparedOutcome {
  let bestReason: SetOffReason = 'no_group_type'
  let bestIndex = -1
  let groupsSkipped = false
  for (let index = 0; index < flag.sets.length; index++) {
    const set = flag.sets[index]!
    const missed = missReason(flag, set, reader, decided)
    if (reader.failure !== null) return flag.outcomes.unknown(reader.failure)
    if (missed === null) return flag.outcomes.match(index, variantOf(flag, set, reader))
    if (missed === 'out_of_rollout_bound' && flag.earlyExit && !lacksDeviceId(flag, set, reader)) {
      return flag.outcomes.noMatch(missed, index)
    }
    if (missed === 'no_group_type') groupsSkipped = true
    if (rankOf[missed] >= rankOf[bestReason]) {
      bestReason = missed
      bestIndex = index
    }
  }
  if (bestReason === 'no_condition_match' && groupsSkipped) bestReason = 'no_condition_match_groups_not_sent'
  return flag.outcomes.noMatch(bestReason, bestIndex)
}

/** Why a set does not match, or null when it does. Source: docs/wire/evaluation.md 5.4. */
function missReason(
  flag: CompiledFlag,
  set: CompiledSet,
  reader: SubjectReader,
  decided: DecidedOutcomes,
): SetOffReason | null {
  if (lacksDeviceId(flag, set, reader)) return 'out_of_rollout_bound'
  if (set.groupTypeIndex !== null && reader.groupKey(set.groupTypeIndex) === '') return 'no_group_type'
  const { tests } = set
  for (let index = 0; index < tests.length; index++) {
    if (!tests[index]!(reader, decided)) return 'no_condition_match'
    if (reader.failure !== null) return null
  }
  if (set.cohortTests.length > 0) {
    const missed = missedCohort(set.cohortTests, reader, decided)
    if (missed !== null) return missed
  }
  if (set.rolloutPercentage === null) return null
  const hash01 = flagHash01(flag.key, bucketingId(flag, set, reader), '')
  return isInRollout(hash01, set.rolloutPercentage) ? null : 'out_of_rollout_bound'
}

function lacksDeviceId(flag: CompiledFlag, set: CompiledSet, reader: SubjectReader): boolean {
  return flag.bucketing === 'device_id' && set.groupTypeIndex === null && reader.subject.deviceId === null
}

/** Every cohort is resolved before any is asked, so that an unknown one fails the flag wherever it stands. */
function missedCohort(
  cohortTests: readonly CohortTest[],
  reader: SubjectReader,
  decided: DecidedOutcomes,
): SetOffReason | null {
  for (const { cohort } of cohortTests) {
    if (cohort.ok) continue
    reader.failure = cohort.error
    return null
  }
  for (const { cohort, wanted } of cohortTests) {
    if (!cohort.ok) continue
    if (wanted === null) return 'no_condition_match'
    if (cohort.value.isMember(reader, decided) !== wanted) {
      return cohort.value.isApproximated ? 'no_condition_match_behavioral_cohort' : 'no_condition_match'
    }
    if (reader.failure !== null) return null
  }
  return null
}

function variantOf(flag: CompiledFlag, set: CompiledSet, reader: SubjectReader): number {
  if (set.variantIndex >= 0) return set.variantIndex
  if (flag.variantBounds.length === 0) return -1
  return pickVariant(flagHash01(flag.key, bucketingId(flag, set, reader), 'variant'), flag.variantBounds)
}

/** The id that is hashed for a set's rollout and its variant. Source: docs/wire/evaluation.md 5.3. */
function bucketingId(flag: CompiledFlag, set: CompiledSet, reader: SubjectReader): string {
  const { subject } = reader
  if (set.groupTypeIndex !== null) return reader.groupKey(set.groupTypeIndex)
  switch (flag.bucketing) {
    case 'distinct_id':
      return subject.distinctId
    case 'device_id':
      return subject.deviceId ?? ''
    case 'continuity': {
      const overrides = subject.hashKeyOverrides
      if (!overrides.ok) reader.failure = overrides.error
      const stored = overrides.ok ? overrides.value.get(flag.key) : undefined
      return stored ?? subject.anonDistinctId ?? subject.distinctId
    }
    default:
      return flag.bucketing satisfies never
  }
}
