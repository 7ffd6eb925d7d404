import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import { Kysely, type RawBuilder, SqliteDialect, sql } from 'kysely'
import { findPropertyTextParts } from '#core/flags/match/property-text-parts.ts'
import type { JsonValue } from '#core/json.ts'
import { containsTextSql, mayContainPartsSql } from './conditions.ts'
import { countFittingRows } from './read-pages.ts'
import { makeTextArgumentsStorable, toStorableFields, toStorableText } from './wrap-methods.ts'

describe('a page', () => {
  it('ends before the row that would exceed its limit, but contains at least one row if there is any', () => {
    const cases: [bytes: (number | string)[], expected: number][] = [
      [[], 0],
      [[10], 1],
      [[11], 1],
      [[11, 0], 1],
      [[5, 5], 2],
      [[5, 6], 1],
      [[0, 10, 0, 1], 3],
      // PostgreSQL hands out sums as text.
      [['5', '5', '1'], 2],
    ]
    for (const [bytes, expected] of cases)
      assert.equal(
        countFittingRows(
          bytes.map(bytes => ({ bytes: bytes as number })),
          10,
        ),
        expected,
        String(bytes),
      )
    const [mebibyte] = [1024 * 1024]
    assert.equal(countFittingRows([{ bytes: mebibyte }, { bytes: 0 }, { bytes: 1 }]), 2)
  })
})

describe('a search for a text', () => {
  const db = new Kysely<object>({ dialect: new SqliteDialect({ database: new Database(':memory:') }) })
  const found = async (text: string, condition: (column: string) => RawBuilder<boolean>) => {
    const { rows } = await sql<{ found: 0 | 1 }>`SELECT ${condition('t')} AS found FROM (SELECT ${text} AS t)`.execute(
      db,
    )
    return rows[0]!.found === 1
  }

  it('finds the text literally, in either case', async () => {
    for (const [text, search, expected] of [
      ['abc', '', true],
      ['abc', 'B', true],
      ['ABC', 'bc', true],
      ['abc', 'd', false],
      ['100%', '0%', true],
      ['1000', '0%', false],
      ['a_c', 'A_c', true],
      ['abc', 'a_c', false],
      ['a\\c', '\\C', true],
      ['a\\', '\\', true],
      ['a/c', '\\', false],
      ["it's", "'S", true],
      ['"a"', '"A"', true],
      ['grün', 'ÜN', false],
      ['grün', 'rün', true],
      ['🏴', '🏴', true],
    ] as const)
      assert.equal(await found(text, column => containsTextSql(column, search)), expected, `${search} in ${text}`)
  })

  it('matches every JSON text whose property has the value', async () => {
    const value = fc.oneof(
      fc.string({ maxLength: 4 }),
      fc.constantFrom('%', '_', '\\', "'", 'K', 'İ', 'true', '1.0', '\u0000', '🏴', 'é'),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
    )
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 3 }), value, fc.string({ maxLength: 3 }), async (key, value, other) => {
        const text = JSON.stringify(
          Object.fromEntries([
            [other, 'x'],
            [key, value],
          ]),
        )
        for (const asked of [undefined, value, ['none', value]] as (JsonValue | undefined)[])
          assert.ok(
            await found(text, column => mayContainPartsSql(column, findPropertyTextParts(key, asked))),
            `${text} ${asked}`,
          )
      }),
      { numRuns: 100 },
    )
    const parts = findPropertyTextParts('plan', 'a_b')
    assert.equal(await found('{"plan":"a_b"}', column => mayContainPartsSql(column, parts)), true)
    for (const text of ['{"plan":"azb"}', '{"plan":"a"}', '{}'])
      assert.equal(await found(text, column => mayContainPartsSql(column, parts)), false, text)
  })
})

describe('a text in a separate column', () => {
  it('contains no NUL and no lone surrogate', () => {
    for (const [text, expected] of [
      ['', ''],
      ['a🏴é', 'a🏴é'],
      ['\0a\0', '\ufffda\ufffd'],
      ['\ud800', '\ufffd'],
      ['a\udc00\ud800b', 'a\ufffd\ufffdb'],
      ['\ud83c\udff4', '🏴'],
    ] as const)
      assert.equal(toStorableText(text), expected)
  })

  it('is made storable both as the argument of a method and as a direct field of an argument', async () => {
    const { take } = makeTextArgumentsStorable({ take: async (...args: unknown[]) => args })
    const [list, nested, plain] = [['\0'], { inner: { text: '\0' } }, { text: 'a', number: 1 }]
    const args = await take('\0', { text: '\0', number: 1 }, list, nested, plain, null, undefined, 5)
    assert.deepEqual(args, ['\ufffd', { text: '\ufffd', number: 1 }, list, nested, plain, null, undefined, 5])
    // Objects without changes are not copied.
    assert.equal(args[4], plain)
    assert.equal(toStorableFields(plain), plain)
  })
})
