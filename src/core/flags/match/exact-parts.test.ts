import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonValue } from '../../json.ts'
import { partsOfExact } from './exact-parts.ts'

describe('the parts that a JSON text has where an exact filter matches', () => {
  it('are those of the value that no other form of it lacks', () => {
    const cases: readonly (readonly [JsonValue, ReturnType<typeof partsOfExact>])[] = [
      ['Ann@X.com', [['ann@x.com']]],
      ['50%_off', [['50%_off']]],
      ['mike/"Z"\\müller', [['m', 'e', 'z', 'm', 'ller']]],
      [
        ['ann', 'bob'],
        [['ann'], ['bob']],
      ],
      [12345, [['12345']]],
      ['-12345', [['-12345']]],
      [
        ['true', 'pro'],
        [['true'], ['pro']],
      ],
      [`a${'b'.repeat(200)}`, [[`a${'b'.repeat(99)}`]]],
    ]
    for (const [filter, parts] of cases) assert.deepEqual(partsOfExact(filter), parts, JSON.stringify(filter))
  })

  it('are not known where truth is compared, a number has several literals, or little is left', () => {
    const cases: readonly JsonValue[] = [
      ...[true, 'FALSE', ['true', 'false'], [], ''],
      ...[1.5, '100.0', '1e+16', '-0.0', '12.', [12345, 1.5]],
      ...[['["a","b"]'], '{"a":"b"}', [['abc', 'abd']]],
      ...['日本語', 'ab', 'kiki', ['ann', 'x'], Array.from({ length: 21 }, (_, n) => `user-${n}`)],
    ]
    for (const filter of cases) assert.equal(partsOfExact(filter), null, JSON.stringify(filter))
  })

  it('leave out every ASCII letter that other characters fold to', () => {
    const letters = new Set<string>()
    for (let point = 0x80; point <= 0x10ffff; point++)
      for (const letter of String.fromCodePoint(point).toLowerCase().match(/[ -~]/g) ?? []) letters.add(letter)
    assert.deepEqual([...letters].sort(), ['i', 'k'])
  })
})
