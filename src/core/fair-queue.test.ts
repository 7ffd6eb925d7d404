import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { FairQueue, type QueuedJob } from './fair-queue.ts'

interface TestJob extends QueuedJob {
  readonly n: number
}
const job = (sender: string, n: number, bytes = 1): TestJob => ({ sender, n, bytes })
const names = (jobs: readonly { sender: string; n: number }[]) => jobs.map(({ sender, n }) => `${sender}${n}`)

describe('FairQueue', () => {
  it('gives each sender its turn, and keeps the order of each', () => {
    const queue = new FairQueue<TestJob>({ jobCountMax: 20, bytesMax: 100 })
    for (let n = 0; n < 5; n++) queue.push(job('a', n))
    for (let n = 0; n < 2; n++) queue.push(job('b', n))
    assert.equal(queue.shift()?.n, 0)
    queue.push(job('c', 0))
    assert.deepEqual(names(queue.clear()), ['b0', 'a1', 'c0', 'b1', 'a2', 'a3', 'a4'])
    assert.equal(queue.jobCount, 0)
  })
  it('takes from the sender with the most what a smaller one has no room for', () => {
    const queue = new FairQueue<TestJob>({ jobCountMax: 4, bytesMax: 100 })
    for (let n = 0; n < 4; n++) assert.deepEqual(queue.push(job('a', n)), [])
    assert.deepEqual(names(queue.push(job('a', 4))), ['a4'])
    assert.deepEqual(names(queue.push(job('b', 0))), ['a3'])
    assert.deepEqual(names(queue.push(job('b', 1))), ['a2'])
    assert.deepEqual(names(queue.push(job('b', 2))), ['b2'], 'nobody has more than its sender would have')
    assert.deepEqual(names(queue.clear()), ['a0', 'b0', 'a1', 'b1'])
  })
  it('counts bytes as well, and refuses a job that never fits', () => {
    const queue = new FairQueue<TestJob>({ jobCountMax: 10, bytesMax: 100 })
    assert.deepEqual(names(queue.push(job('a', 0, 101))), ['a0'])
    for (let n = 0; n < 3; n++) queue.push(job('a', n, 30))
    assert.deepEqual(names(queue.push(job('b', 0, 40))), ['a2'])
    assert.deepEqual(names(queue.push(job('b', 1, 20))), ['b1'])
  })
  it('keeps its bounds, loses nothing, and refuses nobody who has less than a share of it', () => {
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
          // Four senders: nobody loses a job that is his only one and no more than a quarter of the room.
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
