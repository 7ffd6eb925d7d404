// Builders of evaluation subjects for tests.

import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import {
  type EvaluationSubject,
  noGroupRows,
  noHashKeyOverrides,
  noStaticCohorts,
} from '#core/flags/evaluation/evaluation-subject.ts'
import { type FlagSelection, selectFlags } from '#core/flags/evaluation/select-flags.ts'
import { ok } from '#core/result.ts'

export const allFlags: FlagSelection = {
  flagKeys: null,
  contexts: [],
  runtime: { declared: null, userAgent: '', hasBrowserHeader: false },
  surveyFlagsOnly: false,
}

/** A subject without stored data, from a request without properties. */
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

/** Evaluates all flags of a selection at once. */
export function evaluateFlags(
  project: CompiledProject,
  selection: FlagSelection,
  subject: EvaluationSubject,
): FlagEvaluation {
  const evaluation = new FlagEvaluation(project, selectFlags(project, selection), subject)
  evaluation.advance(() => false)
  return evaluation
}
