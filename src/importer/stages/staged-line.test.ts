import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { sha256Hex } from '../job/sha256.ts'
import type { ParsedRecord } from '../read/parse-record.ts'
import { parseJsonLine } from '../read/parse-record.ts'
import { RecordReject, skipRecord } from '../records/imported-event.ts'
import { compareKeys, decodeLine, decodeLineKey, encodeLine, type LineKey } from './staged-line.ts'

const key: LineKey = { timeUs: 1_714_564_800_123_456, object: 3, line: 7, byte: 4_000_000_000 }

describe('a staged line', () => {
  it('keeps a JSON record exactly as written, with every digit and its hash', () => {
    const text = '{ "id": 9007199254740993, "n": 1.0, "é\u2028": "\\u00e9" }'
    const line = encodeLine(recordOf(Buffer.from(text), parseJsonLine(Buffer.from(text))), key, 12).toString()
    assert.ok(line.endsWith(`\t${text}`))
    const decoded = decodeLine(line)
    assert.deepEqual(
      [decoded.timeUs, decoded.object, decoded.line, decoded.byte, decoded.ordinal],
      [...Object.values(key), 12],
    )
    assert.equal(decoded.text, text)
    assert.equal(decoded.sourceSha256(), sha256Hex(text))
    assert.equal(JSON.stringify(recordIn(decoded.parsed)), '{"id":9007199254740993,"n":1.0,"é\u2028":"é"}')
  })

  it('lacks the byte order mark of the first record of a file', () => {
    const bytes = Buffer.from('\ufeff{"a":"\ufeff"}')
    const decoded = decodeLine(encodeLine(recordOf(bytes, parseJsonLine(bytes)), key, 1).toString())
    assert.equal(decoded.text, '{"a":"\ufeff"}')
  })

  it('is a single line whatever the record contains, and restores its row', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '\n', '\r', '\t', '"', ',', 'é', '\ufffd', '{') }), text => {
        const record = { ...recordOf(Buffer.from(text), { value: { cell: text } }), isJson: false }
        const line = encodeLine(record, key, 1).toString()
        assert.ok(!line.includes('\n'))
        const decoded = decodeLine(line)
        assert.equal(decoded.text, text)
        assert.deepEqual(recordIn(decoded.parsed), { cell: text })
        assert.deepEqual(decodeLineKey(Buffer.from(line)), key)
      }),
    )
  })

  it('keeps the reason, the beginning and the hash of an unreadable record', () => {
    const bytes = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.alloc(100_000, 'x')])
    const rejected = new RecordReject('encoding_invalid_utf8', null, 'why').outcome()
    const decoded = decodeLine(encodeLine(recordOf(bytes, rejected), { ...key, timeUs: null }, 1).toString())
    assert.deepEqual(decoded.parsed, rejected)
    assert.equal(decoded.text.length, 64 * 1024)
    assert.equal(decoded.sourceSha256(), sha256Hex(bytes))
    const blank = decodeLine(encodeLine(recordOf(Buffer.alloc(0), skipRecord('blank_line')), key, 1).toString())
    assert.deepEqual(blank.parsed, skipRecord('blank_line'))
  })

  it('is sorted by time, then by its place in the raw files', () => {
    const keys: LineKey[] = [
      { timeUs: 1, object: 0, line: 1, byte: 0 },
      { timeUs: 1, object: 0, line: 1, byte: 9 },
      { timeUs: 1, object: 0, line: 2, byte: 5 },
      { timeUs: 1, object: 1, line: 1, byte: 0 },
      { timeUs: 2, object: 0, line: 1, byte: 0 },
    ]
    assert.deepEqual(keys.toReversed().toSorted(compareKeys), keys)
  })
})

function recordOf(bytes: Buffer, parsed: ParsedRecord) {
  return { raw: { object: 'o', line: 1, byte: 0 }, bytes, parsed, isJson: true, table: null }
}

function recordIn(parsed: ParsedRecord) {
  assert.ok('value' in parsed)
  return parsed.value
}
