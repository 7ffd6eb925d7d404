// The expected outcome of a flag of version 2, in all places that show it: evaluations, explanations, probes.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import type { FlagOutcome } from '#core/flags/evaluation/flag-outcome.ts'
import { createSubjectOfPerson, type FlagProbe, type ProbedPerson } from '#core/flags/evaluation/flag-probe.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { evaluateForExplanation } from '#services/flags/explain-flag.ts'
import { describeReason, reasonCodeOf } from '#wire/flags/flag-texts.ts'
import { encodeExplanation } from '#wire/management/flags/explanation.ts'
import type { ExplanationJson } from '#wire/management/flags/explanation-shapes.ts'
import { aSubjectRequest } from '../support/evaluation-subject.ts'

export interface RuleOutcome {
  readonly reason: string
  /** The rule that decided; null for none. */
  readonly index: number | null
  /** Undefined when the flag fails. */
  readonly value?: JsonValue
  /** Of a linked experiment. */
  readonly variantKey: string | null
}

/** Where a text lies on the unit line, by an independent implementation. Source: docs/wire/evaluation.md 5.3, 11.3. */
export function unitLine(text: string): number {
  return Number(BigInt(`0x${createHash('sha1').update(text).digest('hex').slice(0, 15)}`)) / 2 ** 60
}

export function assertOutcome(outcome: FlagOutcome, expected: RuleOutcome): void {
  assert.deepEqual([outcome.reason, outcome.conditionIndex], [expected.reason, expected.index])
  if (outcome.kind === 'unknown') assert.equal(expected.value, undefined)
  else assert.deepEqual(outcome.typed, { value: expected.value, variantKey: expected.variantKey })
}

/** The explanation of a flag of the project, with all that it shows. */
export async function explained(
  project: CompiledProject,
  subject: EvaluationSubject,
  flagId: number,
): Promise<ExplanationJson> {
  const decide: Parameters<typeof evaluateForExplanation>[0] = {
    traceEvaluation(traced, selected, _request, _nowMs, trace) {
      const evaluation = new FlagEvaluation(traced, selected, subject, trace)
      evaluation.advance(() => false)
      return { evaluation, subject }
    },
  }
  const stored = project.definitions.flags.find(({ id }) => id === flagId)!
  const explanation = await evaluateForExplanation(decide, project, stored, aSubjectRequest(subject), subject.nowMs)
  return encodeExplanation(explanation, { showsPersons: true, showsGroups: true, showsCohorts: true })
}

export function assertExplained({ value, failed, reason }: ExplanationJson, expected: RuleOutcome): void {
  const reasonOf = { reason: expected.reason as FlagOutcome['reason'], conditionIndex: expected.index }
  const told = { code: reasonCodeOf(reasonOf.reason), condition_index: expected.index }
  assert.deepEqual(
    { value, failed, reason },
    {
      value: expected.value ?? null,
      failed: expected.value === undefined,
      reason: { ...told, description: describeReason(reasonOf) },
    },
  )
}

/** A person as scans read it, with one id. */
export function storedPerson(distinctId: string, properties: JsonObject): ProbedPerson {
  const person = { propertiesJson: JSON.stringify(properties), createdAtMs: 0, distinctIds: [{ distinctId }] }
  return { ...person, flagOverrides: [], staticCohortIds: [] }
}

export function probedOutcome(probe: FlagProbe, person: ProbedPerson, nowMs: number): FlagOutcome {
  const evaluation = probe.evaluationOf(createSubjectOfPerson([probe], person, nowMs))
  evaluation.advance(() => false)
  return probe.outcomeOf(evaluation)!
}
