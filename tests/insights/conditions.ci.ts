// Conditions in SQL against the matcher that evaluates flags: every operator with awkward values, on the real engine.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toAsciiFoldedText, toFoldedText } from '#core/flags/match/fold-text.ts'
import { compilePropertyMatch, operatorNames } from '#core/flags/match/match-property.ts'
import type { Condition, PropertyCondition, PropertySource } from '#core/insights/conditions.ts'
import { getOwnValue, isJsonObject, type JsonValue, parseJson, toComparableText } from '#core/json.ts'
import { UnsupportedPattern } from '#ports/events/insight-queries.ts'
import { ConditionSql } from '../../src/adapters/clickhouse/insights/condition-sql.ts'
import { QueryParams } from '../../src/adapters/clickhouse/insights/query-params.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { testSeed } from '../support/seeded-random.ts'
import { aStoredEvent } from '../support/values.ts'

const nowMs = Date.parse('2026-05-01T12:34:56.789Z')

/** JSON texts of a property's value. */
const values: readonly string[] = [
  ...[
    'null',
    'true',
    'false',
    '0',
    '-0',
    '-0.0',
    '1',
    '1.0',
    '1e0',
    '10',
    '1e1',
    '-1',
    '1.5',
    '-1.5',
    '0.1',
    '100',
    '1e2',
  ],
  ...['9007199254740993', '12345678901234567890', '18446744073709551616', '123456789012345678901234', '1e400', '1e-7'],
  ...['1e21', '1e22', '0.30000000000000004', '1745000000', '1745000000.123', '1745000000.123456789', '-5', '1e17'],
  ...['""', '" "', '"true"', '"TRUE"', '"false"', '"null"', '"banana"', '"Banana"', '"an"', '"BAN"', '"NaN"', '"inf"'],
  ...['"-Infinity"', '"1"', '"1.0"', '"01"', '"+1"', '"1."', '".5"', '"1e3"', '" 1"', '"0x10"', '"1e999"', '"5"'],
  ...['"0.30000000000000004"', '"123456789012345678901234567890"', '"é"', '"É"', '"e\\u0301"', '"ß"', '"SS"', '"İ"'],
  ...[
    '"i"',
    '"ΑΣ"',
    '"ας"',
    '"ασ"',
    '"Ж"',
    '"ж"',
    '"日本語"',
    '"\\ud83d\\ude00"',
    '"😀😀"',
    '"\\ud800"',
    '"ق"',
    '"K"',
    '"k"',
  ],
  ...[
    '"a\\u0000b"',
    '"a\\nb"',
    '"a b"',
    '"a/b"',
    '"a\\\\b"',
    '"\\"q\\""',
    '"%_"',
    '"x\\u2028y"',
    '"٣"',
    '"ⅷ"',
    '"_"',
    '"ſ"',
  ],
  ...[
    '[]',
    '["a","b"]',
    '["true"]',
    '[true]',
    '[1, 2.0]',
    '[1,2]',
    '{}',
    '{"b":1,"a":2}',
    '{"a": 1.0}',
    '[[]]',
    '["é"]',
  ],
  ...['"2026-04-01"', '"2026-04-01T00:00:00Z"', '"2026-04-01T00:00:00.000000001Z"', '"2026-04-01T02:00:00+02:00"'],
  ...['"2026-04-01 00:00:00 +00:00"', '"2026-04-01T00:00"', '"2026-02-30T00:00:00Z"', '"2026-04-01T24:00:00Z"'],
  ...['"2026-03-29T02:30:00"', '"2026-04-01t00:00:00z"', '"1800-01-01T00:00:00Z"', '"9999-12-31T23:59:59Z"', '"soon"'],
  ...['"2026-05-01T12:34:56.789Z"', '"2026-04-24T12:34:56.789Z"', '"2026-04-01T00:00:60Z"', '"2026-04-01T00:00:00.5Z"'],
  ...[
    '"1.2.3"',
    '"v1.2.3"',
    '"1.2"',
    '"1.2.3-beta.1"',
    '"1.2.3+5"',
    '"2.0.0"',
    '"1.02.3"',
    '"0.2.9"',
    '" 1.2.3 "',
    '"1.2.3.4"',
  ],
  ...[
    '"2026-10-25T02:30:00"',
    '"2026-12-31T23:59:59-05:30"',
    '"\u00a02026-04-01\u3000"',
    '"0000-02-29"',
    '"1900-02-29"',
  ],
  ...['"2026-04-01T00:00:00+24:00"', '"2026-04-01T00:00Z"', '"2026-04-01 00:00 gmt"', '"1745000000.9999999999999999"'],
  ...['"1.2.3-beta.2"', '"1.2.3-beta.11"', '"1.2.3-beta-x"', '"1.2.3-01"', '"1.2.3+05"', '"18446744073709551615.0"'],
  ...['"18446744073709551616"', '"v 1.2.3"', '" v1.2.3"', '"1.2.3-"', '"+.5e1"', '"00012.50"', '"9007199254740993.5"'],
  JSON.stringify('x'.repeat(20_000)),
  JSON.stringify('é'.repeat(9_000)),
]

/** Properties as a client may send them, around or instead of a value. */
const texts: readonly string[] = [
  ...values.map(value => `{"p":${value}}`),
  '{}',
  '{"q":1}',
  '{"p":"a","p":"b"}',
  '{"p":1,"q":2,"p":null}',
  '{"\\u0070":"banana"}',
  '{"\\u0070":"a","p":"b"}',
  '{"p":"b","\\u0070":"a"}',
  '{"q":{"p":"nested"}}',
  '{"q":{"p":"nested"},"p":"banana"}',
  '{ "p" : "banana" , "q" : 1 }',
  '{"q":"\\"p\\":1"}',
  '{"q":123456789012345678901234,"p":"banana"}',
  '{"q":"\\ud800","p":1}',
  '{"q":1e400,"p":true}',
  '{"p":-0,"q":1}',
]

/**
 * The values of `p` that the engine reads differently, with its reading: the documented differences, and the only ones.
 * Source: docs/wire/private-api.md 11.1.
 */
const engineReadings = new Map<string, string | undefined>([
  // Numbers by their value, not as they were written.
  ...(
    [
      ['-0', '0'],
      ['1.0', '1'],
      ['1e0', '1'],
      ['1e1', '10'],
      ['1e2', '100'],
      ['[1, 2.0]', '[1,2]'],
    ] as const
  ).map(([value, reading]) => [`{"p":${value}}`, reading] as const),
  ['{"p":-0,"q":1}', '0'],
  ['{"p":-0.0}', '"-0"'],
  ['{"p":1e17}', '100000000000000000'],
  ['{"p":1e21}', '"1e21"'],
  ['{"p":1e22}', '"1e22"'],
  ['{"p":{"a": 1.0}}', '{"a":1}'],
  // The first of two equal keys.
  ['{"p":"a","p":"b"}', '"a"'],
  ['{"p":1,"q":2,"p":null}', '1'],
  ['{"\\u0070":"a","p":"b"}', '"a"'],
  ['{"p":"b","\\u0070":"a"}', '"b"'],
  // No properties at all, beside a number beyond 64 bits or half a surrogate pair.
  ...['18446744073709551616', '123456789012345678901234', '1e400', '"\\ud800"'].map(
    value => [`{"p":${value}}`, undefined] as const,
  ),
  ['{"q":123456789012345678901234,"p":"banana"}', undefined],
  ['{"q":"\\ud800","p":1}', undefined],
  ['{"q":1e400,"p":true}', undefined],
])

function engineValueOf(text: string, own: JsonValue | undefined): JsonValue | undefined {
  if (!engineReadings.has(text)) return own
  const reading = engineReadings.get(text)
  return reading === undefined ? undefined : parseJson(reading)
}

/** Tables of characters beyond ASCII may be of different versions of Unicode. */
function dependsOnTables({ operator, value }: TestedCondition, own: JsonValue | undefined): boolean {
  return (
    operator.endsWith('regex') &&
    /\\[dDwWpPbB]|\(\?[a-zA-Z]*i/.test(toComparableText(value)) &&
    own !== undefined &&
    /[^\0-\x7f]/.test(toComparableText(own))
  )
}

const filterValues: readonly JsonValue[] = [
  ...[
    true,
    false,
    'true',
    'False',
    'null',
    '',
    ' ',
    'banana',
    'AN',
    'ban',
    1,
    0,
    -1,
    '1',
    '1.0',
    1.5,
    100,
    '100',
    '1e2',
  ],
  ...[parseJson('1.0'), parseJson('-0'), parseJson('1e2'), parseJson('12345678901234567890'), parseJson('1e400')],
  ...['0.30000000000000004', 'nan', 'inf', '-inf', 'é', 'É', 'ß', 'İ', 'ΑΣ', 'ж', '語', '😀', 'a\0b', 'K', 'ſ'],
  ...['a/b', 'a\\b', '"q"', '%', '_', "'; DROP TABLE events; --", '{p:String}', '\n', 'x\u2028', '٣'],
  ...([
    [],
    ['true', 'false'],
    [true],
    ['banana', '1'],
    ['É', 'x'],
    [1, 2],
    ['true', 'x'],
    [1, 10],
    ['0', '5'],
    [5, 1],
    ['a', 1],
  ] as JsonValue[]),
  ...[
    '-7d',
    '7d',
    '-1m',
    '-100h',
    '2026-04-01',
    '2026-04-01T00:00:00Z',
    '2026-05-01T12:34:56.789Z',
    '1745000000',
    'x-y',
    '9999-12-31',
  ],
  ...[
    '1.2.3',
    '1.2.3-beta',
    '1.2.*',
    'v1.2',
    '0.2.1',
    '*',
    '1.2.3+5',
    '2026-04-01T00:00:00.000000001Z',
    '0000-01-01T00:00:00Z',
    '2026-10-25T00:30:00Z',
    '1.2.3-beta.2',
    '1.2.3+05',
    '1.2',
  ],
  null,
]

const patterns: readonly JsonValue[] = [
  ...[
    '^b',
    'an',
    '^$',
    '.',
    '^.$',
    'a.b',
    '(?s)a.b',
    '\\d',
    '^\\w+$',
    '\\s',
    '(?i)banana',
    '(?i)é',
    '\\bban',
    '[[:alpha:]]',
    '\\p{Greek}',
  ],
  ...[
    '(?=a)',
    '(a)\\1',
    'a++',
    '(',
    '[',
    'x{5}',
    '(x{100}){20}',
    '^[^a-z]+$',
    '\\x{1F600}',
    '[é]',
    '\\\\',
    '\\W',
    '\\D',
    '$',
    '^x+$',
    'é+',
  ],
  ...["'; SELECT 1", '(?m)^b$', '\\A1', '1\\z', 'é|banana', '(?-s).', '(?U)a+', 'K', '(?i)k', '(?i)ss'],
]

const propertyOperators = operatorNames.filter(name => !['in', 'not_in', 'flag_evaluates_to'].includes(name))

interface TestedCondition {
  readonly operator: string
  readonly value: JsonValue
}

const everyCondition: readonly TestedCondition[] = propertyOperators.flatMap(operator =>
  (operator.includes('regex')
    ? patterns
    : operator.includes('is_set') || operator === 'is_not_set'
      ? [null]
      : filterValues
  ).map(value => ({ operator, value })),
)

/** A part of them, another one with another seed; all of them with `CONDITIONS=all`. */
const seed = testSeed()
const conditions =
  process.env.CONDITIONS === 'all' ? everyCondition : everyCondition.filter((_, index) => (index + seed) % 4 === 0)

describe('a condition in SQL', () => {
  const held = eventStoreForTests({
    limits: { queryTimeoutSeconds: 30 },
    begin: () => {
      const events = texts.map((text, index) => {
        const value = propertyOf(text)
        const flags =
          value === undefined || value === null ? [] : [['$feature/p"&=%', toComparableText(value)] as const]
        const uuid = `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
        return aStoredEvent({ uuid, propertiesJson: text, personPropertiesJson: text, flags: new Map(flags) })
      })
      return held.insert({ events })
    },
  })

  /** Which of the events each condition holds for, by the store. */
  async function matched(all: readonly Condition[], settings: { timezone: string }) {
    const params = new QueryParams()
    const sql = new ConditionSql({ ...settings, nowMs, readsFlagMap: true }, params)
    const columns = all.map(condition => sql.of(condition))
    const inner = sql.tables.get('events')!
    return held.clients.read(async (client, signal) => {
      const result = await client.query({
        query: `SELECT toString(uuid), ${columns.join(', ')} FROM (SELECT uuid, ${inner.join(', ')} FROM events FINAL) ORDER BY uuid`,
        query_params: params.values,
        use_multipart_params: true,
        format: 'JSONCompactEachRow',
        abort_signal: signal,
      })
      return result.json<[string, ...number[]]>()
    })
  }

  /** Compares each condition on each event. */
  async function compare(
    source: PropertySource,
    key: string,
    expectedValue: (text: string) => JsonValue | undefined,
    version: 1 | 2,
    conditions: readonly TestedCondition[],
  ) {
    const settings = { timezone: 'Europe/Berlin', propertyMatchingVersion: version } as const
    const wrong: string[] = []
    for (let start = 0; start < conditions.length; start += 60) {
      const some = conditions.slice(start, start + 60)
      const asked = some.map(
        (condition): PropertyCondition => ({ kind: 'property', source, key, matchingVersion: version, ...condition }),
      )
      const rows = await matched(asked, settings)
      for (const [index, { operator, value }] of some.entries()) {
        const compiled = compilePropertyMatch(operator, value, settings)!
        for (const [row, text] of texts.entries()) {
          const own = source.kind === 'flag' ? expectedValue(text) : engineValueOf(text, expectedValue(text))
          if (dependsOnTables({ operator, value }, own)) continue
          let expected = own === undefined ? compiled.whenAbsent : compiled.matches(own, nowMs)
          if (typeof expected !== 'boolean') {
            let step = expected.next()
            while (!step.done) step = expected.next()
            expected = step.value
          }
          const actual = rows[row]![index + 1]
          if (actual !== (expected ? 1 : 0))
            wrong.push(`${text.slice(0, 60)} ${operator} ${JSON.stringify(value)}: ${actual}, not ${expected}`)
        }
      }
    }
    assert.deepEqual(wrong.slice(0, 40), [], `${wrong.length} differ`)
  }

  it('evaluates every property of an event as the flag evaluator does', async () => {
    await compare({ kind: 'event' }, 'p', propertyOf, 1, conditions)
  })

  it('evaluates version 2 of property matching as the flag evaluator does', async () => {
    await compare(
      { kind: 'person' },
      'p',
      propertyOf,
      2,
      conditions.filter(({ operator }) => ['exact', 'is_not'].includes(operator)),
    )
  })

  it('compares flag values as text', async () => {
    const flagValue = (text: string) => {
      const value = propertyOf(text)
      return value === undefined || value === null ? undefined : toComparableText(value).toWellFormed()
    }
    await compare(
      { kind: 'flag' },
      '$feature/p"&=%',
      flagValue,
      1,
      conditions.filter((_, index) => index % 4 === 0),
    )
  })

  it('folds the case of every character in the same way as the flag evaluator', async t => {
    t.diagnostic(`SEED=${seed}`)
    const characters = Array.from({ length: 0x11_0000 }, (_, code) => code)
      .filter(code => code < 0xd800 || code > 0xdfff)
      .map(code => String.fromCodePoint(code))
      .filter(character => /[\p{L}\p{M}\p{N}\p{So}]/u.test(character) || character.toLowerCase() !== character)
    const params = new QueryParams()
    const lists = [characters, characters.map(toFoldedText), characters.map(toAsciiFoldedText)]
    const query = `SELECT one.1, lowerUTF8(one.1), lower(one.1) FROM (
      SELECT arrayJoin(arrayZip(${lists.map(list => params.list('String', list)).join(', ')})) AS one)
      WHERE lowerUTF8(one.1) != one.2 OR lower(one.1) != one.3`
    const wrong = await held.clients.read(async (client, signal) => {
      const options = { use_multipart_params: true, format: 'JSONCompactEachRow', abort_signal: signal } as const
      return (await client.query({ query, query_params: params.values, ...options })).json<[string, string, string]>()
    })
    assert.deepEqual(wrong, [])
  })

  it('supports the maximum number of values in a condition', async () => {
    const parts = [...Array.from({ length: 999 }, (_, index) => `no${index}`), 'NAN']
    const conditions = ['icontains_multi', 'not_icontains_multi', 'exact', 'is_not'].map(operator => ({
      operator,
      value: parts,
    }))
    await compare({ kind: 'event' }, 'p', propertyOf, 1, conditions)
  })

  it('refuses half of a surrogate pair, which the engine cannot store', async () => {
    const value = '\ud83d'
    const half: PropertyCondition = {
      kind: 'property',
      source: { kind: 'event' },
      key: 'p',
      operator: 'icontains',
      value,
      matchingVersion: 1,
    }
    await assert.rejects(matched([half], { timezone: 'UTC' }), UnsupportedPattern)
  })

  it('combines conditions with and, or and not', async () => {
    const settings = { timezone: 'UTC', propertyMatchingVersion: 1 } as const
    const is = (value: JsonValue): Condition => ({
      kind: 'property',
      source: { kind: 'event' },
      key: 'p',
      operator: 'exact',
      value,
      matchingVersion: 1,
    })
    const version: Condition = {
      kind: 'property',
      source: { kind: 'event' },
      key: 'p',
      operator: 'semver_eq',
      value: '1.2.3',
      matchingVersion: 1,
    }
    const rows = await matched(
      [
        { kind: 'any', conditions: [is('banana'), version] },
        { kind: 'all', conditions: [is('banana'), { kind: 'not', condition: version }] },
        { kind: 'all', conditions: [] },
        { kind: 'any', conditions: [] },
      ],
      settings,
    )
    const own = texts.map(text => engineValueOf(text, propertyOf(text)))
    const isBanana = own.map(value => typeof value === 'string' && value.toLowerCase() === 'banana')
    const isVersion = own.map(
      value => value !== undefined && compilePropertyMatch('semver_eq', '1.2.3', settings)!.matches(value, 0),
    )
    assert.deepEqual(
      rows.map(row => row.slice(1)),
      own.map((_, index) => [isBanana[index] || isVersion[index] ? 1 : 0, isBanana[index] ? 1 : 0, 1, 0]),
    )
  })
})

function propertyOf(text: string): JsonValue | undefined {
  const properties = parseJson(text)
  assert.ok(isJsonObject(properties))
  return getOwnValue(properties, 'p')
}
