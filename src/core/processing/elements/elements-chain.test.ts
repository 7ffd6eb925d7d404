import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { anEvent } from '../../../../tests/support/values.ts'
import { aWorld } from '../../../../tests/support/world/world.ts'
import { formatElementsChain } from './elements-chain.ts'
import { parseElementsChain } from './elements-chain-parse.ts'

const place = 'nth-child="0"nth-of-type="0"'

describe('6.8: the chain of elements', () => {
  it('has the tag, sorted classes, and attributes sorted by key regardless of case', () => {
    const element = {
      tag_name: 'svg',
      attr__class: ' b  a"b ',
      attr__viewBox: '0',
      'attr__view-x': 1,
      attr__xmlns: true,
      attr__id: 'i',
      nth_child: 2,
    }
    assert.equal(
      formatElementsChain([element]),
      'svg.ab.b:attr__class=" b  a\\"b "attr__id="i"attr__view-x="1"attr__viewBox="0"attr__xmlns="true"attr_id="i"nth-child="2"nth-of-type="0"',
    )
  })

  it('also accepts classes as a list', () => {
    assert.equal(formatElementsChain([{ tag_name: 'a', attr__class: ['b', 'a'] }]), `a.a.b:attr__class="a,b"${place}`)
  })

  it('escapes quotes in values and in keys', () => {
    assert.equal(formatElementsChain([{ 'attr__a"b': 'c"d' }]), `:attr__a\\"b="c\\"d"${place}`)
  })

  it('truncates texts to 400 and addresses to 2,048 characters, and escapes a lone surrogate', () => {
    const [element] = parseElementsChain(
      formatElementsChain([{ tag_name: 'a', $el_text: 'x'.repeat(500), attr__href: 'h'.repeat(3_000) }]),
    )
    assert.deepEqual([element?.text?.length, element?.href?.length], [400, 2_048])
    const split = formatElementsChain([{ $el_text: `${'x'.repeat(399)}😀` }])
    assert.ok(split.endsWith(`text="${'x'.repeat(399)}\\ud83d\\"`), split.slice(-20))
    assert.ok(split.isWellFormed())
  })

  it('leaves out items that are not elements, and missing values', () => {
    const odd: JsonValue[] = [
      null,
      'a',
      5,
      [],
      { tag_name: 7, $el_text: 5, attr__href: null, attr__id: '', nth_child: null },
    ]
    assert.equal(formatElementsChain(odd), `:attr__id=""${place}`)
  })

  it('is stored as sent if present, otherwise built from a list of elements, otherwise empty', async () => {
    for (const [properties, chain] of [
      [{ $elements_chain: 'a:x', $elements: [{ tag_name: 'b' }] }, 'a:x'],
      [{ $elements_chain: '', $elements: [{ tag_name: 'b' }] }, `b:${place}`],
      [{ $elements_chain: 5, $elements: [] }, ''],
      [{ $elements: { tag_name: 'b' } }, ''],
      [{ $elements: 'b' }, ''],
      [{}, ''],
    ] as [JsonObject, string][]) {
      const world = aWorld()
      await world.apply(anEvent('$autocapture', 'ada', properties))
      assert.deepEqual([world.rows[0]?.elementsChain, world.rows[0]?.propertiesJson], [chain, '{}'])
    }
  })
})
