import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LogRecord, RejectSource } from '#core/events/captured-event.ts'
import { decodeRejectSource, encodeRejectSource } from '#core/events/reject-source.ts'
import { listChunkSubjects, parseChunk } from '#core/processing/parse-chunk.ts'
import { processChunk } from '#core/processing/process-chunk.ts'
import { rejectRefusedRows } from '#core/processing/refused-rows.ts'
import { memoryChunkStore } from '../../../../tests/support/memory/memory-chunk-store.ts'
import { memoryState } from '../../../../tests/support/memory/memory-state.ts'
import { loadWhole } from '../../../../tests/support/state.ts'
import { aCapturedEvent, aCapturedReject, aProject, recordsAt } from '../../../../tests/support/values.ts'
import { createRejectFromDamage, createRejectFromEvent } from './rejects.ts'

const source: RejectSource = {
  kind: 'request',
  isTruncated: false,
  protocol: 'v0',
  engage: false,
  ip: '203.0.113.7',
  sentAtMs: null,
  personProcessingForcedOff: false,
}

describe('the reject of an accepted event', () => {
  it('contains the whole event with the client’s own literals', () => {
    const event = aCapturedEvent(1, {
      name: 'say "hi"',
      propertiesJson: '{"id":12345678901234567890}',
      setJson: '{"n":1.0}',
      setOnceJson: '{"m":1e2}',
      sentAtMs: 7,
    })
    const reject = createRejectFromEvent({ stream: 'main', offset: 3 }, event, 'row_refused', 'why')
    assert.ok(reject.body.endsWith(',"$set":{"n":1.0},"$set_once":{"m":1e2},"properties":{"id":12345678901234567890}}'))
    const { event: name, uuid, distinct_id: distinctId, timestamp } = JSON.parse(reject.body)
    assert.deepEqual(
      [name, uuid, distinctId, Date.parse(timestamp)],
      [event.name, event.uuid, event.distinctId, event.timestampMs],
    )
    assert.deepEqual(reject.source, { ...source, kind: 'event', sentAtMs: 7 })
  })

  it('is marked if its body was truncated, even within a character', () => {
    for (let length = 65_300; length < 65_540; length++) {
      const propertiesJson = JSON.stringify({ a: `${'x'.repeat(length - 200)}é${'x'.repeat(300)}` })
      const { body, source } = createRejectFromEvent(
        { stream: 'main', offset: 1 },
        aCapturedEvent(1, { propertiesJson }),
        'row_refused',
        '',
      )
      assert.ok(source!.isTruncated && !body.includes('\ufffd'))
    }
    const short = createRejectFromEvent({ stream: 'main', offset: 1 }, aCapturedEvent(1), 'row_refused', '')
    assert.equal(short.source!.isTruncated, false)
  })
})

describe('the address of a reject', () => {
  const records: LogRecord[] = [
    { kind: 'reject', reject: aCapturedReject({ source }) },
    { kind: 'event', event: aCapturedEvent(1, { propertiesJson: 'null' }) },
    { kind: 'event', event: aCapturedEvent(2) },
  ]
  const addresses = async (anonymizeIps: boolean) => {
    const store = memoryChunkStore(memoryState([aProject({ anonymizeIps })]))
    const chunk = parseChunk({ stream: 'main', traffic: 'live', records: recordsAt(records) }, new Map())
    const processed = processChunk(chunk, await loadWhole(store, listChunkSubjects(chunk)), {
      logId: 'log',
      lookUpGeoip: () => null,
    })
    const { rejected } = rejectRefusedRows(processed, [{ list: 'events', index: 0, message: 'no' }])
    return [...processed.rows.rejected, ...rejected].map(reject => reject.source!.ip)
  }

  it('is stored unless the project stores no addresses', async () => {
    assert.deepEqual(await addresses(false), Array(3).fill('203.0.113.7'))
    assert.deepEqual(await addresses(true), ['', '', ''])
  })
})

describe('the source of a reject', () => {
  it('is null if its text was not written by encodeRejectSource', () => {
    for (const text of ['', '{', 'null', '[]', '7', '{}', '{"kind":"other"}', '{"kind":"request"'])
      assert.equal(decodeRejectSource(text), null, text)
    for (const each of [source, { ...source, kind: null, isTruncated: true }])
      assert.deepEqual(decodeRejectSource(encodeRejectSource(each)), each)
  })
})

describe('the id of a reject', () => {
  it('is derived from its place in the log, in every stream', () => {
    const idAt = (stream: string, offset: number) =>
      createRejectFromEvent({ stream, offset }, aCapturedEvent(1), 'row_refused', '').rejectId
    assert.equal(idAt('main/3', 7), idAt('main/3', 7))
    const ids = ['main', 'historical', 'main/3', 'main/4'].flatMap(stream => [7, 8].map(offset => idAt(stream, offset)))
    assert.equal(new Set(ids).size, 8)
    for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  it('of a damaged record is different in each stream of each log', () => {
    const damaged = { kind: 'damaged', body: new Uint8Array(), appendedAtMs: 1 } as const
    const ids = ['one', 'other'].flatMap(logId =>
      ['main', 'historical', 'main/3'].map(
        stream => createRejectFromDamage({ stream, offset: 7 }, { logId, traffic: 'live' }, damaged).rejectId,
      ),
    )
    assert.equal(new Set(ids).size, 6)
  })
})
