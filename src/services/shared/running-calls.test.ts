import assert from 'node:assert/strict'
import { it } from 'node:test'
import { RunningCalls } from './running-calls.ts'

it('stopping waits for calls that have already begun, even if they fail, but not for those that begin later', async () => {
  const underWay = new RunningCalls()
  const first = Promise.withResolvers<void>()
  const later = Promise.withResolvers<void>()
  const failing = underWay.run(() => first.promise)
  let isSettled = false
  const settled = underWay.settled().then(() => {
    isSettled = true
  })
  const other = underWay.run(() => later.promise)
  await Promise.resolve()
  assert.equal(isSettled, false)
  first.reject(new Error('the store is away'))
  await assert.rejects(failing, /away/)
  await settled
  later.resolve()
  await other
  await underWay.settled()
})
