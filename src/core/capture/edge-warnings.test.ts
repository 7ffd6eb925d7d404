import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryChunkStore } from '../../../tests/support/memory/memory-chunk-store.ts'
import { memoryState } from '../../../tests/support/memory/memory-state.ts'
import { loadWhole } from '../../../tests/support/state.ts'
import { aCapturedReject, anEvent, aProject, recordsAt } from '../../../tests/support/values.ts'
import { edgeNote, type LogRecord } from '../events/captured-event.ts'
import type { Traffic } from '../events/log-stream.ts'
import { listChunkSubjects, parseChunk } from '../processing/parse-chunk.ts'
import { processChunk } from '../processing/process-chunk.ts'

async function warningsOf(records: readonly LogRecord[], traffic: Traffic = 'live') {
  const store = memoryChunkStore(memoryState([aProject()]))
  const chunk = parseChunk({ stream: 'main', traffic, records: recordsAt(records, 10) }, new Map())
  const { changes, rows } = processChunk(chunk, await loadWhole(store, listChunkSubjects(chunk)), {
    logId: 'log',
    lookUpGeoip: () => null,
  })
  return { warnings: changes.warnings, rejected: rows.rejected }
}

describe('ingestion warnings at the edge', () => {
  it('name each field of an accepted event that was not stored as sent', async () => {
    const notes = edgeNote.timeUnreadable | edgeNote.distinctIdCut | edgeNote.nameCut | edgeNote.personsSwitchedOff
    const event = anEvent('e', 'ada', {}, { notes })
    const { warnings } = await warningsOf([
      { kind: 'event', event },
      { kind: 'event', event: anEvent('e', 'ada') },
    ])
    assert.deepEqual(
      warnings.map(({ type, details, timestampMs }) => [type, details.field, details.eventUuid, timestampMs]),
      [
        ['ignored_invalid_timestamp', 'timestamp', event.uuid, event.receivedAtMs],
        ['distinct_id_truncated', 'distinct_id', event.uuid, event.receivedAtMs],
        ['event_name_truncated', 'event', event.uuid, event.receivedAtMs],
        ['person_processing_disabled', 'distinct_id', event.uuid, event.receivedAtMs],
      ],
    )
  })

  it('are given for each refused request or event with its reason, and link to the reject', async () => {
    const reject = aCapturedReject({ reason: 'missing_distinct_id', field: 'batch.3', name: 'e', distinctId: '' })
    const { warnings, rejected } = await warningsOf([{ kind: 'reject', reject }])
    assert.equal(warnings.length, 1)
    const { projectId, type, details, timestampMs } = warnings[0]!
    assert.deepEqual([projectId, type, timestampMs], [1, 'missing_distinct_id', reject.receivedAtMs])
    assert.equal(details.rejectId, rejected[0]!.rejectId)
    assert.deepEqual([details.field, details.event], ['batch.3', 'e'])
    assert.ok(!('distinctId' in details) && !('eventUuid' in details), 'absent fields are left out')
  })

  it('use a separate type for imports', async () => {
    const over = { lane: 'historical', historicalMigration: true, importJobId: 1 } as const
    const reject = aCapturedReject({ ...over, reason: 'timestamp_invalid' })
    const event = anEvent('e', 'ada', {}, { ...over, notes: edgeNote.distinctIdCut, timestampMs: 0 })
    const { warnings } = await warningsOf(
      [
        { kind: 'reject', reject },
        { kind: 'event', event },
      ],
      'import',
    )
    assert.deepEqual(
      warnings.map(({ type, details }) => [type, Object.keys(details.reasons as object)]),
      [['historical_migration', ['timestamp_invalid', 'distinct_id_truncated']]],
    )
  })
})
