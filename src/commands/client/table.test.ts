import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toPrintable, toPrintableName } from '#core/printable.ts'
import { formatBarChart, sumNeighbours } from './bar-chart.ts'
import { formatTable } from './table.ts'
import { plainTerminal, type Terminal } from './terminal.ts'
import { measureTextWidth, truncateToWidth } from './text-width.ts'

describe('the width of a text in a terminal', () => {
  const widths: [text: string, width: number][] = [
    ['', 0],
    ['plain', 5],
    ['Größe', 5],
    ['Gro\u0308ße', 5],
    ['Ελληνικά', 8],
    ['русский', 7],
    ['עברית', 5],
    ['العربية', 7],
    ['हिन्दी', 5],
    ['ภาษาไทย', 7],
    ['日本語', 6],
    ['ｶﾀｶﾅ', 4],
    ['ＡＢ', 4],
    ['한국어', 6],
    ['한국어', 6],
    ['👍', 2],
    ['👍🏽', 2],
    ['👩‍👩‍👧', 2],
    ['🇳🇴', 2],
    ['☂️', 2],
    ['a\u200db', 2],
  ]
  for (const [text, width] of widths)
    it(`is ${width} for ${JSON.stringify(text)}`, () => assert.equal(measureTextWidth(text), width))

  it('stays within the limit when the text is truncated, and only whole characters are kept', () => {
    assert.deepEqual(
      [4, 3, 2, 1, 0].map(width => truncateToWidth('日本', width)),
      ['日本', '日…', '…', '…', ''],
    )
    assert.equal(truncateToWidth('👩‍👩‍👧👩‍👩‍👧', 3), '👩‍👩‍👧…')
  })
})

describe('a table', () => {
  interface Row {
    readonly name: string
    readonly count: number
  }
  const columns = [
    { title: 'NAME', value: (row: Row) => row.name, widthMin: 6 },
    { title: 'COUNT', value: (row: Row) => String(row.count), align: 'right' as const },
  ]

  it('aligns names in every script, and escapes control characters', () => {
    const rows = [
      { name: 'plain', count: 1 },
      { name: '日本語', count: 22 },
      { name: 'e\u0301\u001b[31m', count: 333 },
      { name: '\u202etxt', count: 4 },
    ]
    assert.deepEqual(formatTable(columns, rows, plainTerminal), [
      'NAME         COUNT',
      'plain            1',
      '日本語          22',
      'e\u0301\\u001b[31m    333',
      '\\u202etxt        4',
    ])
  })

  it('truncates columns that allow it to fit a terminal, and truncates nothing otherwise', () => {
    const narrow: Terminal = { ...plainTerminal, width: 16 }
    const rows = [{ name: 'a name that is far too long', count: 1 }]
    assert.deepEqual(formatTable(columns, rows, narrow), ['NAME       COUNT', 'a name t…      1'])
    assert.deepEqual(formatTable(columns, rows, { ...narrow, width: 5 }), ['NAME    COUNT', 'a nam…      1'])
    assert.equal(formatTable(columns, rows, plainTerminal)[1], 'a name that is far too long      1')
  })

  it('aligns cells without counting their colour codes', () => {
    const painting: Terminal = { width: 80, paint: (style, text) => `<${style}>${text}</>` }
    const painted = [{ ...columns[0]!, style: () => 'green' as const }, columns[1]!]
    assert.deepEqual(formatTable(painted, [{ name: 'a', count: 1 }], painting), [
      '<bold>NAME</>  <bold>COUNT</>',
      '<green>a</>         1',
    ])
  })
})

describe('a one-line chart', () => {
  it('has a bar for each value above 0, and the greatest value has the full height', () => {
    assert.equal(formatBarChart([0, 1, 50, 100, 800]), ' ▁▁▁█')
    assert.equal(formatBarChart([1, 2, 3, 4, 5, 6, 7, 8]), '▁▂▃▄▅▆▇█')
    assert.equal(formatBarChart([4, 0], 8), '▄ ')
    assert.equal(formatBarChart([0, 0]), '  ')
    assert.equal(formatBarChart([]), '')
  })

  it('adds up neighbouring values if there are more values than columns', () => {
    assert.deepEqual(sumNeighbours([1, 2, 3, 4, 5], 2), { sums: [6, 9], perSum: 3 })
    assert.deepEqual(sumNeighbours([1, 2], 5), { sums: [1, 2], perSum: 1 })
    assert.deepEqual(sumNeighbours([], 5), { sums: [], perSum: 1 })
  })
})

describe('text that is made printable', () => {
  it('never moves the cursor, and never reverses or breaks the line', () => {
    assert.equal(
      toPrintable('a\u001b[2J\r\n\u0085\u2028\u202e\ud800\u200d'),
      'a\\u001b[2J\\u000d\\u000a\\u0085\\u2028\\u202e\\ud800\\u200d',
    )
    assert.equal(toPrintableName('a\u001b\u009b\u061c\u200c\u200d👩‍👧'), 'a\\u001b\\u009b\\u061c\u200c\u200d👩‍👧')
  })
})
