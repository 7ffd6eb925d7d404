import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { outcomeOf, unpackedFile } from '../../../tests/support/reading.ts'
import { CompressionDamage } from './byte-reader.ts'
import { detectTextFormat, readTextRecords, type TextFormat } from './text-records.ts'

const damage = new CompressionDamage('damaged')

describe('CSV rows that end in a carriage return alone', () => {
  it('are read like rows with other line ends', async () => {
    const text = 'a;"b\rc"\r1;"x\ry\nz"\r2;5" disk\r3;'
    assert.deepEqual(await read(text, 'csv'), [
      '3:8 {"a":"1","b\\rc":"x\\ry\\nz"}',
      '5:18 {"a":"2","b\\rc":"5\\" disk"}',
      '6:28 {"a":"3"}',
    ])
    const [first] = await records(text, 'csv')
    assert.equal(Buffer.from(first!.bytes).toString(), '1;"x\ry\nz"')
  })

  itReads('are recognized only if the first row ends so', 'csv', [
    ['"a\rb",c\r\n1,2\r\n', ['2:9 {"a\\rb":"1","c":"2"}']],
    ['a,b\r\r\n1,2\r\r\n', ['2:6 {"a":"1","b":"2"}']],
    ['a,b\r\r1,2\r', ['2:4 blank_line', '3:5 {"a":"1","b":"2"}']],
    ['a,b\n1,x\ry\n', ['2:4 {"a":"1","b":"x\\ry"}']],
    ['"a\nb",c\r1,2\r', ['2:8 {"a\\nb":"1","c":"2"}']],
  ])
})

describe('lines of JSON', () => {
  itReads('are records with the line and the byte at which they start', 'json', [
    ['{"a":1}\r\n\n {"b":"é"}\n{"c":3}', ['1:0 {"a":1}', '2:9 blank_line', '3:10 {"b":"é"}', '4:22 {"c":3}']],
  ])

  itReads('keep the digits of large numbers, and lose a byte order mark', 'json', [
    ['\ufeff{"id":9007199254740993}\n', ['1:0 {"id":9007199254740993}']],
  ])

  itReads('that are broken are rejected with a reason, and the following ones are read', 'json', [
    [
      Buffer.from('{"a":\n[1]\n7\n{"a":"\xff"}\n{"z":1}\n', 'latin1'),
      ['1:0 json_syntax', '2:6 json_not_object', '3:10 json_not_object', '4:12 encoding_invalid_utf8', '5:22 {"z":1}'],
    ],
  ])

  itReads('may contain lists, and several objects', 'json', [
    [
      '\ufeff{"a":1}{"b":"}{"}\r\n [{"c":3}, {"d":[]}]\n[]\n',
      ['1:3 {"a":1}', '1:10 {"b":"}{"}', '2:24 {"c":3}', '2:33 {"d":[]}'],
    ],
    ['{"z":1}\n\ufeff{"a":1}{"b":2}\n', ['1:0 {"z":1}', '2:11 {"a":1}', '2:18 {"b":2}']],
    ['{"e":5},\n{"f":6} {"g":\n', ['1:0 {"e":5}', '2:9 {"f":6}', '2:17 json_syntax']],
    ['[{"h":8}\n{"i":9}{"j', ['1:1 {"h":8}', '1:8 json_syntax', '2:9 {"i":9}', '2:16 truncated_record']],
  ])

  const actions = Array.from({ length: 60 }, (_, index) => `{"action":${index}}`).join()
  for (const line of [
    '"event":"A","properties":{"x":{"y":1}},"t":{"u":2}}',
    '{"a":1} nothing {"b":2}',
    '{"a":1}]{"b":2}',
    '{"a":1}}{"b":2}',
    `"visit":7,"actions":[${actions}],"end":8}`,
    `7},{"visit":8,"actions":[${actions}]}`,
    `"visit":7} [${actions}] {"visit":8}`,
  ])
    it(`that lack their beginning, or contain other text between objects, have one reject: ${line.slice(0, 30)}`, async () => {
      const found = await records(`{"z":1}\n${line}\n{"z":2}\n`, 'json', { bytesMax: 1_000 })
      assert.deepEqual(found.map(shown), ['1:0 {"z":1}', '2:8 json_syntax', `3:${line.length + 9} {"z":2}`])
      assert.equal(found[1]!.bytes.toString(), line)
    })

  it('are read until other text begins, even if they are long', async () => {
    const found = await read(`[${actions}] lost [${actions}]\n{"z":2}\n`, 'json', { bytesMax: 1_000 })
    const rejects = found.filter(record => record.endsWith('json_syntax'))
    assert.equal(rejects.length, 1)
    assert.ok(found.length > 30, 'what stands before it is read')
    assert.match(found.at(-1)!, / \{"z":2\}$/)
  })

  for (const [name, open, between, close] of [
    ['objects without anything between them', '', '', ''],
    ['a list', '[', ', ', ']'],
    ['lists', '[', '][', ']'],
  ] as const)
    it(`may be larger than memory: ${name} on one line`, async () => {
      const values = Array.from({ length: 40 }, (_, index) => ({ index, text: '}{'.repeat(index % 7) }))
      const text = `${open}${values.map(value => JSON.stringify(value)).join(between)}${close}\n{"z":1}\n`
      const whole = await records(text, 'json')
      assert.deepEqual(
        whole.map(({ parsed }) => outcomeOf(parsed)),
        [...values, { z: 1 }],
      )
      for (const cuts of [[], [100, 101, 500], everyByte(text)])
        assert.deepEqual((await records(text, 'json', { bytesMax: 90, cuts })).map(all), whole.map(all))
      for (const { raw, bytes } of whole)
        assert.equal(Buffer.from(text).toString('latin1', raw.byte, raw.byte + bytes.length), bytes.toString())
    })

  it('are rejected if they are too long, with only their beginning kept', async () => {
    const found = await records(`{"a":"${'x'.repeat(200_000)}"}\n{"z":1}\n`, 'json', { bytesMax: 100_000 })
    assert.deepEqual(found.map(shown), ['1:0 record_too_large', '2:200009 {"z":1}'])
    assert.ok(found[0]!.bytes.length < 100_000)
  })

  const twoLines = Buffer.from('{"a":1}\n{"b":"é"}')
  itReads('that end in the middle are rejected as cut off, also within a character', 'json', [
    ...[9, 14, 15].map(length => [twoLines.subarray(0, length), ['1:0 {"a":1}', '2:8 truncated_record']] as const),
    [twoLines, ['1:0 {"a":1}', '2:8 {"b":"é"}']],
  ])

  itReads('of a damaged file end with one reject, whether the damage is within a record or between two', 'json', [
    ['{"a":1}\n{"b"', ['1:0 {"a":1}', '2:8 compressed_input'], { damage }],
    ['{"a":1}\n', ['1:0 {"a":1}', '2:8 compressed_input'], { damage }],
    ['', ['1:0 compressed_input'], { damage }],
  ])
})

describe('a JSON list', () => {
  itReads('is read into its elements, however formatted', 'array', [
    [
      '\ufeff [\n  {"a":"]},{\\"[",\n   "b":[1,{"c":2}]},\n',
      ['2:8 {"a":"]},{\\"[","b":[1,{"c":2}]}', '4:45 truncated_record'],
    ],
    ['[{"d":{}} , 7,"x", [1],true]\n', ['1:1 {"d":{}}', ...[12, 14, 19, 23].map(at => `1:${at} json_not_object`)]],
    ['[]', []],
  ])

  itReads('that is not closed is rejected as cut off', 'array', [
    ['[{"a":1},', ['1:1 {"a":1}', '1:9 truncated_record']],
    ['[{"a":1}', ['1:1 {"a":1}', '1:8 truncated_record']],
    ['[{"a":1}', ['1:1 {"a":1}', '1:8 compressed_input'], { damage }],
    ['[{"a":1},{"b":', ['1:1 {"a":1}', '1:9 truncated_record']],
  ])

  itReads('may be absent: objects over several lines are read alike', 'array', [
    [
      '\ufeff{\n  "a": "}"\n}\n{}\nnull\n{\n"b":2}\n',
      ['1:3 {"a":"}"}', '4:18 {}', '5:21 json_not_object', '6:26 {"b":2}'],
    ],
    ['{\n  "b": [\n    1\n  ]\n}\n{"c":3}\n{\n"d":4}\n', ['1:0 {"b":[1]}', '6:23 {"c":3}', '7:31 {"d":4}']],
    ['{\n  "a": 1\n}\n{\n  "b"', ['1:0 {"a":1}', '4:13 truncated_record']],
  ])

  itReads('may be followed by others, and by objects', 'array', [
    // Concatenated pages of an API. As one value, thousands of visits would be a single reject.
    ['[{"a":1}]\n[{"b":2},\n{"c":3}]\n', ['1:1 {"a":1}', '2:11 {"b":2}', '3:20 {"c":3}']],
    ['[{"a":1}]\n[]{"d":4} {"e":5}\n', ['1:1 {"a":1}', '2:12 {"d":4}', '2:20 {"e":5}']],
    ['[{"a":1}] nothing\n', ['1:1 {"a":1}', '1:10 json_syntax']],
  ])

  itReads('that is broken does not affect others if each is on its own line', 'array', [
    ['[{"a":1}]\n[{"b":2},{"x":\n[{"e":4}]', ['1:1 {"a":1}', '2:11 {"b":2}', '2:19 json_syntax', '3:26 {"e":4}']],
    ['[{"a":1}]\n[{"c":"]","d":"3}]\n[{"e":4}]', ['1:1 {"a":1}', '2:11 json_syntax', '3:30 {"e":4}']],
    // Cut after a complete element, it is open when the next line starts another list.
    [
      '[{"a":1}]\n[{"b":2},\n [{"c":3}]\n[{"d":4},\n{"e":5}]\n',
      ['1:1 {"a":1}', '2:11 {"b":2}', '2:18 json_syntax', '3:22 {"c":3}', '4:32 {"d":4}', '5:41 {"e":5}'],
    ],
  ])

  itReads('may be followed by a line without its beginning, which has one reject', 'array', [
    [
      '[{"a":1}]\n"event":"A","p":{"x":{"y":1}},"t":{"u":2}}\n{"b":2}\nnull',
      ['1:1 {"a":1}', '2:10 json_syntax', '3:53 {"b":2}', '4:61 truncated_record'],
    ],
  ])

  itReads('over several lines may have lists at the start of a line', 'array', [
    [
      '[\n{"a":1},\n[2]\n]\n[{"b":3}]\n{"c"\n:4}',
      ['2:2 {"a":1}', '3:11 json_not_object', '5:18 {"b":3}', '6:27 {"c":4}'],
    ],
  ])
})

describe('rows of CSV', () => {
  itReads('become records of text values, without the empty cells; a quoted cell may span several lines', 'csv', [
    [
      'id,,"say ""hi"""\r\n1,x,"two\nlines, ""q"""\r\n\n2,,\n',
      ['2:18 {"id":"1","column_2":"x","say \\"hi\\"":"two\\nlines, \\"q\\""}', '4:42 blank_line', '5:43 {"id":"2"}'],
    ],
  ])

  for (const [name, delimiter] of [
    ['semicolons', ';'],
    ['tabs', '\t'],
    ['vertical bars', '|'],
  ] as const)
    it(`have ${name} between their cells if their header does`, async () => {
      const text = ['id;"a, b, c";note', '1;"x;y\n""z""";1,5', '2;y'].join('\n').replaceAll(';', delimiter)
      const [first, second] = await records(`${text}\n`, 'csv')
      assert.deepEqual(outcomeOf(first!.parsed), { id: '1', 'a, b, c': `x${delimiter}y\n"z"`, note: '1,5' })
      assert.deepEqual(first!.header, { columns: ['id', 'a, b, c', 'note'], delimiter })
      const detail = `the header names 3 columns between ${name}, and the row has 2`
      assert.deepEqual(second!.parsed, { rejected: { reason: 'csv_column_count', field: null, detail } })
    })

  itReads('may have a first line sep=; from Excel before their header', 'csv', [
    ['sep=;\r\na;b\r\n1,5;2\r\n', ['3:12 {"a":"1,5","b":"2"}']],
    ['\ufeffsep=;\r\na;b\r\n1,5;2\r\n', ['3:15 {"a":"1,5","b":"2"}']],
    [`sep=;\n"a;b";c\n1;"\\"x\\";y"`, ['3:14 {"a;b":"1","c":"\\"x\\";y"}']],
  ])

  itReads('may have a byte order mark before a quoted name with a line break', 'csv', [
    ['\ufeff"a\n(1)",b\n1,2\n', ['3:13 {"a\\n(1)":"1","b":"2"}']],
  ])

  it('may have quotes and backslashes escaped by a backslash, as Spark, Redshift and MySQL write them', async () => {
    const text = String.raw`id,said
1,"a \\"
2,"He said \"hi\""
3,"{\"a\":\"x\\\"y\",\"b\":\"C:\temp\"}"
4,"two\
lines, \"
more"
5,"\",\""
6,""
`
    const said = ['a \\', 'He said "hi"', '{"a":"x\\"y","b":"C:\\temp"}', 'two\nlines, "\nmore', '","', undefined]
    for (const cuts of [[], everyByte(text)])
      assert.deepEqual(
        (await values(text, { cuts })).map(value => value.said),
        said,
      )
    assert.equal((await records(text, 'csv'))[0]!.header!.hasEscapes, true)
  })

  it('keep backslashes if quotes are doubled', async () => {
    const text = String.raw`id,said,next
1,"C:\dir\",x
2,"{""a"":""x\""y""}","\"
3,"\""x\""",\"
`
    assert.deepEqual(await values(text), [
      { id: '1', said: 'C:\\dir\\', next: 'x' },
      { id: '2', said: '{"a":"x\\"y"}', next: '\\' },
      { id: '3', said: '\\"x\\"', next: '\\"' },
    ])
  })

  it('are not all read with backslash escapes because of one odd quote', async () => {
    const text = String.raw`id,p
1,"{\"a\":1}"
3,"C:\temp\"
4,"x"
`
    assert.deepEqual(
      (await values(text)).map(({ p }) => p),
      ['{"a":1}', 'C:\\temp\\', 'x'],
    )
    const spaced = String.raw`id,p
1,"C:\dir\" 
2,"a"
3,"C:\"
4,"D:\"
5,"b"`
    assert.deepEqual(
      (await values(spaced)).slice(-3).map(({ p }) => p),
      ['C:\\', 'D:\\', 'b'],
    )
  })

  it('keep a backslash before a character that is not the delimiter of the file', async () => {
    assert.deepEqual(await values('id,said\n1,"foo\\|bar \\; \\, \\"q\\""\n'), [
      { id: '1', said: 'foo\\|bar \\; , "q"' },
    ])
  })

  it('are rejected with a message that the header contains no known delimiter', async () => {
    const [record] = await records('id:event\n1,2\n', 'csv')
    assert.ok(record !== undefined && 'rejected' in record.parsed)
    assert.match(record.parsed.rejected.detail!, /1 column, without any commas, semicolons, tabs, vertical bars, and/)
  })

  itReads('with a different number of cells than the header are rejected', 'csv', [
    [
      'a,b\n1\n1,2,3\n1,2\n1',
      ['2:4 csv_column_count', '3:6 csv_column_count', '4:12 {"a":"1","b":"2"}', '5:16 truncated_record'],
    ],
  ])

  itReads('whose quote is never closed are rejected as cut off', 'csv', [
    ['a,b\n1,"2\n3,4\n', ['2:4 truncated_record']],
  ])

  it('are read as written if their cells contain quotes, commas, line breaks and spaces', async () => {
    const cell = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ' '), minLength: 1 })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ a: cell, b: cell }, { noNullPrototype: true })), async rows => {
        const lines = rows.map(row => `${Object.values(row).map(text => `"${text.replaceAll('"', '""')}"`)}\r\n`)
        assert.deepEqual(await values(`a,b\r\n${lines.join('')}`), rows)
      }),
    )
  })

  itReads('keep the cells of columns with duplicate names or without names', 'csv', [
    ['a,a,,a_2,a\n1,2,3,4,5\n', ['2:11 {"a":"1","a_2":"2","column_3":"3","a_2_2":"4","a_3":"5"}']],
  ])

  itReads('are not read if the header cannot be parsed', 'csv', [
    [Buffer.from('a,\xff\n1,2\n3,4\n', 'latin1'), ['1:0 encoding_invalid_utf8']],
  ])
})

describe('the format of a text', () => {
  const formats: readonly (readonly [object: string, text: string, format: TextFormat])[] = [
    ['x', '\n {"a":1}', 'json'],
    ['x', '\ufeff[{"a":1}]', 'array'],
    ['x.csv', '[', 'array'],
    ['x', '\ufeff{ \r\n "a": 1}', 'array'],
    ['x.csv', '{\n', 'csv'],
    ['x', 'a,b\n', 'csv'],
    ['x.json.gz', 'broken', 'json'],
    ['x.zip!y.csv', '{a},b', 'csv'],
    ['x', '', 'csv'],
  ]
  for (const [object, text, format] of formats)
    it(`is ${format} for ${JSON.stringify(text)} in ${object}`, async () => {
      assert.equal(await detectTextFormat(unpackedFile(Buffer.from(text), { object })), format)
    })
})

describe('a file in arbitrary chunks', () => {
  const marks = '{"a":1} \n \r\n \r , " [ ] { } \\ \ufeff €😀 {"ü":"ß\\n"}'.split(' ')
  const piece = fc.oneof(fc.constantFrom(' ', ...marks), fc.string({ unit: 'grapheme', maxLength: 5 }))
  const given = fc.tuple(
    fc.array(piece, { maxLength: 30 }),
    fc.array(fc.nat(200), { maxLength: 20 }),
    fc.constantFrom(10, 40, undefined),
  )
  for (const format of ['json', 'array', 'csv'] as const)
    it(`has the same records as in a single chunk, read as ${format}`, async () => {
      await fc.assert(
        fc.asyncProperty(given, async ([parts, cuts, bytesMax]) => {
          const text = (format === 'array' ? '[' : '') + parts.join('')
          const whole = (await records(text, format, { bytesMax })).map(all)
          for (const ends of [cuts, everyByte(text)])
            assert.deepEqual((await records(text, format, { bytesMax, cuts: ends })).map(all), whole)
        }),
      )
    })
})

interface Given {
  readonly damage?: CompressionDamage
  readonly bytesMax?: number | undefined
  /** Where chunks end. */
  readonly cuts?: readonly number[]
}

type Case = readonly [text: string | Buffer, expected: readonly string[], given?: Given]

/** @param cases texts with their records, each as its line, byte and outcome. */
function itReads(name: string, format: TextFormat, cases: readonly Case[]): void {
  it(name, async () => {
    for (const [text, expected, given] of cases) assert.deepEqual(await read(text, format, given), expected)
  })
}

/** The records, which must be the same for a file that arrives byte by byte. */
async function read(text: string | Buffer, format: TextFormat, given: Given = {}): Promise<string[]> {
  const found = (await records(text, format, given)).map(shown)
  assert.deepEqual((await records(text, format, { ...given, cuts: everyByte(text) })).map(shown), found)
  return found
}

/** The rows of CSV. */
async function values(text: string, given: Given = {}) {
  return (await records(text, 'csv', given)).map(({ parsed }) => outcomeOf(parsed) as Record<string, unknown>)
}

async function records(text: string | Buffer, format: TextFormat, { bytesMax, cuts = [], damage }: Given = {}) {
  const file = unpackedFile(Buffer.from(text), { cuts, damage })
  const found = await Array.fromAsync(readTextRecords(file, format, bytesMax))
  return found.map(record => ({ ...record, bytes: Buffer.from(record.bytes) }))
}

function everyByte(text: string | Buffer): number[] {
  return [...Buffer.from(text).keys()]
}

type Found = Awaited<ReturnType<typeof records>>[number]

function shown({ raw, parsed }: Found): string {
  const outcome = outcomeOf(parsed)
  return `${raw.line}:${raw.byte} ${typeof outcome === 'string' ? outcome : JSON.stringify(outcome)}`
}

function all({ raw, parsed, bytes }: Found) {
  return JSON.stringify([raw, parsed, bytes.toString('base64')])
}
