import assert from 'node:assert/strict'
import { it } from 'node:test'
import { allowNull, matchesSchema, type Schema, Type } from './file-schema.ts'

const text = Type.String({ minLength: 1, maxLength: 3 })
const day = Type.Object({ day: text, note: Type.Optional(allowNull(Type.String())) })
const strict = Type.Object({ day: text }, { additionalProperties: false })

const cases: readonly [
  name: string,
  schema: Schema<unknown>,
  takes: readonly unknown[],
  refuses: readonly unknown[],
][] = [
  ['a text', text, ['a', 'abc'], ['', 'abcd', 1, null, ['a']]],
  ['a number', Type.Number(), [0, -1.5], ['1', Number.NaN, Number.POSITIVE_INFINITY, null]],
  ['a boolean', Type.Boolean(), [true, false], [0, 'true', null]],
  ['a literal', Type.Literal(1), [1], [2, '1', true]],
  ['one of some texts', Type.Enum(['a', 'b']), ['b'], ['c', '', null]],
  ['a list', Type.Array(text, { minItems: 1 }), [['a'], ['a', 'b']], [[], [1], ['a', 1], { 0: 'a', length: 1 }]],
  ['an object', day, [{ day: 'a' }, { day: 'a', note: null, more: 1 }], [{}, { day: 'a', note: 1 }, [], null, 'a']],
  [
    'a strict object',
    strict,
    [{ day: 'a' }],
    [
      { day: 'a', more: 1 },
      { day: 'a', toString: 1 },
    ],
  ],
  ['an object of any keys', Type.Record(text), [{}, { a: 'a' }], [{ a: 1 }, [], null]],
  ['an alternative', Type.Union([text, Type.Number()]), ['a', 1], [true, null, 'abcd']],
]

for (const [name, schema, takes, refuses] of cases)
  it(`a schema for ${name} accepts only valid values`, () => {
    for (const value of takes) assert.equal(matchesSchema(schema, value), true, JSON.stringify(value))
    for (const value of refuses) assert.equal(matchesSchema(schema, value), false, JSON.stringify(value))
  })

it('a schema reports where each fault is', () => {
  const schema = Type.Object({ days: Type.Array(day), 'a/b~c': Type.Optional(strict) })
  assert.deepEqual(schema.faults({ days: [{ day: 'a' }, { day: 1 }, {}], 'a/b~c': { day: 'a', dya: 1 } }), [
    { at: '/days/1/day', what: 'must be string' },
    { at: '/days/2', what: 'must have required properties day' },
    { at: '/a~1b~0c', what: 'must not have additional properties', unknownKeys: ['dya'] },
  ])
})
