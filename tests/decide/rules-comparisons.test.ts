// How the predicates of a flag of version 2 evaluate a person's properties, operator by operator, also negated, in
// other time zones and while stored properties cannot be read. Source: docs/wire/evaluation.md 5.9, 11.2, 11.3, 11.5.

import { describe, it, type TestContext } from 'node:test'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { experiment, personPredicate, release, rulesDocument } from '../support/flag-documents.ts'
import { checkSituations, fails, gives, noRule, type Situation, type World } from './rule-situations.ts'

/** A property, an operator (null for none), its value, and whether it holds. `gone` is no property of the person. */
type Comparison = readonly [key: string, operator: string | null, value: JsonValue, holds: boolean]

const eight = '2026-01-10T08:00:00Z'
const properties: JsonObject = {
  ...{ plan: 'Pro', city: 'MÜNCHEN', email: 'ada@Example.org', words: 'many', long: `${'ä'.repeat(200)}b` },
  ...{ seats: 7, count: '7', ratio: '.5e1', zero: 0, yes: true, nothing: null },
  ...{ app: 'v2.1', beta: '2.1.0-rc.1' },
  ...{ day: '2026-01-10', at: '2026-01-10T10:00:00+02:00', wall: '2026-01-10 08:00', noon: '2026-01-10T12:00:00Z' },
  ...{ epoch: Date.parse(eight) / 1000, epochText: `${Date.parse(eight) / 1000}` },
}

const ofTexts: readonly Comparison[] = [
  ['plan', null, 'pro', true],
  ['plan', 'exact', ['free', 'PRO'], true],
  ['plan', 'exact', [], false],
  ['city', 'exact', 'münchen', true],
  ['count', 'exact', 7, true],
  ['seats', 'exact', '7', true],
  ['long', 'exact', 'ä'.repeat(200), false],
  ['gone', 'exact', 'x', false],
  ['nothing', 'exact', null, false],
  ['nothing', 'exact', [null], true],
  ['plan', 'is_not', ['free'], true],
  ['plan', 'is_not', 'PRO', false],
  ['gone', 'is_not', 'x', true],
  ['nothing', 'is_set', null, true],
  ['gone', 'is_set', null, false],
  ['nothing', 'is_not_set', null, false],
  ['gone', 'is_not_set', null, true],
  ['email', 'icontains', 'EXAMPLE', true],
  ['gone', 'icontains', '', false],
  ['email', 'not_icontains', 'EXAMPLE', false],
  ['gone', 'not_icontains', 'x', true],
  ['email', 'icontains_multi', ['x@', 'DA@'], true],
  ['email', 'icontains_multi', [], false],
  ['email', 'not_icontains_multi', ['x@', 'y@'], true],
  ['gone', 'not_icontains_multi', ['x'], true],
  ['email', 'starts_with', 'ADA', true],
  ['gone', 'starts_with', 'a', false],
  ['email', 'not_starts_with', 'b', true],
  ['gone', 'not_starts_with', 'a', true],
  ['email', 'ends_with', '.ORG', true],
  ['gone', 'ends_with', 'a', false],
  ['email', 'not_ends_with', '.org', false],
  ['gone', 'not_ends_with', 'a', true],
  ['email', 'regex', 'a@E', true],
  ['email', 'regex', 'a@e', false],
  ['email', 'regex', '^ada@(?:Example).org$', true],
  ['gone', 'regex', '.', false],
  ['email', 'not_regex', '^b', true],
  ['gone', 'not_regex', '.', true],
]

const ofNumbersAndVersions: readonly Comparison[] = [
  ['seats', 'gt', 6.99, true],
  ['seats', 'gt', 7, false],
  ['gone', 'gt', 0, false],
  ['seats', 'gte', '7', true],
  ['count', 'lt', 8, true],
  ['count', 'lt', '7', false],
  ['ratio', 'lte', 5, true],
  ['zero', 'lte', -0.1, false],
  ['app', 'semver_eq', '2.1.0', true],
  ['words', 'semver_eq', '2.1.0', false],
  ['app', 'semver_neq', '2.1', false],
  ['app', 'semver_neq', '2.2', true],
  ['gone', 'semver_neq', '2.1.0', false],
  ['app', 'semver_gt', '2.0.9', true],
  ['app', 'semver_gte', '2.1', true],
  ['app', 'semver_lt', '2.10', true],
  ['beta', 'semver_lt', '2.1.0', true],
  ['app', 'semver_lte', '2.1', true],
  ['app', 'semver_tilde', '2.1.0', true],
  ['app', 'semver_caret', '2.0.0', true],
  ['app', 'semver_caret', '1.9', false],
  ['app', 'semver_wildcard', '2.*', true],
]

/** Five days before the time of the test it was noon, too. */
const ofDates: readonly Comparison[] = [
  ['at', 'is_date_exact', eight, true],
  ['at', 'is_date_exact', '2026-01-10T08:00:01Z', false],
  ['wall', 'is_date_exact', eight, true],
  ['epoch', 'is_date_exact', eight, true],
  ['epochText', 'is_date_exact', eight, true],
  ['words', 'is_date_exact', '2026-01-10', false],
  ['noon', 'is_date_exact', '-5d', true],
  ['noon', 'is_date_exact', '5d', true],
  ['noon', 'is_date_exact', '-120h', true],
  ['at', 'is_date_before', eight, false],
  ['day', 'is_date_before', '2026-01-11', true],
  ['gone', 'is_date_before', '2026-01-10', false],
  ['at', 'is_date_after', eight, false],
  ['day', 'is_date_after', '2026-01-09', true],
  ['at', 'is_date_after', '-1w', true],
]

const texts = (...rules: JsonObject[]) => rulesDocument('string', 'default', rules)

/** Each comparison, plain and negated. */
function compared(t: TestContext, comparisons: readonly Comparison[], world: Partial<World> = {}): Promise<void> {
  const situations = comparisons.flatMap(([key, operator, value, holds]) =>
    [false, true].map((negation): Situation => {
      const predicate = { ...personPredicate(key, 'exact', value, negation), operator }
      const sentence = `${key} ${operator} ${JSON.stringify(value).slice(0, 40)}${negation ? ', negated' : ''}`
      return [sentence, texts(release('in', predicate)), holds === negation ? noRule('default') : gives('in')]
    }),
  )
  return checkSituations(t, situations, { properties, project: { propertyMatchingVersion: 2 }, ...world })
}

/** In New York, where clocks go forward on 8 March 2026 and back on 1 November, at two in the morning. */
function aDayAgo(t: TestContext, now: string, candidates: Readonly<Record<string, boolean>>): Promise<void> {
  const moments = Object.keys(candidates)
  const then = Object.fromEntries(moments.map(moment => [moment, moment]))
  const comparisons = moments.map((moment): Comparison => [moment, 'is_date_exact', '-1d', candidates[moment]!])
  return compared(t, comparisons, { properties: then, now, project: { timezone: 'America/New_York' } })
}

const broken = (key: string, operator: string, negation = false) =>
  personPredicate(key, operator, operator.endsWith('regex') ? '[' : 5, negation)
const free = personPredicate('plan', 'exact', 'free')
const noPattern = fails('invalid_regular_expression')

const failures: readonly Situation[] = [
  ...[false, true].flatMap((negation): Situation[] => {
    const document = (key: string, operator: string) =>
      texts(release('a', broken(key, operator, negation)), release('b'))
    const turned = negation ? ', negated' : ''
    return [
      [`[ matches no value${turned}`, document('plan', 'regex'), noPattern],
      [`nor does it fail to match${turned}`, document('plan', 'not_regex'), noPattern],
      [`not even where there is no property${turned}`, document('gone', 'regex'), noPattern],
      ...['words', 'nothing', 'yes'].map((key): Situation => {
        return [`${key} is not below a number${turned}`, document(key, 'lt'), fails('invalid_property')]
      }),
    ]
  }),
  [
    'a predicate that is not asked fails nothing',
    texts(release('a', free, broken('plan', 'regex')), release('b')),
    gives('b', 1),
  ],
  ['nor does a rule that is not asked', texts(release('a'), release('b', broken('words', 'gt'))), gives('a')],
  [
    'a pause does not hide what failed before it',
    texts(release('a', broken('words', 'gt')), experiment(['b', 'c'], { paused: true })),
    fails('invalid_property'),
  ],
]

const unknown = (operator: string, negation = false) => personPredicate('seats', operator, 7, negation)
const missing = fails('missing_properties')

const whileStateIsDown: readonly Situation[] = [
  ['an absent property that no rule tests is not missed', texts(release('a')), gives('a')],
  ['a property that was sent decides', texts(release('a', personPredicate('plan', 'exact', 'pro'))), gives('a')],
  ['one that was not is no absent one', texts(release('a', unknown('is_not')), release('b')), missing],
  ['neither set nor not set', texts(release('a', unknown('is_not_set')), release('b')), missing],
  ['nor different', texts(release('a', unknown('exact', true)), release('b')), missing],
  [
    'it is not asked after one that does not hold',
    texts(release('a', free, unknown('exact')), release('b')),
    gives('b', 1),
  ],
  ['but before one', texts(release('a', unknown('exact'), free), release('b')), missing],
]

describe('a comparison in a version 2 flag', () => {
  it('compares strings', t => compared(t, ofTexts))

  it('compares numbers and versions', t => compared(t, ofNumbersAndVersions))

  it('compares dates', t => compared(t, ofDates))

  it('uses the project’s version of boolean matching', async t => {
    await compared(t, [['zero', 'exact', false, true]], { project: { propertyMatchingVersion: 1 } })
    await compared(t, [['zero', 'exact', false, false]])
  })

  it('counts days in local time when the clocks go forward', t =>
    aDayAgo(t, '2026-03-08T16:00:00Z', { '2026-03-07T17:00:00Z': true, '2026-03-07T16:00:00Z': false }))

  it('counts days in local time when the clocks go back', t =>
    aDayAgo(t, '2026-11-01T17:00:00Z', { '2026-10-31T16:00:00Z': true, '2026-10-31T17:00:00Z': false }))

  it('uses the first of two equal local times', t =>
    aDayAgo(t, '2026-11-02T06:30:00Z', { '2026-11-01T05:30:00Z': true, '2026-11-01T06:30:00Z': false }))

  it('matches no instant for a local time that the clocks skip', t =>
    aDayAgo(t, '2026-03-09T06:30:00Z', { '2026-03-08T06:30:00Z': false, '2026-03-08T07:30:00Z': false }))

  it('reads dates without a zone in the project’s time zone', async t => {
    const project = { timezone: 'America/New_York' }
    const noons = { utc: '2026-01-10T17:00:00Z', midnight: '2026-01-10T05:00:00Z' }
    const comparisons: Comparison[] = [
      ['utc', 'is_date_exact', '2026-01-10 12:00', true],
      ['midnight', 'is_date_exact', '2026-01-10', true],
    ]
    await compared(t, comparisons, { properties: noons, project })
  })

  it('counts months one by one, clamping the day to the length of each', async t => {
    const then = { two: '2026-01-28T12:00:00Z', none: '2026-01-31T12:00:00Z' }
    await compared(
      t,
      [
        ['two', 'is_date_exact', '-2m', true],
        ['none', 'is_date_exact', '-2m', false],
      ],
      {
        ...{ properties: then, now: '2026-03-31T12:00:00Z' },
      },
    )
    const leap = { properties: { year: '2027-02-28T12:00:00Z' }, now: '2028-02-29T12:00:00Z' }
    await compared(t, [['year', 'is_date_exact', '-1y', true]], leap)
  })

  it('fails the flag if the values cannot be compared', t => checkSituations(t, failures, { properties }))

  it('uses sent properties while the state is down', t =>
    checkSituations(t, whileStateIsDown, { properties: { plan: 'Pro' }, isStateDown: true }))
})
