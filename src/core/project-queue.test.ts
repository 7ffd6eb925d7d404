import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ProjectQueue } from './project-queue.ts'

const full = () => new Error('full')

describe('ProjectQueue', () => {
  it('runs as many queries as allowed, queues as many, and refuses the rest, without affecting other projects', async () => {
    const queue = new ProjectQueue({ runningMax: 2, waitingMax: 1 }, full)
    const gates: Array<() => void> = []
    const started: string[] = []
    const query = (name: string) => () => {
      started.push(name)
      return new Promise<string>(done => gates.push(() => done(name)))
    }
    const running = [1, 2, 3].map(n => queue.run(7, undefined, query(`q${n}`)))
    await assert.rejects(queue.run(7, undefined, query('q4')), /full/)
    const other = queue.run(8, undefined, query('other'))
    assert.deepEqual(started, ['q1', 'q2', 'other'])
    gates[0]!()
    await running[0]
    assert.deepEqual(started, ['q1', 'q2', 'other', 'q3'])
    for (const gate of gates) gate()
    await Promise.all([...running, other])
    for (const gate of gates) gate()
    assert.equal(await queue.run(7, undefined, async () => 'again'), 'again')
  })

  it('removes an aborted query that is waiting, and frees the slot of a query that fails', async () => {
    const queue = new ProjectQueue({ runningMax: 1, waitingMax: 1 }, full)
    let fail = () => {}
    const failing = queue.run(
      7,
      undefined,
      () => new Promise<never>((_, failed) => (fail = () => failed(new Error('no')))),
    )
    const leaving = new AbortController()
    const left = queue.run(7, leaving.signal, async () => 'never')
    leaving.abort(new Error('gone'))
    await assert.rejects(left, /gone/)
    const next = queue.run(7, undefined, async () => 'next')
    fail()
    await assert.rejects(failing, /no/)
    assert.equal(await next, 'next')
  })
})
