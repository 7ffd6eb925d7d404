import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { splitCsvRow } from '#core/csv.ts'
import { fitsOtherQuoting, parseCsvHeader, parseCsvRow, parseJsonLine } from './parse-record.ts'

const line = (text: string) => parseJsonLine(Buffer.from(text))
const ab = { columns: ['a', 'b'] }
const row = (text: string) => parseCsvRow(Buffer.from(text), ab)
const reasonOf = (outcome: object) => (outcome as { rejected?: { reason: string } }).rejected?.reason

describe('a line of JSON', () => {
  it('is parsed as an object, with or without its line end and a byte order mark', () => {
    for (const text of ['{"a":1}', '{"a":1}\n', '{"a":1}\r\n', '\ufeff{"a":1}\n', ' {"a":1} '])
      assert.deepEqual(line(text), { value: { a: 1 } })
  })

  it('keeps every digit of a long number', () => {
    assert.equal(JSON.stringify(line('{"id":7325461098234567891}')), '{"value":{"id":7325461098234567891}}')
  })

  it('is skipped when it is blank', () => {
    for (const text of ['', '\n', '\r\n', ' \t\n', '\ufeff\n']) assert.deepEqual(line(text), { skipped: 'blank_line' })
  })

  it('is refused with a reason when it is not an object', () => {
    for (const text of ['{"a":1', '{"a":1}}', "{'a':1}", 'a,b', '{"a":NaN}', '{"a":"\u0001"}'])
      assert.equal(reasonOf(line(text)), 'json_syntax')
    for (const text of ['[]', '[{"a":1}]', '1', '"a"', 'null', '12345678901234567890'])
      assert.deepEqual(line(text), { rejected: { reason: 'json_not_object', field: null } })
  })

  it('is refused for too many values, although its text may be short', () => {
    const ofValues = (count: number) => `{"a":[${Array<string>(count).fill('{}').join()}]}`
    assert.equal(reasonOf(line(ofValues(499_000))), undefined)
    assert.equal(reasonOf(line(ofValues(1_000_000))), 'record_too_large')
    assert.equal(reasonOf(line(`{"a":"${',[{'.repeat(1_000_000)}"}`)), undefined)
  })

  it('is refused as UTF-16 in either byte order and on any line', () => {
    const little = Buffer.from('{"a":1}', 'utf16le')
    const rejected = { reason: 'encoding_invalid_utf8', field: null, detail: 'these are bytes of UTF-16' }
    for (const bytes of [little, Buffer.from(little).swap16()])
      for (const text of [bytes, Buffer.concat([Buffer.of(0), bytes])])
        assert.deepEqual(parseJsonLine(text), { rejected })
    assert.equal(reasonOf(parseJsonLine(Buffer.of(0xff, 0xfe))), 'encoding_invalid_utf8')
    assert.equal(reasonOf(line('\0{"a":1}')), 'json_syntax')
  })

  it("is refused without V8's own line number, which is not the line in the file", () => {
    const detail = "Expected ',' or '}' after property value in JSON at position 19"
    const rejected = { reason: 'json_syntax', field: null, detail }
    assert.deepEqual(line('{"event": "broken"\n'), { rejected })
  })

  it('is refused when it nests too deeply', () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000)
    assert.equal(reasonOf(line(`{"id":12345678901234567890,"a":${deep}}`)), 'json_syntax')
  })

  it('is refused when its bytes are not UTF-8', () => {
    for (const text of ['"\xe9"', '{\xff\xfe', '\xed\xa0\x80']) {
      const rejected = { reason: 'encoding_invalid_utf8', field: null }
      assert.deepEqual(parseJsonLine(Buffer.from(text, 'latin1')), { rejected })
    }
  })

  it('is refused as compressed if it starts like a compressed file, even one that was converted from Latin-1', () => {
    for (const text of ['\x1f\x8b\b\0', '(\xb5/\xfd\x04', 'PK\x03\x04..'])
      for (const encoding of ['latin1', 'utf8'] as const)
        assert.equal(reasonOf(parseJsonLine(Buffer.from(text, encoding))), 'compressed_input')
  })
})

describe('a row of CSV', () => {
  const columns = ['id', 'said', 'n']

  it('is parsed as an object of texts, without empty cells', () => {
    assert.deepEqual(row('1,x\r\n'), { value: { a: '1', b: 'x' } })
    assert.deepEqual(row(',x\n'), { value: { b: 'x' } })
    assert.deepEqual(row('"",""\n'), { value: {} })
  })

  it('may have commas, line breaks and doubled quotes in quoted cells, and a quote within an unquoted cell', () => {
    assert.deepEqual(row('"1,2","x\r\ny ""z"""\n'), { value: { a: '1,2', b: 'x\r\ny "z"' } })
    assert.deepEqual(row('5" disk,"a"b\n'), { value: { a: '5" disk', b: 'ab' } })
  })

  it('is refused when it has more or fewer cells than the header', () => {
    for (const text of ['1\n', '1,2,3\n', '1,2,\n']) assert.equal(reasonOf(row(text)), 'csv_column_count')
  })

  it('is refused with a hint if the row would fit with the other way of escaping quotes', () => {
    const detailOf = (text: string, hasEscapes: boolean) => {
      const outcome = parseCsvRow(Buffer.from(text), { columns, hasEscapes })
      return 'rejected' in outcome ? outcome.rejected.detail! : ''
    }
    const spoken = String.raw`7,"say \"hi\", ok",1`
    assert.match(detailOf(spoken, false), /; it would fit if its backslashes escaped quotes/)
    const path = String.raw`7,"C:\dir\",1`
    assert.match(detailOf(path, true), /; it would fit if its backslashes were plain characters/)
    for (const text of ['7,"x"', String.raw`7,"say \"hi\""`])
      for (const hasEscapes of [false, true]) assert.match(detailOf(text, hasEscapes), /the row has \d$/)
  })

  it('fits the other way of escaping quotes only if that gives a complete and different row', () => {
    // Two rows if backslashes are escapes.
    const swallowed = `${String.raw`7,"say \"hi\"",1`}\n8,"bye",2`
    assert.ok('value' in parseCsvRow(Buffer.from(swallowed), { columns }))
    assert.equal(fitsOtherQuoting(swallowed, { columns }), true)
    assert.equal(fitsOtherQuoting(String.raw`7,1,"C:\dir\"`, { columns }), false)
    for (const text of [String.raw`7,"say \"hi\" there",1`, String.raw`7,"C:\dir",1`, '7,"""x""",1'])
      for (const hasEscapes of [false, true]) assert.equal(fitsOtherQuoting(text, { columns, hasEscapes }), false, text)
  })

  it('is skipped when it is blank, and refused when its bytes are not text', () => {
    assert.deepEqual(row('\r\n'), { skipped: 'blank_line' })
    assert.equal(reasonOf(parseCsvRow(Uint8Array.from([0xe9, 0x2c, 0x31]), ab)), 'encoding_invalid_utf8')
  })

  it('may have columns of any name', () => {
    const outcome = parseCsvRow(Buffer.from('1,2'), { columns: ['__proto__', 'constructor'] }) as { value: object }
    assert.deepEqual(Object.entries(outcome.value), [
      ['__proto__', '1'],
      ['constructor', '2'],
    ])
  })

  it('is refused for too many cells, as is a header', () => {
    const commas = Buffer.alloc(2_000_000, ',')
    assert.equal(reasonOf(parseCsvRow(commas, ab)), 'record_too_large')
    assert.equal(reasonOf(parseCsvHeader(commas)), 'record_too_large')
    assert.equal(reasonOf(parseCsvRow(commas.subarray(0, 500_000), ab)), 'csv_column_count')
  })

  it('is parsed into the values that it was written from', () => {
    const cell = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ' ', 'é') })
    fc.assert(
      fc.property(fc.array(cell, { minLength: 2, maxLength: 5 }), cells => {
        const text = cells.map(each => `"${each.replaceAll('"', '""')}"`).join(',')
        assert.deepEqual(splitCsvRow(`${text}\r\n`), cells)
      }),
    )
  })

  it('may follow a header that starts with a byte order mark', () => {
    assert.deepEqual(parseCsvHeader(Buffer.from('\ufeffid,"the, time"\r\n')), { columns: ['id', 'the, time'] })
    assert.equal(reasonOf(parseCsvHeader(Buffer.from('1f8b0800', 'hex'))), 'compressed_input')
  })
})
