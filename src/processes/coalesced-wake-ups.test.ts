import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LogStream } from '#core/events/log-stream.ts'
import { coalesceWakeUps } from './coalesced-wake-ups.ts'

test('the first wake-up of a stream is sent at once, later ones are combined, and other streams are independent', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const sent: LogStream[] = []
  const wakeUp = coalesceWakeUps(stream => sent.push(stream))
  for (let count = 0; count < 100; count++) wakeUp('main')
  wakeUp('historical')
  assert.deepEqual(sent, ['main', 'historical'])
  t.mock.timers.tick(10)
  assert.deepEqual(sent, ['main', 'historical', 'main'])
  wakeUp('main')
  t.mock.timers.tick(10)
  assert.equal(sent.length, 4, 'a wake-up during the pause is sent at its end')
  t.mock.timers.tick(50)
  assert.equal(sent.length, 4)
  wakeUp('main')
  assert.equal(sent.length, 5, 'after a quiet time it is sent at once again')
})
