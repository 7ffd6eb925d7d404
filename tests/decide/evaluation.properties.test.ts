// What holds for every flag and every subject: rollouts only grow, variants keep their shares, flags do not affect each
// other, and the order of sent properties does not matter.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { flagValueOf } from '#core/flags/evaluation/flag-outcome.ts'
import { computeFlagHash01, computeVariantBounds, pickVariant } from '#core/flags/rollout/rollout.ts'
import type { JsonObject } from '#core/json.ts'
import { compileTestProject } from '../support/decide-server.ts'
import { allFlags, aSubject, evaluateFlags } from '../support/evaluation-subject.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { picker } from './differential/picker.ts'
import { groupTypes, type RandomFlag, randomFlag, randomSubject } from './differential/random-definitions.ts'

const seed = testSeed()
const parameters = { seed, numRuns: 200 }
const distinctId = fc.string({ unit: 'grapheme', maxLength: 40 })
const flagKey = fc.stringMatching(/^[a-z0-9_-]{1,30}$/)

type Values = Record<string, boolean | string | undefined>

function valuesOf(flags: readonly object[], subject: Parameters<typeof aSubject>[0]): Values {
  const names = Object.fromEntries(groupTypes.map((name, index) => [String(index), name]))
  const project = compileTestProject({ flags: flags as JsonObject[], groupTypes: names })
  const { outcomes } = evaluateFlags(project, allFlags, aSubject(subject))
  return Object.fromEntries(
    outcomes.flatMap((outcome, position) =>
      outcome === undefined ? [] : [[project.flags[position]!.key, flagValueOf(outcome)]],
    ),
  )
}

function randomFlags(random: () => number, count: number): RandomFlag[] {
  const pick = picker(random)
  const flags: RandomFlag[] = []
  for (let index = 0; index < count; index++)
    flags.push({ ...randomFlag(`flag-${index}`, pick, { flags, cohorts: [] }), id: index + 1 })
  return flags
}

describe(`evaluations (SEED=${seed})`, () => {
  it('keep every person in a growing rollout', () => {
    const percentage = fc.oneof(fc.integer({ min: 0, max: 100 }), fc.double({ min: 0, max: 100, noNaN: true }))
    fc.assert(
      fc.property(flagKey, distinctId, percentage, percentage, (key, id, a, b) => {
        const at = (rollout_percentage: number) =>
          valuesOf([{ id: 1, key, filters: { groups: [{ properties: [], rollout_percentage }] } }], { distinctId: id })[
            key
          ]
        const [less, more] = [at(Math.min(a, b)), at(Math.max(a, b))]
        assert.ok(less !== true || more === true)
      }),
      parameters,
    )
  })

  it('give each variant its share of a million people', () => {
    const people = 1_000_000
    const shares = [50, 25, 12.5, 10, 2.5]
    const bounds = computeVariantBounds(shares)
    const counts = new Array<number>(shares.length).fill(0)
    for (let person = 0; person < people; person++)
      counts[pickVariant(computeFlagHash01('checkout', `person-${person}`, 'variant'), bounds)]!++
    for (const [index, share] of shares.entries()) {
      const expected = (people * share) / 100
      const deviation = Math.sqrt(expected * (1 - share / 100))
      assert.ok(Math.abs(counts[index]! - expected) < 5 * deviation, `${counts[index]} people instead of ${expected}`)
    }
  })

  it('assign two flags independently of each other', () => {
    const people = 100_000
    let both = 0
    for (let person = 0; person < people; person++) {
      const id = `person-${person}`
      if (computeFlagHash01('one', id, '') <= 0.5 && computeFlagHash01('two', id, '') <= 0.5) both++
    }
    assert.ok(Math.abs(both - people / 4) < 5 * Math.sqrt((people * 3) / 16), `${both} of ${people}`)
  })

  it('do not change when a flag is added', () => {
    const random = seededRandom(seed)
    for (let round = 0; round < 100; round++) {
      const flags = randomFlags(random, 12)
      const added = { ...randomFlag('added', picker(random), { flags, cohorts: [] }), id: 1_000 }
      const subject = randomSubject(random)
      const parts = subjectParts(subject)
      const { added: _value, ...others } = valuesOf([...flags, added], parts)
      assert.deepEqual(others, valuesOf(flags, parts))
    }
  })

  it('do not depend on the order in which properties are sent', () => {
    const random = seededRandom(seed)
    for (let round = 0; round < 100; round++) {
      const flags = randomFlags(random, 12)
      const subject = randomSubject(random)
      const reversed = {
        ...subject,
        groups: turned(subject.groups),
        personProperties: turned(subject.personProperties),
        groupProperties: turned(
          Object.fromEntries(Object.entries(subject.groupProperties).map(([type, bag]) => [type, turned(bag)])),
        ),
      }
      assert.deepEqual(valuesOf(flags, subjectParts(reversed)), valuesOf(flags, subjectParts(subject)))
    }
  })
})

function subjectParts(subject: ReturnType<typeof randomSubject>): Parameters<typeof aSubject>[0] {
  return {
    distinctId: subject.distinctId,
    groups: subject.groups,
    personProperties: subject.personProperties as JsonObject,
    groupProperties: subject.groupProperties as JsonObject,
    deviceId: (subject.personProperties.$device_id as string | undefined) ?? null,
  }
}

function turned<T>(object: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(object).reverse())
}
