import assert from 'node:assert/strict'
import { test } from 'node:test'
import { usualOptions } from '#core/imports/import-job.ts'
import { aHistoricEvent } from '../../../../tests/support/historic-events.ts'
import { type HistoricEvent, orderHistory, type PublishedJob } from './historic-event.ts'

/** The uuids of the events in order; those of a job in brackets. */
function ordered(events: readonly HistoricEvent[], jobs: readonly PublishedJob[] = []): string {
  const items = orderHistory(events, new Map(jobs.map(job => [job.id, job])))
  return items
    .map(item => (item.job === null ? item.event.uuid : `[${item.events.map(({ uuid }) => uuid).join(' ')}]`))
    .join(' ')
}

const at = (
  uuid: string,
  logStream: string,
  logOffset: number,
  storedAtMs: number,
  over: Partial<HistoricEvent> = {},
) => aHistoricEvent({ uuid, logStream, logOffset, storedAtMs, ...over })
const ofJob = { isOfJob: true, importJobId: 5 }
const job: PublishedJob = { id: 5, options: usualOptions, publishBeganAtMs: 20 }

test('events of a stream are in the order of their offsets, whatever the clock did', () => {
  assert.equal(ordered([at('c', 'main', 3, 10), at('a', 'main', 1, 10), at('b', 'main', 2, 10)]), 'a b c')
  assert.equal(ordered([at('a', 'main', 1, 30), at('b', 'main', 2, 10), at('c', 'main', 3, 20)]), 'a b c')
})

test('events of different streams are ordered by the time at which they were stored', () => {
  const events = [at('b', 'main', 7, 20), at('d', 'main', 8, 40), at('a', 'main/2', 8, 10), at('c', 'main/2', 9, 30)]
  assert.equal(ordered(events), 'a b c d')
})

test('events stored after the clock was set back follow earlier events of their own stream, not of other streams', () => {
  const events = [at('a', 'main', 1, 30), at('b', 'main', 2, 10), at('other', 'main/2', 1, 20)]
  assert.equal(ordered(events), 'other a b')
})

test('if a record was tried several times, only the last try counts, with its time', () => {
  const events = [at('second', 'main', 1, 30), at('first', 'main', 1, 10), at('other', 'main/2', 1, 20)]
  assert.equal(ordered(events), 'other second')
})

test('a restored row counts only if its record has no other row', () => {
  const restored = at('restored', 'main', 1, 30, { isRestored: true })
  const events = [at('a', 'main', 1, 10), restored, at('b', 'main', 2, 12), at('other', 'main/2', 1, 20)]
  assert.equal(ordered(events), 'a b other')
  assert.equal(ordered(events.slice(1)), 'other restored b')
})

test('rows from before offsets were stored are in the order in which they were stored, and each of them counts', () => {
  assert.equal(ordered([at('b', '', 0, 20), at('a', '', 0, 10), at('c', 'main', 1, 30)]), 'a b c')
})

test('a job takes effect as a whole when its publishing begins, after events stored in the same millisecond', () => {
  const events = [
    ...[at('x', 'historical', 1, 5, ofJob), at('y', 'historical', 2, 50, ofJob)],
    ...[at('a', 'main', 1, 10), at('b', 'main', 2, 20), at('c', 'main', 3, 21)],
  ]
  assert.equal(ordered(events, [job]), 'a b [x y] c')
})

test('imports without a job take effect when they arrive', () => {
  assert.equal(ordered([at('a', 'historical', 1, 10, { importJobId: 5 }), at('b', 'main', 1, 30)], [job]), 'a b')
})

test('events of a job that is not published are left out', () => {
  assert.equal(ordered([at('x', 'historical', 1, 5, ofJob), at('a', 'main', 1, 10)]), 'a')
})

test('a row that was written when its job was published does not delay later events of the stream', () => {
  const events = [at('x', 'historical', 1, 21, ofJob), at('a', 'historical', 2, 10), at('b', 'main', 1, 15)]
  assert.equal(ordered(events, [job]), 'a b [x]')
})
