import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { FairQueue, type QueuedJob } from './fair-queue.ts'

interface TestJob extends QueuedJob {
  readonly n: number
}
const job = (sender: string, n: number, bytes = 1, group = sender): TestJob => ({ sender, group, n, bytes })
const names = (jobs: readonly { sender: string; n: number }[]) => jobs.map(({ sender, n }) => `${sender}${n}`)

describe('FairQueue', () => {
  it('serves senders in turn, and keeps the order of each sender’s jobs', () => {
    const queue = new FairQueue<TestJob>({ jobCountMax: 20, bytesMax: 100 })
    for (let n = 0; n < 5; n++) queue.push(job('a', n))
    for (let n = 0; n < 2; n++) queue.push(job('b', n))
    assert.equal(queue.shift()?.n, 0)
    queue.push(job('c', 0))
    assert.deepEqual(names(queue.clear()), ['b0', 'a1', 'c0', 'b1', 'a2', 'a3', 'a4'])
    assert.equal(queue.jobCount, 0)
  })
  it('evicts jobs of the largest sender to admit a job of a smaller one', () => {
    const queue = new FairQueue<TestJob>({ jobCountMax: 4, bytesMax: 100 })
    for (let n = 0; n < 4; n++) assert.deepEqual(queue.push(job('a', n)), [])
    assert.deepEqual(names(queue.push(job('a', 4))), ['a4'])
    assert.deepEqual(names(queue.push(job('b', 0))), ['a3'])
    assert.deepEqual(names(queue.push(job('b', 1))), ['a2'])
    assert.deepEqual(names(queue.push(job('b', 2))), ['b2'], 'no sender has more than this one would have')
    assert.deepEqual(names(queue.clear()), ['a0', 'b0', 'a1', 'b1'])
  })
  it('also counts bytes, and refuses a job that can never fit', () => {
    const queue = new FairQueue<TestJob>({ jobCountMax: 10, bytesMax: 100 })
    assert.deepEqual(names(queue.push(job('a', 0, 101))), ['a0'])
    for (let n = 0; n < 3; n++) queue.push(job('a', n, 30))
    assert.deepEqual(names(queue.push(job('b', 0, 40))), ['a2'])
    assert.deepEqual(names(queue.push(job('b', 1, 20))), ['b1'])
  })
  it('treats a group of many senders as a single sender, both in turns and at the limit', () => {
    const queue = new FairQueue<TestJob>({ jobCountMax: 6, bytesMax: 100 })
    for (let n = 0; n < 6; n++) queue.push(job(`a${n}.`, 0, 1, 'a'))
    assert.deepEqual(names(queue.push(job('b', 0))), ['a0.0'])
    assert.deepEqual(names(queue.push(job('b', 1))), ['a1.0'])
    assert.deepEqual(names(queue.push(job('b', 2))), ['a2.0'])
    assert.deepEqual(names(queue.push(job('b', 3))), ['b3'], 'its group would have more than the other one')
    assert.deepEqual(names(queue.clear()), ['a3.0', 'b0', 'a4.0', 'b1', 'a5.0', 'b2'])
  })
  it('is also fair among the senders inside a group', () => {
    const queue = new FairQueue<TestJob>({ jobCountMax: 5, bytesMax: 100 })
    for (let n = 0; n < 3; n++) queue.push(job('a', n, 1, 'g'))
    for (let n = 0; n < 2; n++) queue.push(job('b', n, 1, 'other'))
    assert.deepEqual(names(queue.push(job('c', 0, 1, 'g'))), ['a2'])
    assert.deepEqual(names(queue.push(job('c', 1, 1, 'g'))), ['c1'])
    assert.deepEqual(names(queue.clear()), ['a0', 'b0', 'c0', 'b1', 'a1'])
  })
  it('removes a job from any position, and no job twice', () => {
    const queue = new FairQueue<TestJob>({ jobCountMax: 4, bytesMax: 100 })
    const [first, second, only] = [job('a', 0, 50), job('a', 1, 20), job('b', 0, 30)]
    for (const each of [first, second, only]) queue.push(each)
    assert.deepEqual([queue.remove(first), queue.remove(only), queue.remove(first)], [true, true, false])
    assert.equal(queue.jobCount, 1)
    assert.deepEqual(queue.push(job('c', 0, 80)), [], 'its bytes are free again')
    assert.deepEqual(names(queue.clear()), ['a1', 'c0'])
    assert.equal(queue.remove(second), false)
  })
  it('stays within its limits, loses nothing, and refuses no sender that is below its share', () => {
    const sent = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 1, max: 12 })), {
      maxLength: 60,
    })
    fc.assert(
      fc.property(sent, jobs => {
        const queue = new FairQueue<TestJob>({ jobCountMax: 8, bytesMax: 48 })
        let queued: TestJob[] = []
        for (const [n, [sender, bytes]] of jobs.entries()) {
          const pushed = { sender, bytes, n }
          const refused = queue.push(pushed)
          queued = [...queued, pushed].filter(each => !refused.includes(each))
          assert.ok(queued.length <= 8 && queued.reduce((sum, each) => sum + each.bytes, 0) <= 48)
          assert.equal(queue.jobCount, queued.length)
          // With four senders, none loses its only job unless that job takes more than a quarter of the capacity.
          for (const lost of refused) {
            const others = queued.filter(each => each.sender === lost.sender)
            assert.ok(others.length > 0 || lost.bytes > 12, 'a small single job was refused')
          }
        }
        assert.deepEqual(new Set(queue.clear()), new Set(queued))
      }),
    )
  })
})
