import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RE2JS } from 're2js'
import { isLinear } from '../../../../tests/support/cpu-time.ts'
import { compileFlagRegex, patternCharsMax, subjectBytesMax } from './regex-dialect.ts'

function finds(pattern: string, text: string): boolean | null {
  const regex = compileFlagRegex(pattern)
  assert.ok(regex.ok, `${pattern}: ${regex.ok ? '' : regex.error}`)
  return regex.value.find(text)
}

describe('compileFlagRegex', () => {
  it('compiles a pattern once for all who use it at the same time', () => {
    const first = compileFlagRegex('^x{1000}$')
    const second = compileFlagRegex('^x{1000}$')
    assert.ok(first.ok && second.ok)
    assert.equal(first.value, second.value)
  })

  it('matches anywhere in a text, and counts in code points', () => {
    assert.equal(finds('user\\d+@', 'my user12@x'), true)
    assert.equal(finds('^.$', '😀'), true)
    assert.equal(finds('^a.b$', 'a\nb'), false)
  })

  it('matches digits, words and white space as in Unicode, also inside character classes', () => {
    assert.equal(finds('^\\d$', '٣'), true)
    assert.equal(finds('^\\w+$', 'naïve_用户'), true)
    assert.equal(finds('^[\\w.]+$', 'é.ñ'), true)
    assert.equal(finds('^[\\W]$', 'é'), false)
    assert.equal(finds('^[\\W]$', '!'), true)
    assert.equal(finds('^[^\\S]$', '\u2003'), true)
    assert.equal(finds('^\\S$', '\u00a0'), false)
    assert.equal(finds('^\\D$', '٣'), false)
  })

  it('supports named groups, inline flags and code points', () => {
    assert.equal(finds('(?P<n>a)(?<m>b)', 'ab'), true)
    assert.equal(finds('(?i)É', 'é'), true)
    assert.equal(finds('^\\u{1F600}\\u0041$', '😀A'), true)
    assert.equal(finds('[[:alpha:]]\\pL\\p{Greek}', 'abω'), true)
    assert.equal(finds('[]a]+', ']'), true)
    assert.equal(finds('a\\++', 'a++'), true)
  })

  it('allows repetition of an escape that ends in a brace, but not of another repetition', () => {
    assert.equal(finds('^\\p{Greek}+$', 'αβ'), true)
    assert.equal(finds('^(?:\\x{41}+|\\u{1F600}+)$', '😀😀'), true)
    assert.equal(finds('^a{2}?$', 'aa'), true)
    for (const pattern of ['a{2}+', 'a*+', 'a?+']) assert.equal(compileFlagRegex(pattern).ok, false, pattern)
  })

  it('refuses patterns that need backtracking, or that RE2 would read differently', () => {
    const patterns = [
      '(?=a)',
      '(?!a)',
      '(?<=a)b',
      '(?<!a)b',
      '(a)\\1',
      '(?>a)',
      'a++',
      'a*+',
      'a{2}+',
      '\\h',
      '(?x)a b',
    ]
    patterns.push('[a-z&&b]', '[a--b]', '[a~~b]', '[a[bc]]', '\\Qa\\E', '(', '[a', '\\', 'a{2,1}', '\\b{start}')
    for (const pattern of patterns) assert.equal(compileFlagRegex(pattern).ok, false, pattern)
  })

  it('limits the length of the pattern and of the searched text', () => {
    assert.equal(compileFlagRegex('a'.repeat(patternCharsMax)).ok, true)
    assert.equal(compileFlagRegex('a'.repeat(patternCharsMax + 1)).ok, false)
    assert.equal(finds('a', 'a'.repeat(subjectBytesMax)), true)
    assert.equal(finds('a', 'a'.repeat(subjectBytesMax + 1)), null)
    assert.equal(finds('é', 'é'.repeat(subjectBytesMax / 2 + 1)), null)
  })

  // Without the limit, this blocked the event loop for two seconds.
  it('refuses to search a text that would take too long, and tells which searches may be slow', t => {
    const searches = t.mock.method(RE2JS.prototype, 'test').mock
    for (const pattern of ['(?:a?){900}a{900}b', '(?:[ab]?){990}[ab]*a[ab]{990}[cd]']) {
      const text = `cb${'aab'.repeat(5_000)}`
      assert.equal(finds(pattern, text), null, pattern)
      assert.equal(searches.callCount(), 0, pattern)
    }
    assert.equal(finds('^.{1,1000}$', 'a'.repeat(1_000)), true)
    assert.equal(finds('(foo|bar)\\d+$', `${'a'.repeat(16_000)}bar7`), true)
    assert.equal(searches.callCount(), 2, 'an allowed search calls the counted engine')
    const regex = compileFlagRegex('^.{1,1000}$')
    assert.ok(regex.ok)
    assert.deepEqual([regex.value.isSlow('a'), regex.value.isSlow('a'.repeat(1_000))], [false, true])
  })

  // Compiling each of these would take from thirty times as long as a usual pattern up to seconds.
  it('refuses a pattern that takes long to compile, without compiling it', t => {
    const compilations = t.mock.method(RE2JS, 'compile').mock
    for (const piece of [
      'a{999}',
      'a{0,999}',
      '(?:a?){999}',
      '(){999}',
      '((a{9}){9}){9}',
      '\\w',
      '\\S\\W',
      '[\\W]',
      '(?i)\\pL',
      '(?i)[B-\u{1E942}]',
      '(?i)[\\S]',
      '(?i:[[:^alpha:]])',
    ]) {
      const pattern = piece.repeat(Math.floor(patternCharsMax / piece.length))
      const compiled = compileFlagRegex(pattern)
      assert.match(compiled.ok ? '' : compiled.error, /too large/, piece)
      assert.equal(compilations.callCount(), 0, piece)
    }
    assert.ok(compileFlagRegex('^compiled only here$').ok)
    assert.equal(compilations.callCount(), 1, 'an allowed pattern is compiled by the counted engine')
  })

  it('accepts ordinary patterns, however long', () => {
    for (const pattern of [
      String.raw`^[\w.+-]{1,64}@[\w-]{1,63}(\.[\w-]{1,63}){1,8}$`,
      String.raw`(?i)^(алма|[а-я]{2,30}|[\s\S]*\bбета\b.*)$`,
      String.raw`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$`,
      '^.{1,1000}$',
      `^(${Array.from({ length: 100 }, (_, index) => `tenant-${index}`).join('|')})$`
        .slice(0, 1_000)
        .replace(/\|[^|]*$/, ')$'),
    ]) {
      const compiled = compileFlagRegex(pattern)
      assert.ok(compiled.ok, `${pattern}: ${compiled.ok ? '' : compiled.error}`)
    }
  })

  it('stays quick where a backtracking engine would not', () => {
    const look = (times: number) => {
      const text = `${'a'.repeat(250 * times)}!`
      return () => assert.equal(finds('(a+)+$', text), false)
    }
    assert.ok(isLinear(look))
  })
})
