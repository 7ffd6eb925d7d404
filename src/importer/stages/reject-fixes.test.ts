import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sourceNames } from '#importer/sources/sources.ts'
import type { RecordRejectReason } from '../records/imported-event.ts'
import { findRejectFix } from './reject-fixes.ts'

const reasons: readonly RecordRejectReason[] = [
  ...(['event_missing', 'distinct_id_missing', 'distinct_id_illegal', 'timestamp_missing'] as const),
  ...(['timestamp_out_of_range', 'group_type_limit'] as const),
]

describe('the remedy for a rejected record', () => {
  it('is to change the mapping only for a source that has a mapping', () => {
    for (const reason of reasons) {
      assert.match(findRejectFix(reason, 'generic'), /\bmap|Map|Set unit/, reason)
      for (const source of sourceNames.filter(name => name !== 'generic'))
        assert.doesNotMatch(findRejectFix(reason, source), /\b[Mm]ap|event_constant|\bunit\b/, source)
    }
  })

  it('is to download damaged bytes again, and to convert UTF-16 files to UTF-8', () => {
    assert.match(
      findRejectFix('compressed_input', 'ga4', 'the gzip data is damaged: its checksum does not match'),
      /download it again/,
    )
    assert.match(findRejectFix('compressed_input', 'ga4', 'these are bytes of gzip'), /^Decompress the file/)
    assert.match(findRejectFix('encoding_invalid_utf8', 'ga4', 'these are bytes of UTF-16'), /iconv -f UTF-16 -t UTF-8/)
    assert.match(findRejectFix('encoding_invalid_utf8', 'ga4'), /iconv -f LATIN1/)
  })

  it('is to escape quotes consistently if a row escapes them differently', () => {
    const detail = 'the row has 3; it would fit if its backslashes were plain characters'
    assert.match(findRejectFix('csv_column_count', 'ga4', detail), /^Escape quotes in the same way in the whole file/)
    assert.match(findRejectFix('csv_column_count', 'ga4', 'the row has 3'), /^Quote cells/)
  })
})
