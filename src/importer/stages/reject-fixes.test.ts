import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sourceNames } from '#importer/sources/sources.ts'
import type { RejectReason } from '../records/imported-event.ts'
import { fixOf } from './reject-fixes.ts'

const reasons: readonly RejectReason[] = [
  ...(['event_missing', 'distinct_id_missing', 'distinct_id_illegal', 'timestamp_missing'] as const),
  ...(['timestamp_out_of_range', 'group_type_limit'] as const),
]

describe('what can be done about a refused record', () => {
  it('is to mend the mapping only where its user wrote one', () => {
    for (const reason of reasons) {
      assert.match(fixOf(reason, 'generic'), /\bmap|Map|Set unit/, reason)
      for (const source of sourceNames.filter(name => name !== 'generic'))
        assert.doesNotMatch(fixOf(reason, source), /\b[Mm]ap|event_constant|\bunit\b/, source)
    }
  })

  it('is to fetch damaged bytes again, and to convert UTF-16 as what it is', () => {
    assert.match(
      fixOf('compressed_input', 'ga4', 'the gzip data is damaged: its checksum does not match'),
      /download it again/,
    )
    assert.match(fixOf('compressed_input', 'ga4', 'these are bytes of gzip'), /^Unpack the file/)
    assert.match(fixOf('encoding_invalid_utf8', 'ga4', 'these are bytes of UTF-16'), /iconv -f UTF-16 -t UTF-8/)
    assert.match(fixOf('encoding_invalid_utf8', 'ga4'), /iconv -f LATIN1/)
  })

  it('is to write quotes in one way where a row has them in another', () => {
    const detail = 'the row has 3; it would fit if its backslashes were plain characters'
    assert.match(fixOf('csv_column_count', 'ga4', detail), /quotes of the whole file in one way/)
    assert.match(fixOf('csv_column_count', 'ga4', 'the row has 3'), /^Put cells/)
  })
})
