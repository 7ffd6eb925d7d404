// When a v0 event happened: every form of time that clients write, corrected by send time, offset and the server's
// clock. One row for each rule of docs/wire/ingestion.md 3.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type CaptureEdge, startCaptureEdge } from '../support/capture-edge.ts'
import { testToken } from '../support/capture-server.ts'

const now = '2025-07-01T11:00:00.000Z'
const ten = '2025-07-01T10:00:00.000Z'
/** The client's clock is ten seconds fast. */
const fast = '2025-07-01T11:00:10Z'
const fastMs = Date.parse(fast)

let edge: CaptureEdge
before(async () => {
  edge = await startCaptureEdge({ now })
})
after(() => edge.close())

const item = { event: 'e', distinct_id: 'u' }

interface Row {
  readonly path?: string
  readonly envelope?: object
  readonly item: object
  readonly expected: string
}

async function check({ path = '/batch/', envelope = {}, item: fields, expected }: Row): Promise<void> {
  const body = JSON.stringify({ api_key: testToken, ...envelope, batch: [{ ...item, ...fields }] })
  const answer = await edge.send({ path, body })
  assert.equal(answer.status, 200, answer.body)
  assert.equal(new Date(answer.events[0]!.timestampMs).toISOString(), expected)
}

describe('formats of v0 times', () => {
  const readable: readonly (readonly [text: string, expected: string])[] = [
    ['2025-07-01T10:00:00Z', ten],
    ['2025-07-01t10:00:00z', ten],
    ['2025-07-01 10:00:00Z', ten],
    [' 2025-07-01T10:00:00Z ', ten],
    ['2025-07-01T10:00:00.999999999Z', '2025-07-01T10:00:00.999Z'],
    ['2025-07-01T13:00:00+03', ten],
    ['2025-07-01T13:00:00.5+03:00', '2025-07-01T10:00:00.500Z'],
    ['2025-07-01T04:30:00-0530', ten],
    ['2025-07-01T10:00:00', ten],
    ['2025-07-01T10:00:00.25', '2025-07-01T10:00:00.250Z'],
    ['2025-07-01 10:00:00', ten],
    ['2025-06-30', '2025-06-30T00:00:00.000Z'],
    ['2025/06/30', '2025-06-30T00:00:00.000Z'],
    ['06/30/2025', '2025-06-30T00:00:00.000Z'],
    ['6/30/2025 10:11:12', '2025-06-30T10:11:12.000Z'],
    ['Tue, 01 Jul 2025 10:00:00 +0000', ten],
    ['Tue, 1 Jul 2025 12:00:00 +0200', ten],
    ['1 Jul 2025 10:00:00 GMT', ten],
    ['1751364000', ten],
    ['1751364000000', ten],
    ['2021-W43-5', '2021-10-29T00:00:00.000Z'],
    ['2021-302', '2021-10-29T00:00:00.000Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
    ['1969-12-31T23:59:59.9999Z', '1969-12-31T23:59:59.999Z'],
    ['1900-01-01T00:00:00Z', '1900-01-01T00:00:00.000Z'],
  ]
  for (const [timestamp, expected] of readable) it(`reads ${timestamp}`, () => check({ item: { timestamp }, expected }))

  const unreadable = [
    ...['', ' ', 'now', 'yesterday', '2025-02-29T00:00:00Z', '2025-07-01T24:00:00Z', '2025-07-01T10:00:61Z'],
    ...[
      '2025-07-01T10:00:00+24:00',
      '2025-07-01T10:00:00 Europe/Oslo',
      '1899-12-31T23:59:59.999Z',
      '2300-01-01T00:00:00Z',
    ],
    ...['-000001-01-01T00:00:00Z', '+012025-01-01T00:00:00Z', '٢٠٢٥-07-01T10:00:00Z', '12', '17513640000000000'],
    ...['2021-W54-1', '2021-366', `2025-07-01T10:00:00.${'0'.repeat(99)}Z`],
  ]
  for (const timestamp of unreadable)
    it(`uses the time of receipt for "${timestamp.slice(0, 40)}"`, () => check({ item: { timestamp }, expected: now }))
})

describe('send time, offset and clock of v0', () => {
  const item = { timestamp: ten }
  const corrected = '2025-07-01T09:59:50.000Z'
  const ahead = (ms: number) => new Date(Date.parse(now) + ms).toISOString()
  const dayMs = 86_400_000
  const limitMs = 82_800_000
  const rows: readonly (readonly [what: string, row: Row])[] = [
    ['corrects by the send time of the envelope', { envelope: { sent_at: fast }, item, expected: corrected }],
    ['corrects by sentAt', { envelope: { sentAt: fast }, item, expected: corrected }],
    [
      'corrects by a send time with a zone',
      { envelope: { sent_at: '2025-07-01T14:00:10+03:00' }, item, expected: corrected },
    ],
    [
      'corrects forward for a slow clock',
      { envelope: { sent_at: '2025-07-01T10:59:50Z' }, item, expected: '2025-07-01T10:00:10.000Z' },
    ],
    ['ignores a send time without a zone', { envelope: { sent_at: '2025-07-01T11:00:10' }, item, expected: ten }],
    ['corrects by _ in ms', { path: `/batch/?_=${fastMs}`, item, expected: corrected }],
    ['corrects by ?sent_at in ms', { path: `/batch/?sent_at=${fastMs}`, item, expected: corrected }],
    ['ignores _ in seconds', { path: `/batch/?_=${fastMs / 1000}`, item, expected: ten }],
    ['ignores _ of 2020', { path: `/batch/?_=${Date.parse('2020-12-31T23:59:59.999Z')}`, item, expected: ten }],
    [
      'takes _ of 2021',
      { path: `/batch/?_=${Date.parse('2021-01-01')}`, item: { timestamp: '2020-12-31T23:00:00Z' }, expected: ten },
    ],
    [
      'prefers the envelope to _',
      { path: '/batch/?_=1751367000000', envelope: { sent_at: fast }, item, expected: corrected },
    ],
    [
      'falls back to _ from a send time that cannot be read',
      { path: `/batch/?_=${fastMs}`, envelope: { sent_at: 'x' }, item, expected: corrected },
    ],
    [
      'leaves out the correction for $ignore_sent_at',
      { envelope: { sent_at: fast }, item: { ...item, properties: { $ignore_sent_at: true } }, expected: ten },
    ],
    [
      'corrects for $ignore_sent_at as text',
      { envelope: { sent_at: fast }, item: { ...item, properties: { $ignore_sent_at: 'true' } }, expected: corrected },
    ],
    [
      'has the offset win',
      { envelope: { sent_at: fast }, item: { ...item, offset: 5_000 }, expected: '2025-07-01T10:59:55.000Z' },
    ],
    ['takes 23 h ahead', { item: { timestamp: ahead(limitMs) }, expected: ahead(limitMs) }],
    ['takes receipt for a millisecond more', { item: { timestamp: ahead(limitMs + 1) }, expected: now }],
    ['takes an offset 23 h ahead', { item: { offset: -limitMs }, expected: ahead(limitMs) }],
    ['takes receipt for an offset of a millisecond more', { item: { offset: -limitMs - 1 }, expected: now }],
    [
      'judges the future after the correction',
      { envelope: { sent_at: ahead(dayMs) }, item: { timestamp: ahead(dayMs - 1) }, expected: ahead(-1) },
    ],
    [
      'takes receipt for what the correction makes future',
      { envelope: { sent_at: ahead(-dayMs) }, item: { timestamp: ahead(0) }, expected: now },
    ],
    [
      'judges the future with $ignore_sent_at too',
      { item: { timestamp: ahead(dayMs), properties: { $ignore_sent_at: true } }, expected: now },
    ],
    ['takes 1970 for an offset before the year 0', { item: { offset: 9e15 }, expected: '1970-01-01T00:00:00.000Z' }],
    ['takes receipt for an offset before 1900', { item: { offset: 200 * 366 * dayMs }, expected: now }],
    ['takes receipt without a time, whatever the send time', { envelope: { sent_at: fast }, item: {}, expected: now }],
    [
      'takes an import as written',
      { envelope: { sent_at: fast, historical_migration: true }, item: { ...item, offset: 5_000 }, expected: ten },
    ],
  ]
  for (const [what, row] of rows) it(what, () => check(row))

  it('reads the send time of a list or a single event from the query only', async () => {
    const event = { ...item, event: 'e', distinct_id: 'u', api_key: testToken, sent_at: fast }
    for (const body of [event, [event]]) {
      const text = JSON.stringify(body)
      assert.equal((await edge.send({ body: text })).events[0]!.timestampMs, Date.parse(ten))
      const bySender = await edge.send({ path: `/e/?_=${fastMs}`, body: text })
      assert.equal(bySender.events[0]!.timestampMs, Date.parse(corrected))
      assert.equal(bySender.events[0]!.sentAtMs, fastMs)
    }
  })
})
