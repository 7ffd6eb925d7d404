import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatOutsideText, showOutsideText } from './outside-text.ts'

describe('text from outside', () => {
  it('is shown as it is if all of it can be seen', () => {
    for (const text of ['', 'new-checkout', 'زكي <b>{{7*7}}</b>', 'a  b', '👩‍👩‍👧 می‌خواهم'])
      assert.equal(formatOutsideText(text), text)
  })

  it('shows control characters as pictures, with their code points', () => {
    assert.deepEqual(showOutsideText('a\u0000b\u001b\u007f').parts, [
      { text: 'a' },
      { text: '␀', codePoint: 'U+0000' },
      { text: 'b' },
      { text: '␛', codePoint: 'U+001B' },
      { text: '␡', codePoint: 'U+007F' },
    ])
    assert.equal(formatOutsideText('\u0085\n\t'), '[U+0085]␊␉')
  })

  it('shows what changes the direction of text, and what has no width', () => {
    assert.equal(formatOutsideText('exe.\u202Egpj'), 'exe.[RLO]gpj')
    assert.equal(formatOutsideText('\u2066a\u2069\u200B\uFEFF'), '[LRI]a[PDI][ZWSP][BOM]')
  })

  it('shows half of a surrogate pair as its code', () => {
    assert.equal(formatOutsideText('a\uD83Db'), 'a[U+D83D]b')
    assert.equal(formatOutsideText('😀'), '😀')
  })

  it('shows spaces at either end, which are easily overlooked', () => {
    assert.equal(formatOutsideText('  ada '), '␠␠ada␠')
    assert.equal(formatOutsideText('   '), '␠␠␠')
  })

  it('keeps line breaks and tabs where the text may have several lines', () => {
    assert.equal(formatOutsideText('a\n\tb\r', { isMultiline: true }), 'a\n\tb␍')
  })

  it('leaves out the middle of a long text', () => {
    const text = 'a'.repeat(5_000) + 'b'.repeat(5_000)
    const { parts, isTruncated } = showOutsideText(text)
    assert.equal(parts.map(part => part.text).join(''), `${'a'.repeat(40)}…${'b'.repeat(39)}`)
    assert.ok(isTruncated)
    assert.ok(!showOutsideText('a'.repeat(80)).isTruncated)
    assert.equal(formatOutsideText('abcdefgh', { charsMax: 5 }), 'ab…gh')
  })

  it('does not break a character from its marks, unless it has absurdly many', () => {
    const family = '👩‍👩‍👧'
    assert.equal(formatOutsideText(`a${family}${'b'.repeat(20)}`, { charsMax: 9 }), 'a…bbbb')
    const marks = formatOutsideText(`a${'\u0301'.repeat(10_000)}`)
    assert.ok(marks.length <= 80, String(marks.length))
    for (let charsMax = 2; charsMax < 12; charsMax++)
      assert.doesNotMatch(formatOutsideText('😀'.repeat(50), { charsMax }), /\p{Surrogate}|U\+D/u)
  })
})
