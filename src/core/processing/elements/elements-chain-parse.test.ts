import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLinear } from '../../../../tests/support/cpu-time.ts'
import { parseElementsChain } from './elements-chain-parse.ts'

test('an elements chain is read as tags, classes, named keys and attributes, innermost element first', () => {
  const [link, body, ...rest] = parseElementsChain(
    'a.btn.primary:attr__class="btn primary"href="/x"nth-child="2"nth-of-type="1"text="Go";body:nth-child="0"nth-of-type="0"',
  )
  assert.deepEqual(rest, [])
  assert.deepEqual(link, {
    tagName: 'a',
    text: 'Go',
    href: '/x',
    attrId: null,
    classes: ['btn', 'primary'],
    nthChild: 2,
    nthOfType: 1,
    attributes: new Map([['attr__class', 'btn primary']]),
  })
  assert.equal(body!.tagName, 'body')
})

test('semicolons, colons, dots and escaped quotes inside values are kept', () => {
  const [only, ...rest] = parseElementsChain('a:href="https://x.y/;z?q=1"text="say \\"hi\\"; now"')
  assert.deepEqual(rest, [])
  assert.equal(only!.text, 'say "hi"; now')
  assert.equal(only!.href, 'https://x.y/;z?q=1')
})

test('classes that contain colons, and elements without attributes, are read', () => {
  const elements = parseElementsChain('div.md:flex.lg:grid:nth-child="1";span;p.lead:')
  assert.deepEqual(
    elements.map(element => [element.tagName, element.classes]),
    [
      ['div', ['md:flex', 'lg:grid']],
      ['span', []],
      ['p', ['lead']],
    ],
  )
})

test('empty and broken text is read without an exception', () => {
  assert.deepEqual(parseElementsChain(''), [])
  assert.equal(parseElementsChain('a:href="never closed').length, 1)
  assert.equal(parseElementsChain('a:::"";;"="').length > 0, true)
  assert.equal(parseElementsChain(';'.repeat(5_000)).length, 500)
})

test('a long attribute list is read in linear time', () => {
  const parse = (times: number) => {
    const chain = `a:${'k="v"'.repeat(1_000 * times)}`
    return () => void parseElementsChain(chain)
  }
  assert.ok(isLinear(parse))
})
