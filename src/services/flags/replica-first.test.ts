import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { PortError } from '#ports/port-error.ts'
import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import type { HashKeyOverrideReader, SubjectStore } from '#ports/state/subject-store.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { createReplicaFirstStore } from './replica-first.ts'
import { createStoreCircuitBreaker, storeLimits } from './store-circuit-breaker.ts'

type Subjects = SubjectStore & HashKeyOverrideReader & CookielessVisitors
type Answer = <T>(found: T) => MaybePromise<T>

const at = <T>(found: T): T => found
const fails: Answer = () => {
  throw new PortError('state', 'unavailable')
}
const rejects: Answer = () => Promise.reject(new PortError('state', 'unavailable'))
const hangs: Answer = () => new Promise(() => {})

function start(replicaAnswer: Answer, primaryAnswer: Answer = at) {
  const world = { nowMs: 0, replica: replicaAnswer, primary: primaryAnswer, asked: { replica: 0, primary: 0 } }
  const lines: string[] = []
  const timers: { callback: () => void; delayMs: number }[] = []
  const metrics = createMetrics()
  const logger = Object.assign(createSilentLogger(), {
    error: (_: object, line: string) => void lines.push(line),
    info: (line: string) => void lines.push(line),
  })
  const subjectsOf = (name: 'replica' | 'primary'): Subjects => {
    const answer: Answer = found => {
      world.asked[name]++
      return world[name](found)
    }
    return {
      findPerson: (projectId, distinctId) =>
        answer({ uuid: `${projectId} ${distinctId}`, properties: { of: name }, createdAtMs: 0 }),
      findStaticCohorts: () => answer(new Set([name === 'replica' ? 1 : 2])),
      findGroup: (_projectId, index, key) => answer({ properties: { of: name, index, key } }),
      findHashKeys: () => answer([['flag', name] as const]),
      countIdentifies: () => answer(name === 'replica' ? 1 : 2),
    }
  }
  const guard = createStoreCircuitBreaker({
    ...storeLimits,
    port: 'subject-replica',
    task: 'reading the replica',
    without: 'the primary is read',
    logger,
    metrics,
    failuresMax: 2,
    restMs: 5_000,
    monotonicNowMs: () => world.nowMs,
    startTimer: (callback, delayMs) => {
      timers.push({ callback, delayMs })
      return { cancel: () => {} }
    },
  })
  const subjects = createReplicaFirstStore(subjectsOf('replica'), subjectsOf('primary'), guard)
  const source = async () => (await subjects.findPerson(1, 'ada'))!.properties.of
  return { world, lines, timers, metrics, guard, subjects, source }
}

describe('look-ups on a replica', () => {
  it('are answered by the replica without a call to the primary', async () => {
    const { world, source, guard } = start(at)
    assert.equal(await source(), 'replica')
    assert.deepEqual([world.asked, guard.isDown()], [{ replica: 1, primary: 0 }, false])
  })

  for (const [what, answer] of Object.entries({ throws: fails, rejects }))
    it(`are answered by the primary if the replica ${what}, with the same arguments`, async () => {
      const { subjects } = start(answer)
      assert.deepEqual(await subjects.findPerson(7, 'ada'), {
        uuid: '7 ada',
        properties: { of: 'primary' },
        createdAtMs: 0,
      })
      assert.deepEqual(await subjects.findStaticCohorts(7, 'ada'), new Set([2]))
      assert.deepEqual(await subjects.findGroup(7, 1, 'acme'), {
        properties: { of: 'primary', index: 1, key: 'acme' },
      })
      assert.deepEqual(await subjects.findHashKeys(7, 'ada'), [['flag', 'primary']])
      assert.equal(await subjects.countIdentifies(7, 'hash'), 2)
    })

  it('wait for a hanging replica only for their share of the time limit, and then no longer use it', async () => {
    const { world, timers, source, guard } = start(hangs)
    for (let count = 0; count < 2; count++) {
      const waiting = source()
      assert.equal(timers.at(-1)!.delayMs, storeLimits.timeoutMs)
      timers.at(-1)!.callback()
      assert.equal(await waiting, 'primary')
    }
    assert.equal(guard.isDown(), true)
    for (let count = 0; count < 3; count++) assert.equal(await source(), 'primary')
    assert.equal(world.asked.replica, 2, 'it is not called')

    world.nowMs = 5_001
    world.replica = at
    assert.equal(await source(), 'replica', 'one look-up detects that it works again')
    assert.equal(guard.isDown(), false)
  })

  it('that fail are counted for the replica and logged at most once a minute, even if it keeps recovering', async () => {
    const { world, lines, metrics, source } = start(fails)
    const failureLine = 'reading the replica: unavailable; the primary is read'
    for (let second = 0; second < 59; second++) {
      world.nowMs = second * 1_000
      world.replica = second % 20 >= 10 ? at : fails
      await source()
    }
    assert.deepEqual(lines, [failureLine, 'reading the replica: works again'])
    world.replica = fails
    for (let second = 61; second < 121; second++) {
      world.nowMs = second * 1_000
      await source()
    }
    assert.deepEqual(lines.slice(2), [failureLine])
    const { values } = await metrics.dependencyFailures.get()
    assert.deepEqual(values[0]!.labels, { port: 'subject-replica', code: 'unavailable' })
  })

  it('fail as the primary does when both are unavailable', async () => {
    const { subjects } = start(rejects, rejects)
    await assert.rejects(async () => subjects.findPerson(1, 'ada'), { code: 'unavailable' })
  })
})
