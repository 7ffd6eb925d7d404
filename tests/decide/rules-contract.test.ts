// The situations of the contract that PostHog publishes for flag documents of version 2, with documents and persons of
// our own: a sentence, a document, and the expected outcome. Where a hash decides, the test finds suitable ids by its
// separate SHA-1. Source: docs/wire/evaluation.md 11.2–11.5.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { startDecideServer } from '../support/decide-server.ts'
import { experiment, personPredicate, release, rollout, rulesDocument } from '../support/flag-documents.ts'
import { unitLine } from './rule-agreement.ts'
import { checkSituations, fails, gives, noRule, type Situation } from './rule-situations.ts'

const properties = { plan: 'Pro', seats: 7 }
const is = (key: string, value: JsonValue) => personPredicate(key, 'exact', value)
const pro = is('plan', ['pro'])
const free = is('plan', ['free'])

const texts = (...rules: JsonObject[]) => rulesDocument('string', 'default', rules)
const stop = { on_rollout_miss: 'return_default' }
const targeted = (rule: JsonObject, ...predicates: JsonObject[]) => ({ ...rule, targeting: { properties: predicates } })

const inOrder: readonly Situation[] = [
  ['without rules the default is served', rulesDocument('boolean', true, []), noRule(true)],
  ['a default of false is a value', rulesDocument('boolean', false, []), noRule(false)],
  ['without a default there is no value', rulesDocument('boolean', null, []), noRule(null)],
  ['false decides like any value', rulesDocument('boolean', true, [release(false, pro), release(true)]), gives(false)],
  ['the first of two that match decides', texts(release('one'), release('two')), gives('one')],
  ['the other way round, the other one', texts(release('two'), release('one')), gives('two')],
  [
    'the place of a rule counts those before it that do not match',
    texts(release('a', free), release('b', free), release('c')),
    gives('c', 2),
  ],
  [
    'all predicates have to hold',
    texts(release('a', pro, is('seats', 8)), release('b', pro, is('seats', 7))),
    gives('b', 1),
  ],
  ['a rollout of 100 % ends like a release', texts(rollout('in', 100), release('next')), gives('in')],
  ['a miss continues with the next rule', texts(rollout('in', 0), release('next')), gives('next', 1)],
  [
    'each of several misses continues with the next rule',
    texts(rollout('a', 0), rollout('b', 0, { seed: 'other' }), release('c')),
    gives('c', 2),
  ],
  [
    'after the last miss no rule matched',
    texts(rollout('a', 0), rollout('b', 0, { seed: 'other' })),
    noRule('default'),
  ],
  [
    'a miss that stops serves the default',
    texts(rollout('in', 0, stop), release('next')),
    gives('default', 0, 'rollout_miss'),
  ],
  [
    'and no value when there is no default',
    rulesDocument('string', null, [rollout('in', 0, stop), release('next')]),
    gives(null, 0, 'rollout_miss'),
  ],
  [
    'a rollout without a matching target does not end the evaluation',
    texts(targeted(rollout('in', 0, stop), free), release('next')),
    gives('next', 1),
  ],
  ['a request without an id is in no rollout, not even of 100 %', texts(rollout('in', 100)), noRule('default'), ''],
  ['which is a miss like another', texts(rollout('in', 100, stop)), gives('default', 0, 'rollout_miss'), ''],
  ['a release needs no id', texts(release('in')), gives('in'), ''],
]

const people = Array.from({ length: 500 }, (_, index) => `person-${index}`)
const somebody = (holds: (id: string) => boolean) => people.find(holds)!
/** An id whose hashed point lies in a part of the unit line. */
const between = (from: number, to: number, pointOf: (id: string) => number) =>
  somebody(id => pointOf(id) >= from && pointOf(id) < to)
const bucket = (seed: string) => (id: string) => unitLine(`${seed}.${id}`)
const share = (seed: string) => (id: string) => unitLine(`${seed}.${id}variant`)

const half = rollout('in', 50, { seed: 'half' })
const composed = 'caf\u00e9'
const decomposed = 'cafe\u0301'
/** A seed that has only the first of some ids in the lower half. */
const seedFor = (inside: string, ...outside: string[]) =>
  people.find(seed => bucket(seed)(inside) < 0.5 && outside.every(id => bucket(seed)(id) > 0.5))!
const faces = '😀'.repeat(200)
const spelt = rollout('in', 50, { seed: seedFor(composed, decomposed) })
const cutSeed = seedFor(faces, `${faces}x`, faces.slice(0, 200), '😀'.repeat(50))

const byHash: readonly Situation[] = [
  ['half of them is the lower half', texts(half), gives('in'), between(0, 0.5, bucket('half'))],
  ['and no id of the upper half', texts(half), noRule('default'), between(0.501, 1, bucket('half'))],
  [
    'the seed decides, not the key of the flag',
    texts(rollout('in', 50, { seed: 'f2' })),
    gives('in'),
    somebody(id => bucket('f2')(id) < 0.5 && bucket('half')(id) > 0.5),
  ],
  [
    'two rules of one seed have the same line',
    texts(rollout('low', 30, { seed: 'half' }), rollout('high', 60, { seed: 'half' })),
    gives('high', 1),
    between(0.301, 0.6, bucket('half')),
  ],
  ['an id is hashed as it is spelt', texts(spelt), gives('in'), composed],
  ['not as it could be spelt', texts(spelt), noRule('default'), decomposed],
  ['200 characters are hashed, of any size', texts(rollout('in', 50, { seed: cutSeed })), gives('in'), faces],
  ['and no more of them', texts(rollout('in', 50, { seed: cutSeed })), gives('in'), `${faces}x`],
  ['a point just inside 33.33 % is in', texts(rollout('in', 33.33, { seed: 'edge' })), gives('in'), 'user-5989234'],
  ['one just outside is not', texts(rollout('in', 33.33, { seed: 'edge' })), noRule('default'), 'user-2313234'],
  ['a point just inside 0.01 % is in', texts(rollout('in', 0.01, { seed: 'edge' })), gives('in'), 'user-4947234'],
  ['one just outside is not', texts(rollout('in', 0.01, { seed: 'edge' })), noRule('default'), 'user-2117643'],
  ['a point just inside 99.99 % is in', texts(rollout('in', 99.99, { seed: 'edge' })), gives('in'), 'user-4827279'],
  ['one just outside is not', texts(rollout('in', 99.99, { seed: 'edge' })), noRule('default'), 'user-5610903'],
]

const holdout = (exclusion_percentage: number, seed = 'out-') => ({ holdout: { id: null, seed, exclusion_percentage } })
const linked = { experiment_id: 7 }
const split = (over: JsonObject = {}) => experiment(['A', 'B'], { seed: 'split', ...over })
const variants = (...weights: number[]) => ({
  variants: weights.map((weight, place) => ({ key: `v${place}`, weight, value: `V${place}` })),
})
const thirds = experiment([], { seed: 'edge', ...variants(33.33, 33.33, 33.34) })
const twenty = experiment([], { seed: 'split', ...variants(...Array<number>(20).fill(5)) })
const lower = between(0, 0.5, share('split'))
const upper = between(0.501, 1, share('split'))
const out = (id: string) => unitLine(`out-${id}`)

const experiments: readonly Situation[] = [
  ['the lower share has the first variant', texts(split()), gives('A'), lower],
  ['the upper share has the second', texts(split()), gives('B'), upper],
  [
    'the order is as stored',
    texts({ ...split(), variants: [...(split().variants as JsonObject[])].reverse() }),
    gives('B'),
    lower,
  ],
  [
    'a linked experiment tells its variant',
    texts(split(linked)),
    { ...gives('A', 0, 'experiment_split'), variantKey: 'a' },
    lower,
  ],
  [
    'and the other one, of the same value',
    texts(experiment(['same', 'same'], { seed: 'split', ...linked })),
    { ...gives('same', 0, 'experiment_split'), variantKey: 'b' },
    upper,
  ],
  [
    'a pause serves the default',
    texts(split({ paused: true }), release('next')),
    gives('default', 0, 'experiment_paused'),
  ],
  [
    'before holdout and rollout, and without an id',
    texts(split({ paused: true, rollout_percentage: 0, ...holdout(100) }), release('next')),
    gives('default', 0, 'experiment_paused'),
    '',
  ],
  [
    'a pause is for those who are targeted',
    texts(targeted(split({ paused: true }), free), release('next')),
    gives('next', 1),
  ],
  [
    'a linked pause names its experiment',
    texts(split({ ...linked, paused: true })),
    gives('default', 0, 'experiment_paused'),
  ],
  [
    'a holdout of 100 % holds out every id',
    texts(split(holdout(100)), release('next')),
    gives('default', 0, 'holdout'),
  ],
  [
    'before the rollout',
    texts(split({ rollout_percentage: 0, ...stop, ...holdout(100) })),
    gives('default', 0, 'holdout'),
  ],
  [
    'a linked one names experiment and holdout',
    texts(split({ ...linked, holdout: { id: 9, seed: 'out-', exclusion_percentage: 100 } })),
    gives('default', 0, 'holdout'),
  ],
  ['a holdout of 0 % holds out no id', texts(split(holdout(0))), gives('A'), lower],
  [
    'a point in the holdout is held out',
    texts(split(holdout(20))),
    gives('default', 0, 'holdout'),
    between(0, 0.2, out),
  ],
  [
    'one outside has a variant',
    texts(split(holdout(20))),
    gives('B'),
    somebody(id => out(id) > 0.21 && share('split')(id) > 0.51),
  ],
  ['a request without an id is not held out', texts(split(holdout(100)), release('next')), gives('next', 1), ''],
  ['nor in the experiment', texts(split(stop)), gives('default', 0, 'rollout_miss'), ''],
  ['outside the rollout is a miss', texts(split({ rollout_percentage: 0 }), release('next')), gives('next', 1)],
  ['which may stop', texts(split({ ...linked, rollout_percentage: 0, ...stop })), gives('default', 0, 'rollout_miss')],
  [
    'rollout and share are different points',
    texts(split({ rollout_percentage: 50 })),
    gives('B'),
    somebody(id => bucket('split')(id) < 0.5 && share('split')(id) > 0.51),
  ],
  [
    'a second experiment takes over from one that misses',
    texts(split({ rollout_percentage: 0 }), experiment(['C', 'D'], { seed: 'second' })),
    gives('C', 1),
    between(0, 0.5, share('second')),
  ],
  ['a variant of weight 0 is passed over', texts(experiment([], { seed: 'split', ...variants(0, 100) })), gives('V1')],
  ['twenty variants have a twentieth each', texts(twenty), gives('V10'), between(0.501, 0.549, share('split'))],
  ['a point just below 33.33 has the first variant', texts(thirds), gives('V0'), 'user-1335777'],
  ['one just above the second', texts(thirds), gives('V1'), 'user-4110621'],
  ['one just below 66.66 too', texts(thirds), gives('V1'), 'user-5725378'],
  ['one just above the third', texts(thirds), gives('V2'), 'user-862460'],
  [
    'a point just inside a holdout is held out',
    texts(split(holdout(10, 'edge-out'))),
    gives('default', 0, 'holdout'),
    'user-5425329',
  ],
  [
    'one just outside is not',
    texts(experiment(['same', 'same'], holdout(10, 'edge-out'))),
    gives('same'),
    'user-751979',
  ],
]

/** Ids near each bucket edge, found once among six million. */
const edges: readonly [end: number, text: (id: string) => string, below: string, above: string][] = [
  [0.3333, id => `edge.${id}`, 'user-5989234', 'user-2313234'],
  [0.0001, id => `edge.${id}`, 'user-4947234', 'user-2117643'],
  [0.9999, id => `edge.${id}`, 'user-4827279', 'user-5610903'],
  [0.1, id => `edge-out${id}`, 'user-5425329', 'user-751979'],
  [0.3333, id => `edge.${id}variant`, 'user-1335777', 'user-4110621'],
  [0.6666, id => `edge.${id}variant`, 'user-5725378', 'user-862460'],
]

const nested = (levels: number): JsonObject => (levels === 1 ? { leaf: true } : { in: nested(levels - 1) })
const values: readonly JsonValue[] = [
  ...['Grüße 👋', 'false', 'null', '0'],
  ...[0, -2.5, 0.1, 1.5e-7, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER],
  ...[{}, { columns: [1, true, null, 'ü'], in: { ratio: 4.5 } }, nested(20)],
]
const typeOf = (value: JsonValue) => typeof value as string

const ofEveryType: readonly Situation[] = values.flatMap((value): Situation[] => {
  const written = JSON.stringify(value).slice(0, 40)
  const document = (...rules: JsonObject[]) => rulesDocument(typeOf(value), value, rules)
  const other = { string: 'other', number: 99, object: { other: true } }[typeOf(value)]!
  return [
    [`${written} is a value`, rulesDocument(typeOf(value), null, [release(value)]), gives(value)],
    [`${written} is a default`, document(release(other, free)), noRule(value)],
    [
      `${written} is what a pause serves`,
      document(experiment([other, other], { paused: true })),
      gives(value, 0, 'experiment_paused'),
    ],
    [`${written} is a variant's`, rulesDocument(typeOf(value), null, [experiment([value, value])]), gives(value)],
  ]
})

const readable = texts(release('in'))
const unsupported = (over: JsonObject): JsonObject => ({ ...readable, ...over })
const ofRule = (over: JsonObject) => unsupported({ rules: [{ ...(readable.rules as JsonObject[])[0]!, ...over }] })
const cohort = { key: 'id', type: 'cohort', value: 1 }

const unreadable: readonly Situation[] = Object.entries({
  'a later version': unsupported({ version: 3 }),
  'a version as text': unsupported({ version: '2' }),
  'a version of true': unsupported({ version: true }),
  'a version of null': unsupported({ version: null }),
  'a field that it does not know': unsupported({ later: true }),
  'fields of version 1': unsupported({ groups: [] }),
  groups: unsupported({ aggregation_group_type_index: 0 }),
  'no default': { version: 2, return_type: 'string', rules: [] },
  'a default of another type': unsupported({ default_value: 1 }),
  'an empty text': unsupported({ default_value: '' }),
  'a value of another type': ofRule({ value: true }),
  'a value of null': ofRule({ value: null }),
  'a type of rule that it does not know': ofRule({ rule_type: 'later' }),
  'a field of a rule that it does not know': ofRule({ later: true }),
  'a rollout in a release': ofRule({ rollout_percentage: 50 }),
  'a cohort': ofRule({ targeting: { properties: [cohort] } }),
  'an operator of cohorts': ofRule({ targeting: { properties: [personPredicate('plan', 'in', ['pro'])] } }),
  'two rules of one id': unsupported({ rules: [0, 1].map(() => (readable.rules as JsonObject[])[0]!) }),
  'three decimals': texts(rollout('in', 33.333)),
  'more than 100 %': texts(rollout('in', 100.01)),
  'less than 0 %': texts(rollout('in', -0.01)),
  'another algorithm': texts(rollout('in', 50, { assignment_algorithm: 'later' })),
  'another subject': texts(rollout('in', 50, { assign_by: 'device' })),
  'an empty seed': texts(rollout('in', 50, { seed: '' })),
  'another way to miss': texts(rollout('in', 50, { on_rollout_miss: 'fail' })),
  'weights of 99.99': texts(experiment([], variants(33.33, 33.33, 33.33))),
  'weights of 100.01': texts(experiment([], variants(50.01, 50))),
  'a weight of three decimals': texts(experiment([], variants(33.333, 66.667))),
  'one variant': texts(experiment(['A'])),
  'twenty-one variants': texts(experiment([], variants(...Array<number>(19).fill(5), 2.5, 2.5))),
  'a shared holdout without an experiment': texts(split({ holdout: { id: 9, seed: 'out', exclusion_percentage: 5 } })),
  'a separate holdout in an experiment': texts(split({ ...linked, ...holdout(5) })),
  'an experiment as text': texts(split({ experiment_id: '7' })),
  'no word on the pause': texts(Object.fromEntries(Object.entries(split()).filter(([name]) => name !== 'paused'))),
  'an object that is too deep': rulesDocument('object', null, [release(nested(21))]),
  'a list for an object': rulesDocument('object', null, [release([{}])]),
  'a number that is too large': rulesDocument('number', null, [release(2 ** 53)]),
}).map(([what, filters]) => [`${what} fails the flag alone`, filters, fails('unsupported_definition')])

describe('a version 2 flag', () => {
  it('evaluates its rules in order', t => checkSituations(t, inOrder, { properties }))

  it('hashes the seed and the id', t => checkSituations(t, byHash, { properties }))

  it('evaluates experiments', t => checkSituations(t, experiments, { properties }))

  it('may have values of every JSON type', t => checkSituations(t, ofEveryType, { properties }))

  it('fails without affecting other flags if it cannot be read', async t => {
    await checkSituations(t, [...unreadable, ['others go on', readable, gives('in')]], { properties })
  })

  it('is left out if it is inactive, deleted or not requested', async t => {
    const states = { asked: {}, inactive: { active: false }, deleted: { deleted: true }, unasked: {} }
    const flags = Object.entries(states).map(([key, state], place) => ({
      id: place + 1,
      key,
      filters: readable,
      ...state,
    }))
    const server = await startDecideServer(t, { flags })
    const flag_keys = ['asked', 'inactive', 'deleted', 'unknown']
    for (const version of [2, 3, 4]) {
      const path = `/flags?v=${version}`
      const { json } = await server.post(path, { token: 'phc_test', distinct_id: 'ada', flag_keys })
      assert.deepEqual([Object.keys(json.flags as JsonObject), json.errorsWhileComputingFlags], [['asked'], false])
    }
  })

  it('is tested within a millionth of each bucket edge', () => {
    for (const [end, textOf, below, above] of edges) {
      const [before, after] = [unitLine(textOf(below)), unitLine(textOf(above))]
      assert.ok(before <= end && end < after && after - before < 1e-6, `${end}: ${before}, ${after}`)
    }
  })
})
