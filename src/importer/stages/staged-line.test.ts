import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { sha256Hex } from '../job/sha256.ts'
import type { ParsedSourceRecord } from '../read/parse-record.ts'
import { parseJsonLine } from '../read/parse-record.ts'
import type { ReadRecord } from '../read/read-record.ts'
import { createSkippedOutcome, RecordReject } from '../records/imported-event.ts'
import {
  decodeRecordContent,
  decodeRecordPlace,
  decodeRecordSource,
  encodeRecordContent,
  encodeRecordPlace,
} from './staged-line.ts'

describe('a stored record', () => {
  it('keeps its place in its file', () => {
    const place = { object: 3, line: 7, byte: 4_000_000_000, ordinal: 12 }
    assert.deepEqual(decodeRecordPlace(encodeRecordPlace(place)), place)
  })

  it('is JSON exactly as written, with every digit, and has its hash', () => {
    const text = '{ "id": 9007199254740993, "n": 1.0, "é\u2028": "\\u00e9" }'
    const { extra, json } = stored(recordOf(Buffer.from(text), parseJsonLine(Buffer.from(text))))
    assert.deepEqual([extra, json], ['', text])
    const { parsed } = decodeRecordContent(extra, json)
    assert.equal(JSON.stringify(valueIn(parsed)), '{"id":9007199254740993,"n":1.0,"é\u2028":"é"}')
    assert.deepEqual(decodeRecordSource(extra, json), { text, sha256: sha256Hex(text), unreadableBytes: null })
  })

  it('lacks the byte order mark of the first record of a file', () => {
    const bytes = Buffer.from('\ufeff{"a":"\ufeff"}')
    const { extra, json } = stored(recordOf(bytes, parseJsonLine(bytes)))
    assert.equal(decodeRecordContent(extra, json).text, '{"a":"\ufeff"}')
  })

  it('contains no line feed whatever the record contains, and its row can be restored', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '\n', '\r', '\t', '"', ',', 'é', '\ufffd', '{') }), text => {
        const record = { ...recordOf(Buffer.from(text), { value: { cell: text } }), header: { columns: ['cell'] } }
        const { extra, json } = stored(record)
        assert.ok(!`${extra}${json}`.includes('\n') && !extra.includes('\t'))
        const content = decodeRecordContent(extra, json)
        assert.equal(content.text, text)
        assert.deepEqual(valueIn(content.parsed), { cell: text })
        assert.deepEqual(decodeRecordSource(extra, json, ['cell']).row, { columns: ['cell'], cells: { cell: text } })
      }),
    )
  })

  it('keeps the reason, the beginning and the hash of an unreadable record', () => {
    const bytes = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.alloc(100_000, 'x')])
    const rejected = new RecordReject('encoding_invalid_utf8', null, 'why').outcome()
    const { extra, json } = stored(recordOf(bytes, rejected))
    assert.deepEqual(decodeRecordContent(extra, json).parsed, rejected)
    const { text, ...others } = decodeRecordSource(extra, json)
    assert.equal(text.length, 64 * 1024)
    assert.deepEqual(others, { sha256: sha256Hex(bytes), unreadableBytes: bytes.length })
    const blank = stored(recordOf(Buffer.alloc(0), createSkippedOutcome('blank_line')))
    assert.deepEqual(decodeRecordContent(blank.extra, blank.json).parsed, createSkippedOutcome('blank_line'))
  })
})

function stored(record: ReadRecord): { extra: string; json: string } {
  const { extra, json } = encodeRecordContent(record)
  return { extra, json: Buffer.from(json).toString() }
}

function recordOf(bytes: Buffer, parsed: ParsedSourceRecord): ReadRecord {
  return { raw: { object: 'o', line: 1, byte: 0 }, bytes, parsed, table: null }
}

function valueIn(parsed: ParsedSourceRecord) {
  assert.ok('value' in parsed)
  return parsed.value
}
