import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ByteReader, PackingDamage } from './byte-reader.ts'

import { detectTextFormat, readTextRecords, type TextFormat } from './text-records.ts'

describe('rows of CSV that end in a carriage return alone', () => {
  it('are read like others, for any chunking', async () => {
    const text = 'a;"b\rc"\r1;"x\ry\nz"\r2;5" disk\r3;'
    const expected = [
      ['3:8', { a: '1', 'b\rc': 'x\ry\nz' }],
      ['5:18', { a: '2', 'b\rc': '5" disk' }],
      ['6:28', { a: '3' }],
    ]
    for (const cuts of [[], [7, 8, 19], [...Buffer.from(text).keys()]])
      assert.deepEqual(await read(text, 'csv', { cuts }), expected)
    const [first] = await records(text, 'csv')
    assert.equal(Buffer.from(first!.bytes).toString(), '1;"x\ry\nz"')
  })

  it('are recognized only if the first row ends so', async () => {
    assert.deepEqual(await read('"a\rb",c\r\n1,2\r\n', 'csv'), [['2:9', { 'a\rb': '1', c: '2' }]])
    assert.deepEqual(await read('a,b\r\r\n1,2\r\r\n', 'csv'), [['2:6', { a: '1', b: '2' }]])
    assert.deepEqual(await read('a,b\r\r1,2\r', 'csv'), [
      ['2:4', 'blank_line'],
      ['3:5', { a: '1', b: '2' }],
    ])
    assert.deepEqual(await read('a,b\n1,x\ry\n', 'csv'), [['2:4', { a: '1', b: 'x\ry' }]])
    assert.deepEqual(await read('"a\nb",c\r1,2\r', 'csv'), [['2:8', { 'a\nb': '1', c: '2' }]])
  })
})

describe('lines of JSON', () => {
  it('are records with the line and the byte at which they start', async () => {
    assert.deepEqual(await read('{"a":1}\r\n\n {"b":"é"}\n{"c":3}', 'json'), [
      ['1:0', { a: 1 }],
      ['2:9', 'blank_line'],
      ['3:10', { b: 'é' }],
      ['4:22', { c: 3 }],
    ])
  })

  it('keep the digits of large numbers, and lose a byte order mark', async () => {
    const [record] = await records('\ufeff{"id":9007199254740993}\n', 'json')
    assert.ok(record !== undefined && 'value' in record.parsed)
    assert.equal(JSON.stringify(record.parsed.value), '{"id":9007199254740993}')
  })

  it('that are broken are rejected with a reason, and the following ones are read', async () => {
    const broken = Buffer.concat([
      Buffer.from('{"a":\n[1]\n7\n{"a":"'),
      Buffer.from([0xff]),
      Buffer.from('"}\n{"z":1}\n'),
    ])
    assert.deepEqual(await read(broken, 'json'), [
      ['1:0', 'json_syntax'],
      ['2:6', 'json_not_object'],
      ['3:10', 'json_not_object'],
      ['4:12', 'encoding_invalid_utf8'],
      ['5:22', { z: 1 }],
    ])
  })

  it('may contain lists, and several objects', async () => {
    const text = '\ufeff{"a":1}{"b":"}{"}\r\n [{"c":3}, {"d":[]}]\n[]\n{"e":5},\n{"f":6} {"g":\n[{"h":8}\n{"i":9}{"j'
    assert.deepEqual(await read(text, 'json'), [
      ['1:3', { a: 1 }],
      ['1:10', { b: '}{' }],
      ['2:24', { c: 3 }],
      ['2:33', { d: [] }],
      ['4:46', { e: 5 }],
      ['5:55', { f: 6 }],
      ['5:63', 'json_syntax'],
      ['6:70', { h: 8 }],
      ['6:77', 'json_syntax'],
      ['7:78', { i: 9 }],
      ['7:85', 'truncated_record'],
    ])
  })

  it('that lack their beginning, or contain other text between objects, have one reject each', async () => {
    for (const line of [
      '"event":"A","properties":{"x":{"y":1}},"t":{"u":2}}',
      '{"a":1} nothing {"b":2}',
      '{"a":1}]{"b":2}',
      '{"a":1}}{"b":2}',
    ]) {
      const found = await records(`{"z":1}\n${line}\n{"z":2}\n`, 'json')
      assert.deepEqual(found.map(shown).slice(1), [
        ['2:8', 'json_syntax'],
        [`3:${line.length + 9}`, { z: 2 }],
      ])
      assert.equal(found[1]!.bytes.toString(), line)
    }
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
        whole.map(({ parsed }) => 'value' in parsed && parsed.value),
        [...values, { z: 1 }],
      )
      for (const cuts of [[], [100, 101, 500], [...Buffer.from(text).keys()]])
        assert.deepEqual((await records(text, 'json', { bytesMax: 90, cuts })).map(all), whole.map(all))
      for (const { raw, bytes } of whole)
        assert.equal(Buffer.from(text).toString('latin1', raw.byte, raw.byte + bytes.length), bytes.toString())
    })

  it('that are long and lack their beginning have one reject too, and no records from nested lists', async () => {
    const actions = Array.from({ length: 60 }, (_, index) => `{"action":${index}}`).join()
    for (const line of [
      `"visit":7,"actions":[${actions}],"end":8}`,
      `7},{"visit":8,"actions":[${actions}]}`,
      `"visit":7} [${actions}] {"visit":8}`,
    ]) {
      const found = await records(`{"z":1}\n${line}\n{"z":2}\n`, 'json', { bytesMax: 1_000 })
      assert.deepEqual(found.map(shown).slice(1), [
        ['2:8', 'json_syntax'],
        [`3:${line.length + 9}`, { z: 2 }],
      ])
    }
    const behind = await records(`[${actions}] lost [${actions}]\n{"z":2}\n`, 'json', { bytesMax: 1_000 })
    assert.deepEqual(
      behind.flatMap(({ parsed }) => ('rejected' in parsed ? parsed.rejected.reason : [])),
      ['json_syntax'],
    )
    assert.ok(behind.length > 30, 'what stands before it is read')
    assert.deepEqual(shown(behind.at(-1)!)[1], { z: 2 })
  })

  it('that are too long are rejected, with only their beginning kept', async () => {
    const found = await records(`{"a":"${'x'.repeat(200_000)}"}\n{"z":1}\n`, 'json', { bytesMax: 100_000 })
    assert.deepEqual(found.map(shown), [
      ['1:0', 'record_too_large'],
      ['2:200009', { z: 1 }],
    ])
    assert.ok(found[0]!.bytes.length < 100_000)
  })

  it('that end in the middle are rejected as cut off, also within a character', async () => {
    const text = Buffer.from('{"a":1}\n{"b":"é"}')
    for (const length of [9, 14, 15])
      assert.deepEqual(await read(text.subarray(0, length), 'json'), [
        ['1:0', { a: 1 }],
        ['2:8', 'truncated_record'],
      ])
    assert.deepEqual(await read(text, 'json'), [
      ['1:0', { a: 1 }],
      ['2:8', { b: 'é' }],
    ])
  })

  it('of a damaged file end with one reject, whether the damage is within a record or between two', async () => {
    const damage = new PackingDamage('damaged')
    assert.deepEqual(await read('{"a":1}\n{"b"', 'json', { damage }), [
      ['1:0', { a: 1 }],
      ['2:8', 'compressed_input'],
    ])
    assert.deepEqual(await read('{"a":1}\n', 'json', { damage }), [
      ['1:0', { a: 1 }],
      ['2:8', 'compressed_input'],
    ])
    assert.deepEqual(await read('', 'json', { damage }), [['1:0', 'compressed_input']])
  })
})

describe('a JSON list', () => {
  it('is read into its elements, however formatted', async () => {
    const text = '\ufeff [\n  {"a":"]},{\\"[",\n   "b":[1,{"c":2}]},\n{"d":{}} , 7,"x", [1],true]\n'
    assert.deepEqual(await read(text, 'array'), [
      ['2:8', { a: ']},{"[', b: [1, { c: 2 }] }],
      ['4:45', { d: {} }],
      ['4:56', 'json_not_object'],
      ['4:58', 'json_not_object'],
      ['4:63', 'json_not_object'],
      ['4:67', 'json_not_object'],
    ])
    assert.deepEqual(await read('[]', 'array'), [])
  })

  it('that is not closed is rejected as cut off', async () => {
    for (const [text, end] of [
      ['[{"a":1},', '1:9'],
      ['[{"a":1}', '1:8'],
    ])
      assert.deepEqual(await read(text!, 'array'), [
        ['1:1', { a: 1 }],
        [end, 'truncated_record'],
      ])
    const damage = new PackingDamage('damaged')
    assert.deepEqual(await read('[{"a":1}', 'array', { damage }), [
      ['1:1', { a: 1 }],
      ['1:8', 'compressed_input'],
    ])
    assert.deepEqual(await read('[{"a":1},{"b":', 'array'), [
      ['1:1', { a: 1 }],
      ['1:9', 'truncated_record'],
    ])
  })

  it('may be absent: objects over several lines are read alike', async () => {
    assert.deepEqual(
      await read('\ufeff{\n  "a": "}"\n}\n{}\nnull\n{\n  "b": [\n    1\n  ]\n}\n{"c":3}\n{\n"d":4}\n', 'array'),
      [
        ['1:3', { a: '}' }],
        ['4:18', {}],
        ['5:21', 'json_not_object'],
        ['6:26', { b: [1] }],
        ['11:49', { c: 3 }],
        ['12:57', { d: 4 }],
      ],
    )
    assert.deepEqual(await read('{\n  "a": 1\n}\n{\n  "b"', 'array'), [
      ['1:0', { a: 1 }],
      ['4:13', 'truncated_record'],
    ])
  })

  it('may be followed by others, and by objects', async () => {
    // Concatenated pages of an API. As one value, thousands of visits would be a single reject.
    assert.deepEqual(await read('[{"a":1}]\n[{"b":2},\n{"c":3}]\n[]{"d":4} {"e":5}\n', 'array'), [
      ['1:1', { a: 1 }],
      ['2:11', { b: 2 }],
      ['3:20', { c: 3 }],
      ['4:31', { d: 4 }],
      ['4:39', { e: 5 }],
    ])
    assert.deepEqual(await read('[{"a":1}] nothing\n', 'array'), [
      ['1:1', { a: 1 }],
      ['1:10', 'json_syntax'],
    ])
  })

  it('that is broken does not affect others if each is on its own line', async () => {
    assert.deepEqual(await read('[{"a":1}]\n[{"b":2},{"x":\n[{"c":"]","d":"3}]\n[{"e":4}]', 'array'), [
      ['1:1', { a: 1 }],
      ['2:11', { b: 2 }],
      ['2:19', 'json_syntax'],
      ['3:26', 'json_syntax'],
      ['4:45', { e: 4 }],
    ])
    // Cut after a complete element, it is open when the next line starts another list.
    const text = '[{"a":1}]\n[{"b":2},\n [{"c":3}]\n[{"d":4},\n{"e":5}]\n'
    for (const cuts of [[], [...Buffer.from(text).keys()]])
      assert.deepEqual(await read(text, 'array', { cuts }), [
        ['1:1', { a: 1 }],
        ['2:11', { b: 2 }],
        ['2:18', 'json_syntax'],
        ['3:22', { c: 3 }],
        ['4:32', { d: 4 }],
        ['5:41', { e: 5 }],
      ])
  })

  it('may be followed by a line without its beginning, which has one reject', async () => {
    const text = '[{"a":1}]\n"event":"A","p":{"x":{"y":1}},"t":{"u":2}}\n{"b":2}\nnull'
    for (const cuts of [[], [...Buffer.from(text).keys()]])
      assert.deepEqual(await read(text, 'array', { cuts }), [
        ['1:1', { a: 1 }],
        ['2:10', 'json_syntax'],
        ['3:53', { b: 2 }],
        ['4:61', 'truncated_record'],
      ])
  })

  it('over several lines may have lists at the start of a line', async () => {
    assert.deepEqual(await read('[\n{"a":1},\n[2]\n]\n[{"b":3}]\n{"c"\n:4}', 'array'), [
      ['2:2', { a: 1 }],
      ['3:11', 'json_not_object'],
      ['5:18', { b: 3 }],
      ['6:27', { c: 4 }],
    ])
  })
})

describe('rows of CSV', () => {
  it('become records of text values, without the empty cells; a quoted cell may span several lines', async () => {
    const text = 'id,,"say ""hi"""\r\n1,x,"two\nlines, ""q"""\r\n\n2,,\n'
    assert.deepEqual(await read(text, 'csv'), [
      ['2:18', { id: '1', column_2: 'x', 'say "hi"': 'two\nlines, "q"' }],
      ['4:42', 'blank_line'],
      ['5:43', { id: '2' }],
    ])
  })

  for (const [name, delimiter] of [
    ['semicolons', ';'],
    ['tabs', '\t'],
    ['vertical bars', '|'],
  ] as const)
    it(`have ${name} between their cells if their header does`, async () => {
      const text = ['id;"a, b, c";note', '1;"x;y\n""z""";1,5', '2;y'].join('\n').replaceAll(';', delimiter)
      const [first, second] = await records(`${text}\n`, 'csv')
      assert.deepEqual(shown(first!)[1], { id: '1', 'a, b, c': `x${delimiter}y\n"z"`, note: '1,5' })
      assert.deepEqual([first!.columns, first!.delimiter], [['id', 'a, b, c', 'note'], delimiter])
      assert.deepEqual(second!.parsed, {
        rejected: {
          reason: 'csv_column_count',
          field: null,
          detail: `the header names 3 columns between ${name}, and the row has 2`,
        },
      })
    })

  it('may have a first line sep=; from Excel before their header', async () => {
    for (const first of ['sep=;', '\ufeffsep=;'])
      assert.deepEqual(
        (await read(`${first}\r\na;b\r\n1,5;2\r\n`, 'csv')).map(([place, value]) => [`${place}`.split(':')[0], value]),
        [['3', { a: '1,5', b: '2' }]],
        first,
      )
  })

  it('may have a byte order mark before a quoted name with a line break', async () => {
    assert.deepEqual(await read('\ufeff"a\n(1)",b\n1,2\n', 'csv'), [['3:13', { 'a\n(1)': '1', b: '2' }]])
  })

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
    const expected = [
      { id: '1', said: 'a \\' },
      { id: '2', said: 'He said "hi"' },
      { id: '3', said: '{"a":"x\\"y","b":"C:\\temp"}' },
      { id: '4', said: 'two\nlines, "\nmore' },
      { id: '5', said: '","' },
      { id: '6' },
    ]
    for (const cuts of [[], [...Buffer.from(text).keys()]])
      assert.deepEqual(
        (await read(text, 'csv', { cuts })).map(([, value]) => value),
        expected,
      )
    assert.equal((await records(text, 'csv'))[0]!.hasEscapes, true)
  })

  it('keep backslashes if quotes are doubled', async () => {
    const text = String.raw`id,said,next
1,"C:\dir\",x
2,"{""a"":""x\""y""}","\"
3,"\""x\""",\"
`
    assert.deepEqual(
      (await read(text, 'csv')).map(([, value]) => value),
      [
        { id: '1', said: 'C:\\dir\\', next: 'x' },
        { id: '2', said: '{"a":"x\\"y"}', next: '\\' },
        { id: '3', said: '\\"x\\"', next: '\\"' },
      ],
    )
  })

  it('are not all read with escapes because of one odd quote', async () => {
    const text = String.raw`id,p
1,"{\"a\":1}"
3,"C:\temp\"
4,"x"
`
    assert.deepEqual(await read(text, 'csv'), [
      ['2:5', { id: '1', p: '{"a":1}' }],
      ['3:19', { id: '3', p: 'C:\\temp\\' }],
      ['4:32', { id: '4', p: 'x' }],
    ])
    const spaced = String.raw`id,p
1,"C:\dir\" 
2,"a"
3,"C:\"
4,"D:\"
5,"b"`
    const rows = (await read(spaced, 'csv')).map(([, value]) => value)
    assert.deepEqual(rows.slice(-3), [
      { id: '3', p: 'C:\\' },
      { id: '4', p: 'D:\\' },
      { id: '5', p: 'b' },
    ])
    const marked = (await read(`sep=;\n"a;b";c\n1;"\\"x\\";y"`, 'csv')).map(([, value]) => value)
    assert.deepEqual(marked, [{ 'a;b': '1', c: '"x";y' }])
  })

  it('keep a backslash before a character that is not the delimiter of their file', async () => {
    const text = String.raw`id,said
1,"foo\|bar \; \, \"q\""
`
    assert.deepEqual(await read(text, 'csv'), [['2:8', { id: '1', said: 'foo\\|bar \\; , "q"' }]])
  })

  it('are rejected with a message that the header contains no known delimiter', async () => {
    const [record] = await records('id:event\n1,2\n', 'csv')
    assert.ok(record !== undefined && 'rejected' in record.parsed)
    assert.match(record.parsed.rejected.detail!, /1 column, without any commas, semicolons, tabs, vertical bars, and/)
  })

  it('with a different number of cells than the header are rejected', async () => {
    assert.deepEqual(await read('a,b\n1\n1,2,3\n1,2\n1', 'csv'), [
      ['2:4', 'csv_column_count'],
      ['3:6', 'csv_column_count'],
      ['4:12', { a: '1', b: '2' }],
      ['5:16', 'truncated_record'],
    ])
  })

  it('whose quote is never closed are rejected as cut off', async () => {
    assert.deepEqual(await read('a,b\n1,"2\n3,4\n', 'csv'), [['2:4', 'truncated_record']])
  })

  it('keep the cells of columns with duplicate names or without names', async () => {
    assert.deepEqual(await read('a,a,,a_2,a\n1,2,3,4,5\n', 'csv'), [
      ['2:11', { a: '1', a_2: '2', column_3: '3', a_2_2: '4', a_3: '5' }],
    ])
  })

  it('are not read if the header cannot be parsed', async () => {
    assert.deepEqual(await read(Buffer.from('a,\xff\n1,2\n3,4\n', 'latin1'), 'csv'), [['1:0', 'encoding_invalid_utf8']])
  })
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
      assert.equal(await detectTextFormat(file(Buffer.from(text), { object })), format)
    })
})

describe('a file in arbitrary chunks', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '{"a":1}',
      '\n',
      '\r\n',
      '\r',
      ',',
      '"',
      '[',
      ']',
      '{',
      '}',
      '\\',
      ' ',
      '\ufeff',
      '€😀',
      '{"ü":"ß\\n"}',
    ),
    fc.string({ unit: 'grapheme', maxLength: 5 }),
  )
  for (const format of ['json', 'array', 'csv'] as const)
    it(`has the same records as in a single chunk, read as ${format}`, async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(piece, { maxLength: 30 }),
          fc.array(fc.nat(200), { maxLength: 20 }),
          fc.constantFrom(10, 40, undefined),
          async (parts, cuts, bytesMax) => {
            const bytes = Buffer.from((format === 'array' ? '[' : '') + parts.join(''))
            const whole = (await records(bytes, format, { bytesMax })).map(all)
            assert.deepEqual((await records(bytes, format, { bytesMax, cuts })).map(all), whole)
            assert.deepEqual((await records(bytes, format, { bytesMax, cuts: [...bytes.keys()] })).map(all), whole)
          },
        ),
      )
    })
})

interface Given {
  readonly object?: string
  readonly damage?: PackingDamage
  readonly bytesMax?: number | undefined
  /** Where chunks end. */
  readonly cuts?: readonly number[]
}

async function read(text: string | Buffer, format: TextFormat, given: Given = {}) {
  return (await records(text, format, given)).map(shown)
}

async function records(text: string | Buffer, format: TextFormat, given: Given = {}) {
  const found = await Array.fromAsync(readTextRecords(file(Buffer.from(text), given), format, given.bytesMax))
  return found.map(record => ({ ...record, bytes: Buffer.from(record.bytes) }))
}

type Found = Awaited<ReturnType<typeof records>>[number]

function shown({ raw, parsed }: Found) {
  const outcome = 'value' in parsed ? parsed.value : 'skipped' in parsed ? parsed.skipped : parsed.rejected.reason
  return [`${raw.line}:${raw.byte}`, outcome]
}

function all({ raw, parsed, bytes }: Found) {
  return JSON.stringify([raw, parsed, bytes.toString('base64')])
}

function file(bytes: Buffer, { object = 'file', damage, cuts = [] }: Given) {
  const ends = [...new Set([...cuts, bytes.length])].filter(at => at <= bytes.length).toSorted((a, b) => a - b)
  async function* chunks() {
    for (const [index, end] of ends.entries()) yield bytes.subarray(ends[index - 1] ?? 0, end)
  }
  return { object, bytes: new ByteReader(chunks()), damage: () => damage ?? null, isUnpackedFile: true }
}
