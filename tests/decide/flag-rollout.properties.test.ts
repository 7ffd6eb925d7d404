// Compares the rollout derived from a flag's definition (`readFlagRollout`) with evaluations for many persons.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readFlagRollout } from '#core/flags/definitions/flag-rollout.ts'
import { compileProject } from '#core/flags/evaluation/compile-project.ts'
import { flagValueOf } from '#core/flags/evaluation/flag-outcome.ts'
import type { JsonObject } from '#core/json.ts'
import { flagFromJson } from '../support/decide-server.ts'
import { allFlags, aSubject, evaluateFlags } from '../support/evaluation-subject.ts'
import { pro } from '../support/flag-documents.ts'
import { aProject, emptyDefinitions } from '../support/values.ts'

const set = fc.record(
  {
    properties: fc.constantFrom([], [], [pro]),
    rollout_percentage: fc.constantFrom(0, 50, 100, 100, null),
    variant: fc.constantFrom('a', 'b', 'unknown', null, null),
  },
  { requiredKeys: ['properties'] },
)
const variants = fc.constantFrom([], [], [50, 50], [0, 100], [100, 0]).map(weights => ({
  variants: weights.map((weight, index) => ({ key: 'ab'[index]!, rollout_percentage: weight })),
}))
const filters = fc.record(
  {
    groups: fc.array(set, { maxLength: 3 }),
    multivariate: fc.oneof({ arbitrary: variants, weight: 3 }, { arbitrary: fc.constant(null), weight: 1 }),
    early_exit: fc.boolean(),
    feature_enrollment: fc.oneof(
      { arbitrary: fc.constant(false), weight: 9 },
      { arbitrary: fc.constant(true), weight: 1 },
    ),
    holdout: fc.constantFrom(
      null,
      null,
      null,
      null,
      { id: 1, exclusion_percentage: 0 },
      { id: 1, exclusion_percentage: 30 },
      { id: 1, exclusion_percentage: 100 },
    ),
  },
  { requiredKeys: ['groups'] },
)

/** Enough for a rollout of 50 % to include and to exclude some persons of every kind. */
const persons = Array.from({ length: 360 }, (_, index) =>
  aSubject({
    distinctId: `person-${index}`,
    personProperties: {
      ...(index % 2 === 0 && { plan: 'pro' }),
      ...(index % 3 === 0 && { '$feature_enrollment/beta': index % 4 < 2 }),
    },
  }),
)

test('the rollout derived from a flag’s definition agrees with evaluations of the flag', () => {
  fc.assert(
    fc.property(filters, json => {
      const flag = flagFromJson({ key: 'beta', filters: json as unknown as JsonObject })
      const project = compileProject({ ...emptyDefinitions(aProject(), 1), flags: [flag] })
      const position = project.positionOfKey.get('beta')!
      const answers = new Set(
        persons.map(person => flagValueOf(evaluateFlags(project, allFlags, person).outcomes[position]!)),
      )
      const rollout = readFlagRollout(flag.filters)
      const expected =
        answers.size > 1
          ? { kind: 'some' }
          : answers.has(false)
            ? { kind: 'nobody' }
            : { kind: 'everybody', variant: answers.has(true) ? null : [...answers][0] }
      assert.deepEqual(rollout, expected)
    }),
    { numRuns: 300 },
  )
})
