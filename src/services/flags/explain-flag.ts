// Explains why a flag has its value for one subject. It runs the evaluation of /flags, with the same loading and the
// same evaluator, as if the flag were active, and records every step in a trace. Nothing is written, counted or
// limited.

import type { Flag } from '#core/flags/definitions/flag.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import { EvaluationTrace } from '#core/flags/evaluation/evaluation-trace.ts'
import {
  buildProjectToExplain,
  type ExplainedFlag,
  type LeftOutReason,
  type ProjectToExplain,
} from '#core/flags/evaluation/explained-flag.ts'
import { needsGroupRow, needsStoredPerson } from '#core/flags/evaluation/flag-needs.ts'
import { findNeedsOfSelectedFlags, selectFlags } from '#core/flags/evaluation/select-flags.ts'
import type { DecideService } from './decide.ts'
import type { SubjectRequest } from './load-subject.ts'

/**
 * @param served the project's compiled definitions.
 * @param request its flag keys are ignored; its runtime and contexts decide whether the flag would be answered.
 * @param nowMs epoch ms, in the past or the future too: relative dates count back from it.
 */
export async function evaluateForExplanation(
  decide: Pick<DecideService, 'traceEvaluation'>,
  served: CompiledProject,
  flag: Flag,
  request: SubjectRequest,
  nowMs: number,
): Promise<ExplainedFlag> {
  const explained = buildProjectToExplain(served, flag)
  const { project, position } = explained
  const answered = selectFlags(project, { ...request.selection, flagKeys: null })
  const isFilteredOut = answered !== null && position >= 0 && !answered[position]
  // A dependency that is filtered out counts as false; the flag itself is explained even when it is filtered out.
  const selected = isFilteredOut ? answered.map((takesPart, at) => takesPart || at === position) : answered
  const trace = new EvaluationTrace()
  const readOnly: SubjectRequest = { ...request, detailedAnalysis: true }
  const traced = await decide.traceEvaluation(project, selected, readOnly, nowMs, trace)
  return {
    ...explained,
    ...traced,
    ...findReads(project, selected, traced.subject, request),
    stored: flag,
    leftOut: findLeftOutReason(flag, explained, isFilteredOut),
    trace,
    request,
  }
}

function findLeftOutReason(flag: Flag, explained: ProjectToExplain, isFilteredOut: boolean): LeftOutReason | null {
  if (flag.deleted) return 'deleted'
  if (!flag.active) return 'inactive'
  if (flag.hasEncryptedPayloads) return 'encrypted_payloads'
  if (explained.flag === undefined) return 'unreadable'
  if (!explained.project.order.includes(explained.position)) return 'dependency_cycle'
  return isFilteredOut ? 'filtered_out' : null
}

function findReads(
  project: CompiledProject,
  selected: readonly boolean[] | null,
  subject: EvaluationSubject,
  request: SubjectRequest,
): Pick<ExplainedFlag, 'readsPerson' | 'groupTypesRead'> {
  const needs = findNeedsOfSelectedFlags(project, selected)
  return {
    readsPerson: !request.onlyUseOverridePersonProperties && needsStoredPerson(needs, subject),
    groupTypesRead: [...needs.groupKeys.keys()].filter(typeIndex => {
      const name = project.groupTypeNames[typeIndex]
      return name !== undefined && subject.groupRows.has(typeIndex) && needsGroupRow(needs, typeIndex, name, subject)
    }),
  }
}
