import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type BatchStandIn, type Fault, startBatchStandIn } from '../../../tests/support/batch-stand-in.ts'
import { quickClock } from '../../../tests/support/fixed-clock.ts'
import { silentProgress } from '../../../tests/support/silent-progress.ts'
import type { FetchClock } from '../fetch/waiting.ts'
import { deriveImportUuid } from '../records/deterministic-uuid.ts'
import { type DeliveryDeps, deliverBatch } from './deliver-batch.ts'
import { encodeImportedEvent } from './encode-event.ts'
import { RateControl } from './rate-control.ts'
import type { OutgoingEvent } from './send-rounds.ts'
import { ServiceWaits } from './service-waits.ts'

/**
 * A clock on which waits never end by themselves, except for those without any back-off.
 * @param isShort whether the first, second … wait is to have no back-off.
 */
function endlessClock(isShort: (wait: number) => boolean): FetchClock {
  let waits = 0
  return {
    nowMs: () => 0,
    random: () => (isShort(++waits) ? 0 : 0.5),
    sleep: (_ms, signal) =>
      new Promise((_resolve, reject) => {
        if (signal.aborted) reject(signal.reason)
        signal.addEventListener('abort', () => reject(signal.reason))
      }),
  }
}

function batchOf(name: string): readonly OutgoingEvent[] {
  const event = { uuid: deriveImportUuid('test', name), event: name, distinctId: name, timeUs: 0, properties: {} }
  const outcome = {
    ...{ line: 1, raw: { object: '', line: 1, byte: 0 }, textBytes: 0 },
    source: () => ({ text: '', sha256: '', unreadableBytes: null }),
    result: { kind: 'events' as const, events: [event], notes: [], dropped: [] },
  }
  return [{ event, outcome, ...encodeImportedEvent(event, { source: 'test', jobId: '7' }) }]
}

function depsOf({ url }: BatchStandIn, isShort: (wait: number) => boolean, signal = new AbortController().signal) {
  const shown: (string | null)[] = []
  const clock = endlessClock(isShort)
  const progress = { ...silentProgress, waiting: (reason: string | null) => void shown.push(reason) }
  const deps: DeliveryDeps = {
    target: { address: url, projectKey: 'phc_x', serviceJobId: '7' },
    ...{ clock, progress, signal, waits: new ServiceWaits(clock, progress) },
    // Never makes a sender wait.
    rate: { take: () => 0, giveBack: () => {}, limitTo: () => {}, accepted: () => {}, refused: () => {} },
  }
  return { deps, shown }
}

describe('sending lanes that wait for the service', () => {
  const faultyOnce = (standIn: BatchStandIn, faultOf: (name: string) => Fault) => {
    const failed = new Set<string>()
    standIn.fault = ({ events: [first] }) => {
      const { event } = first!
      if (failed.has(event)) return null
      failed.add(event)
      return faultOf(event)
    }
  }

  it('all continue once one of them gets through', async t => {
    const standIn = await startBatchStandIn(t)
    faultyOnce(standIn, () => 'cut')
    // The last one to fail retries at once, when the others are already waiting.
    const { deps, shown } = depsOf(standIn, wait => wait === 3)
    const delivered = await Promise.all(['a', 'b', 'c'].map(name => deliverBatch(batchOf(name), deps)))
    assert.deepEqual(
      delivered.map(({ sent }) => sent),
      [1, 1, 1],
    )
    assert.equal(shown.at(-1), null)
  })

  it('show the reason for the wait while one of them waits as long as the service asked', async t => {
    const standIn = await startBatchStandIn(t)
    faultyOnce(standIn, name => (name === 'asked' ? { status: 503, headers: { 'retry-after': '40' } } : 'cut'))
    const ended = new AbortController()
    const { deps, shown } = depsOf(standIn, () => true, ended.signal)
    const asked = deliverBatch(batchOf('asked'), deps)
    while (shown.length === 0) await new Promise(setImmediate)
    assert.equal((await deliverBatch(batchOf('cut'), deps)).sent, 1)
    assert.match(shown.at(-2)!, /^no connection/)
    assert.equal(shown.at(-1), 'the service asks to wait (503), 40 s')
    ended.abort(new Error('the end'))
    await assert.rejects(asked, /the end/)
  })

  it('are not woken when lanes that were not waiting succeed', async t => {
    const standIn = await startBatchStandIn(t)
    standIn.fault = ({ events: [first] }) => (first!.event === 'at fault' ? { status: 500 } : null)
    const ended = new AbortController()
    const { deps } = depsOf(standIn, wait => wait === 1, ended.signal)
    const faulty = deliverBatch(batchOf('at fault'), deps)
    while (standIn.requests < 2) await new Promise(setImmediate)
    for (const name of ['a', 'b', 'c']) await deliverBatch(batchOf(name), deps)
    assert.equal(standIn.requests, 5)
    ended.abort(new Error('the end'))
    await assert.rejects(faulty, /the end/)
  })
})

describe('a service that answers with Retry-After and a rate', () => {
  it('is retried after exactly that time, however often, and refused batches do not count towards the rate', async t => {
    const standIn = await startBatchStandIn(t)
    const headers = { 'retry-after': '5', 'x-import-rate': '100' }
    standIn.fault = () => (standIn.requests <= 20 ? { status: 429, headers } : null)
    const clock = { ...quickClock(), random: () => 0.99 }
    const { deps } = depsOf(standIn, () => true)
    const rate = new RateControl({ nowMs: clock.nowMs, rate: 100 })
    const waits = new ServiceWaits(clock, silentProgress)
    const events = Array.from({ length: 500 }, (_, index) => batchOf(`e-${index}`)[0]!)
    assert.equal((await deliverBatch(events, { ...deps, clock, rate, waits })).sent, 500)
    assert.equal(standIn.requests, 21)
    assert.ok(clock.sleptMs() >= 20 * 5_000 && clock.sleptMs() <= 20 * 6_000, `${clock.sleptMs()} ms`)
  })

  it('is retried with growing back-off while it answers 503, whatever rate it names', async t => {
    const standIn = await startBatchStandIn(t)
    const headers = { 'retry-after': '1', 'x-import-rate': '100' }
    standIn.fault = () => (standIn.requests <= 6 ? { status: 503, headers } : null)
    const clock = { ...quickClock(), random: () => 0.99 }
    const { deps } = depsOf(standIn, () => true)
    const calls: string[] = []
    const rate = { ...deps.rate, limitTo: () => calls.push('limit'), refused: () => calls.push('refused') }
    const waits = new ServiceWaits(clock, silentProgress)
    assert.equal((await deliverBatch(batchOf('a'), { ...deps, clock, rate, waits })).sent, 1)
    assert.ok(clock.sleptMs() >= 0.99 * (1 + 2 + 4 + 8 + 16 + 32) * 1_000, `${clock.sleptMs()} ms`)
    assert.deepEqual(calls, Array(6).fill('refused'))
  })
})
