// When a v0 event happened: its time, corrected by send time, offset and the server's clock, from where clients write
// them (docs/wire/ingestion.md 3). `src/core/capture` has the forms of times and the rules of correction.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startCaptureEdge } from '../support/capture-edge.ts'
import { testToken } from '../support/capture-server.ts'
import { startedForTests } from '../support/started-for-tests.ts'

const now = '2025-07-01T11:00:00.000Z'
const ten = '2025-07-01T10:00:00.000Z'
/** The client's clock is ten seconds fast. */
const fast = '2025-07-01T11:00:10Z'
const fastMs = Date.parse(fast)

const edge = startedForTests(() => startCaptureEdge({ now }))

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

describe('v0 capture (send time, offset and clock)', () => {
  const item = { timestamp: ten }
  const corrected = '2025-07-01T09:59:50.000Z'
  const ahead = (ms: number) => new Date(Date.parse(now) + ms).toISOString()
  const dayMs = 86_400_000
  const rows: readonly (readonly [what: string, row: Row])[] = [
    ['reads a form of other libraries', { item: { timestamp: 'Tue, 1 Jul 2025 12:00:00 +0200' }, expected: ten }],
    ['corrects by sentAt', { envelope: { sentAt: fast }, item, expected: corrected }],
    [
      'corrects by a send time with a zone',
      { envelope: { sent_at: '2025-07-01T14:00:10+03:00' }, item, expected: corrected },
    ],
    ['ignores a send time without a zone', { envelope: { sent_at: '2025-07-01T11:00:10' }, item, expected: ten }],
    ['corrects by ?sent_at in ms', { path: `/batch/?sent_at=${fastMs}`, item, expected: corrected }],
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
      'judges the future with $ignore_sent_at too',
      { item: { timestamp: ahead(dayMs), properties: { $ignore_sent_at: true } }, expected: now },
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
