// Builders of evaluation subjects and requests for tests.

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
import type { SubjectRequest } from '#services/flags/load-subject.ts'

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

/** A request that only names a distinct id. */
export function aSubjectRequest(over: Partial<SubjectRequest> = {}): SubjectRequest {
  return {
    ...{ apiKey: 'phc_test', distinctId: 'user-1', anonDistinctId: null, deviceId: null, selection: allFlags },
    ...{ groups: {}, personProperties: {}, groupProperties: {}, geoipAddress: '', cookieless: null },
    ...{ disableFlags: false, onlyUseOverridePersonProperties: false, detailedAnalysis: false },
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

/** Evaluates all flags in the shortest slices. */
export function evaluateInSlices(
  project: CompiledProject,
  subject: EvaluationSubject,
  selected: readonly boolean[] | null = null,
): { readonly evaluation: FlagEvaluation; readonly sliceCount: number } {
  const evaluation = new FlagEvaluation(project, selected, subject)
  let sliceCount = 1
  while (!evaluation.advance(() => true)) sliceCount++
  return { evaluation, sliceCount }
}
