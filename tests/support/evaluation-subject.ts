// Subjects of evaluations that a test writes down.

import {
  type EvaluationSubject,
  noGroupRows,
  noHashKeyOverrides,
  noStaticCohorts,
} from '#core/flags/evaluation/evaluation-subject.ts'
import type { FlagSelection } from '#core/flags/evaluation/select-flags.ts'
import { ok } from '#core/result.ts'

export const allFlags: FlagSelection = {
  flagKeys: null,
  contexts: [],
  runtime: { declared: null, userAgent: '', hasBrowserHeader: false },
  surveyFlagsOnly: false,
}

/** A subject of whom nothing is stored, in a request that sent nothing. */
export function aSubject(over: Partial<EvaluationSubject> = {}): EvaluationSubject {
  return {
    distinctId: 'user-1',
    anonDistinctId: null,
    deviceId: null,
    groups: {},
    personProperties: {},
    groupProperties: {},
    geoip: null,
    person: ok(null),
    groupRows: noGroupRows,
    hashKeyOverrides: noHashKeyOverrides,
    staticCohortIds: noStaticCohorts,
    nowMs: Date.parse('2026-01-15T12:00:00Z'),
    ...over,
  }
}
