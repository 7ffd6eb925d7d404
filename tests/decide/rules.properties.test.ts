// Random flags of version 2 against a model of the specification that shares no code with the evaluator, and against
// explanations and probes, which have to say the same. Source: docs/wire/evaluation.md 11.3, 11.5.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import { FlagProbe } from '#core/flags/evaluation/flag-probe.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { err, ok } from '#core/result.ts'
import { compileTestProject } from '../support/decide-server.ts'
import { aSubject } from '../support/evaluation-subject.ts'
import { testSeed } from '../support/seeded-random.ts'
import {
  assertExplained,
  assertOutcome,
  explained,
  probedOutcome,
  type RuleOutcome,
  storedPerson,
  unitLine,
} from './rule-agreement.ts'

const seed = testSeed()

/** `path`: what became of each rule that was asked. */
interface Expected extends RuleOutcome {
  readonly path: readonly string[]
}

/** Undefined for a property that is absent; 'unreadable' for one that cannot be looked up. */
type Read = (key: string) => JsonValue | undefined | 'unreadable'

function expected(document: JsonObject, subject: string, read: Read): Expected {
  const path: string[] = []
  const rules = document.rules as JsonObject[]
  const ended = (
    reason: string,
    index: number | null,
    value: JsonValue,
    variantKey: string | null = null,
  ): Expected => {
    return { reason, index, value, variantKey, path }
  }
  const byDefault = (reason: string, index: number | null) => ended(reason, index, document.default_value!)
  for (const [index, rule] of rules.entries()) {
    const targeted = isTargeted((rule.targeting as JsonObject).properties as JsonObject[], read)
    if (typeof targeted === 'string') {
      path.push('failed')
      return { reason: targeted, index: null, variantKey: null, path }
    }
    if (!targeted) {
      path.push('no_condition_match')
      continue
    }
    const holdout = rule.holdout as JsonObject | undefined
    const isIn = (text: string, percentage: JsonValue | undefined) =>
      subject !== '' && unitLine(text) <= (percentage as number) / 100
    let reason = 'matched'
    if (rule.rule_type === 'experiment' && rule.paused === true) reason = 'experiment_paused'
    else if (holdout !== undefined && isIn(`${holdout.seed}${subject}`, holdout.exclusion_percentage))
      reason = 'holdout'
    else if (rule.rule_type !== 'targeted_release') {
      const everybody = rule.rollout_percentage === 100 && subject !== ''
      if (!everybody && !isIn(`${rule.seed}.${subject}`, rule.rollout_percentage)) reason = 'rollout_miss'
    }
    path.push(reason)
    if (reason === 'rollout_miss' && rule.on_rollout_miss === 'continue') continue
    if (reason !== 'matched') return byDefault(reason, index)
    if (rule.rule_type !== 'experiment') return ended('targeting_match', index, rule.value!)
    const { key, value } = servedVariant(rule.variants as JsonObject[], unitLine(`${rule.seed}.${subject}variant`))
    const isLinked = rule.experiment_id !== null
    return isLinked ? ended('experiment_split', index, value!, key as string) : ended('targeting_match', index, value!)
  }
  return byDefault('no_rule_match', null)
}

function servedVariant(variants: readonly JsonObject[], at: number): JsonObject {
  let end = 0
  for (const variant of variants) {
    end += (variant.weight as number) / 100
    if (at < end) return variant
  }
  return variants.at(-1)!
}

function isTargeted(predicates: readonly JsonObject[], read: Read): boolean | string {
  for (const { key, operator, value, negation } of predicates) {
    const own = read(key as string)
    if (own === 'unreadable') return 'missing_properties'
    const holds = compared((operator as string | null) ?? 'exact', own, value!)
    if (typeof holds === 'string') return holds
    if (holds === (negation === true)) return false
  }
  return true
}

function compared(operator: string, own: JsonValue | undefined, value: JsonValue): boolean | string {
  const negative = /^not_|_not$/.test(operator)
  if (operator === 'is_set') return own !== undefined
  if (operator === 'is_not_set') return own === undefined
  if (operator.endsWith('regex') && value === '[') return 'invalid_regular_expression'
  if (own === undefined) return negative
  const [left, right] = [`${own}`.toLowerCase(), `${value}`.toLowerCase()]
  const numbers = [own, value].map(one => (typeof one === 'number' ? one : Number.parseFloat(`${one}`)))
  switch (operator) {
    case 'exact':
    case 'is_not':
      return (left === right) !== negative
    case 'icontains':
    case 'not_icontains':
      return left.includes(right) !== negative
    case 'starts_with':
    case 'not_starts_with':
      return left.startsWith(right) !== negative
    case 'regex':
    case 'not_regex':
      return `${own}`.length > 16_384
        ? 'invalid_regular_expression'
        : new RegExp(value as string).test(`${own}`) !== negative
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte': {
      const [a, b] = numbers as [number, number]
      if (Number.isNaN(a) || Number.isNaN(b)) return 'invalid_property'
      return operator.startsWith('g')
        ? a > b || (operator === 'gte' && a === b)
        : a < b || (operator === 'lte' && a === b)
    }
    default:
      throw new Error(operator)
  }
}

const propertyKey = fc.constantFrom('plan', 'seats', 'email')
const propertyValue = fc.constantFrom<JsonValue>('pro', 'Free', 'freedom', 5, 12, '7', 'many', null, 'f'.repeat(17_000))
const properties = fc.dictionary(propertyKey, propertyValue, { maxKeys: 3 })

const predicate: fc.Arbitrary<JsonObject> = fc
  .tuple(
    propertyKey,
    fc.oneof(
      fc.tuple(fc.constantFrom('exact', 'is_not', null), fc.constantFrom<JsonValue>('pro', 'FREE', 5, '12')),
      fc.tuple(
        fc.constantFrom('icontains', 'not_icontains', 'starts_with', 'not_starts_with'),
        fc.constantFrom<JsonValue>('fre', 'O', '1'),
      ),
      fc.tuple(fc.constantFrom('is_set', 'is_not_set'), fc.constant<JsonValue>(null)),
      fc.tuple(fc.constantFrom('regex', 'not_regex'), fc.constantFrom<JsonValue>('^f', 'o$', '[')),
      fc.tuple(fc.constantFrom('gt', 'gte', 'lt', 'lte'), fc.constantFrom<JsonValue>(7, '12', 'several')),
    ),
    fc.constantFrom(true, false, null),
  )
  .map(([key, [operator, value], negation]) => ({ key, type: 'person', operator, value, negation }))

const percentage = fc.constantFrom(0, 12.5, 33.33, 50, 99.99, 100)
const ruleSeed = fc.constantFrom('one', 'two', 'drei-ä', '')
const text = fc.constantFrom('red', 'green', 'blue')
const hashed = fc.record({
  seed: ruleSeed.filter(value => value !== ''),
  rollout_percentage: percentage,
  on_rollout_miss: fc.constantFrom('continue', 'return_default'),
  assignment_algorithm: fc.constant('sha1_60_v1'),
})
const weights = fc.constantFrom([50, 50], [33.33, 33.33, 33.34], [100, 0], [0, 100], [0.01, 99.98, 0.01])
const experiment = fc
  .tuple(hashed, weights, text, fc.constantFrom(null, 7), fc.boolean(), fc.option(percentage))
  .map(([common, shares, value, experiment_id, paused, exclusion_percentage]): JsonObject => {
    const variants = shares.map((weight, index) => ({ key: `v${index}`, weight, value: `${value}-${index}` }))
    const holdoutId = experiment_id === null ? null : 9
    const holdout =
      exclusion_percentage === null ? {} : { holdout: { id: holdoutId, seed: 'out-', exclusion_percentage } }
    return { rule_type: 'experiment', ...common, experiment_id, paused, variants, ...holdout }
  })
const rule: fc.Arbitrary<JsonObject> = fc
  .tuple(
    fc.array(predicate, { maxLength: 3 }),
    fc.oneof(
      text.map((value): JsonObject => ({ rule_type: 'targeted_release', value })),
      fc
        .tuple(hashed, text)
        .map(([common, value]): JsonObject => ({ rule_type: 'percentage_rollout', value, ...common })),
      experiment,
    ),
    fc.uuid(),
  )
  .map(([predicates, rest, id]) => ({ id, targeting: { properties: predicates }, ...rest }))
const document = fc
  .tuple(fc.uniqueArray(rule, { maxLength: 6, selector: ({ id }) => id }), fc.constantFrom('plain', null))
  .map(([rules, default_value]): JsonObject => ({ version: 2, return_type: 'string', default_value, rules }))

const distinctId = fc.oneof(fc.constantFrom('', 'ada', 'grace'), fc.string({ unit: 'grapheme', maxLength: 12 }))
const turns = fc.array(fc.boolean(), { minLength: 1, maxLength: 8 })

describe(`version 2 flags (SEED=${seed})`, () => {
  it('have the results of a simple reference implementation in evaluations, explanations and probes', async () => {
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(
        ...([document, distinctId, properties, fc.option(properties), turns] as const),
        async (filters, id, sent, stored, interruptions) => {
          const project = compileTestProject({ flags: [{ id: 1, key: 'typed', filters }] })
          assert.deepEqual(
            project.problems.filter(({ message }) => message.includes('cannot be evaluated')),
            [],
          )
          const person = stored === null ? err('timeout' as const) : ok({ properties: stored, createdAtMs: 0 })
          const subject = aSubject({ distinctId: id, personProperties: sent, person })
          const model = expected(
            filters,
            id,
            key => sent[key] ?? (key in sent ? null : stored === null ? 'unreadable' : stored[key]),
          )
          seen.add(model.reason)

          let turn = 0
          const isTimeUp = () => interruptions[turn++ % interruptions.length]!
          const evaluation = new FlagEvaluation(project, null, subject)
          while (!evaluation.advance(isTimeUp));
          assertOutcome(evaluation.outcomes[0]!, model)
          await explanationAgrees(project, subject, model)
          if (stored !== null) probeAgrees(project, filters, id, stored)
        },
      ),
      { seed, numRuns: 1_500 },
    )
    for (const reason of expectedReasons) assert.ok(seen.has(reason), `${reason} never happened`)
  })
})

const expectedReasons = [
  ...['targeting_match', 'experiment_split', 'experiment_paused', 'holdout', 'rollout_miss', 'no_rule_match'],
  ...['invalid_property', 'invalid_regular_expression', 'missing_properties'],
]

async function explanationAgrees(
  project: ReturnType<typeof compileTestProject>,
  subject: EvaluationSubject,
  model: Expected,
): Promise<void> {
  const shown = await explained(project, subject, 1)
  assertExplained(shown, model)
  const results = shown.conditions.map(({ result }) => result)
  assert.deepEqual(
    results,
    results.map((_result, index) => model.path[index] ?? 'not_reached'),
  )
  for (const { result, rollout, filters } of shown.conditions) {
    const { hash, percentage } = rollout
    if (result === 'matched' && hash !== null) assert.ok(hash <= percentage! / 100)
    if (result === 'rollout_miss' && hash !== null) assert.ok(hash > percentage! / 100)
    if (result === 'rollout_miss' && hash === null) assert.equal(subject.distinctId, '')
    const firstOff = filters.findIndex(filter => filter.result !== 'passed')
    const isOff = ['no_condition_match', 'failed', 'not_reached'].includes(result)
    assert.equal(firstOff >= 0, isOff && filters.length > 0)
    for (const filter of filters.slice(firstOff < 0 ? filters.length : firstOff + 1))
      assert.equal(filter.result, 'not_evaluated')
  }
}

/** A probe reads only stored properties. */
function probeAgrees(
  { definitions }: ReturnType<typeof compileTestProject>,
  filters: JsonObject,
  distinctId: string,
  stored: JsonObject,
): void {
  const probe = new FlagProbe(definitions, definitions.flags[0]!)
  assert.deepEqual([probe.fault(), probe.neededParts(), probe.isAlwaysKnown()], [null, [], false])
  const outcome = probedOutcome(probe, storedPerson(distinctId, stored), 0)
  assertOutcome(
    outcome,
    expected(filters, distinctId, key => stored[key]),
  )
  const readsId = (filters.rules as JsonObject[]).some(rule => rule.rule_type !== 'targeted_release')
  assert.equal(probe.readsDistinctId, readsId)
}
