import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonValue } from '../../json.ts'
import { findPropertyTextParts, type TextParts } from './property-text-parts.ts'

describe('the parts that a JSON text must contain for an exact filter on a property to match', () => {
  it('are the parts of its name and value that are the same in every possible spelling', () => {
    const cases: readonly (readonly [JsonValue, readonly TextParts[]])[] = [
      ['Ann@X.com', [['"plan":"ann@x.com"']]],
      ['50%_off', [['"plan":"50%_off"']]],
      ['mike/"Z"\\müller', [['"plan":"m', 'e', 'z', 'm', 'ller"']]],
      ['日本語', [['"plan":"']]],
      ['a', [['"plan":"a"']]],
      ['', [['"plan":""']]],
      [
        ['ann', 'bob'],
        [['"plan":"ann"'], ['"plan":"bob"']],
      ],
      [12345, [['"plan":', '12345']]],
      ['-12345', [['"plan":', '-12345']]],
      [
        ['true', 'pro'],
        [['"plan":', 'true'], ['"plan":"pro"']],
      ],
      [`a${'b'.repeat(200)}`, [[`"plan":"a${'b'.repeat(99)}`]]],
    ]
    for (const [filter, parts] of cases)
      assert.deepEqual(findPropertyTextParts('Plan', filter), parts, JSON.stringify(filter))
  })

  it('are only those of the name if boolean-like values are compared, or if a value has several literals', () => {
    const cases: readonly JsonValue[] = [
      ...[true, 'FALSE', ['true', 'false'], [], 1.5, '100.0', '1e+16', '-0.0', '12.', '{"a":"b"}', [['abc', 'abd']]],
      Array.from({ length: 21 }, (_, n) => `user-${n}`),
    ]
    for (const filter of cases)
      assert.deepEqual(findPropertyTextParts('plan', filter), [['"plan":']], JSON.stringify(filter))
    assert.deepEqual(findPropertyTextParts('plan', [12345, 1.5]), [['"plan":', '12345'], ['"plan":']])
  })

  it('omit characters of a name that JSON may write in another form', () => {
    for (const [key, parts] of [
      ['email', ['"ema', 'l":']],
      ['i"x', ['x":']],
      ['naïve', ['"na', 've":']],
      ['日本', []],
      ['a'.repeat(300), [`"${'a'.repeat(100)}`]],
    ] as const)
      assert.deepEqual(findPropertyTextParts(key, undefined), [parts], key)
  })

  it('omit every ASCII letter that also results from case folding other characters', () => {
    const letters = new Set<string>()
    for (let point = 0x80; point <= 0x10ffff; point++)
      for (const letter of String.fromCodePoint(point).toLowerCase().match(/[ -~]/g) ?? []) letters.add(letter)
    assert.deepEqual([...letters].sort(), ['i', 'k'])
  })
})
