// The load that a client with one project's public key can cause, and its effect on log-ins of another project. No
// real time is involved: the store answers, and time passes, only when the test says so.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { initializeMetricSeries } from '#compose/instance/initialize-metric-series.ts'
import type { HashKeyAssignment } from '#ports/state/subject-store.ts'
import { createDecideService } from '#services/flags/decide.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { compileTestProject, emptySubjects, noVisitors } from '../support/decide-server.ts'
import { aSubjectRequest } from '../support/evaluation-subject.ts'

const flags = [
  { id: 1, key: 'half', ensure_experience_continuity: true, filters: { groups: [{ rollout_percentage: 50 }] } },
]
const attackerId = 1
const victimId = 2
const projects = new Map(
  [attackerId, victimId].map(id => [
    `phc_${id}`,
    compileTestProject({ flags, project: { id, apiToken: `phc_${id}` } }),
  ]),
)
const noVisitor = () => ({ address: '', host: '', userAgent: '' })
const atOnceMax = 64
const waitingMax = 500

interface Write {
  readonly assignment: HashKeyAssignment
  readonly answer: () => void
}

/** A service whose store has the persons that `isStored` accepts, and answers a write only when the test says so. */
function start(isStored: (projectId: number) => boolean) {
  const metrics = createMetrics()
  initializeMetricSeries(metrics)
  const timers: { readonly run: () => void; readonly delayMs: number; isCancelled: boolean }[] = []
  const writes: Write[] = []
  const service = createDecideService({
    findProject: apiKey => projects.get(apiKey) ?? null,
    subjects: emptySubjects,
    salts: { saltOf: () => assert.fail('no visitor is cookieless') },
    visitors: noVisitors,
    hashKeys: {
      findHashKeys: projectId => (isStored(projectId) ? [] : null),
      addMissingHashKeys(assignment) {
        const { promise, resolve } = Promise.withResolvers<readonly (readonly [string, string])[]>()
        writes.push({ assignment, answer: () => resolve([['half', assignment.anonDistinctId]]) })
        return promise
      },
    },
    writesAtOnceMax: atOnceMax,
    geoip: null,
    countFlagRequest: () => {},
    metrics,
    logger: createSilentLogger(),
    guard: {
      monotonicNowMs: () => 0,
      startTimer(run, delayMs) {
        const timer = { run, delayMs, isCancelled: false }
        timers.push(timer)
        return {
          cancel: () => {
            timer.isCancelled = true
          },
        }
      },
    },
  })
  return {
    writes,
    timers,
    /** @returns whether the log-in's flag could be computed. */
    async logIn(projectId: number, distinctId: string): Promise<boolean> {
      const request = aSubjectRequest({ apiKey: `phc_${projectId}`, distinctId, anonDistinctId: 'anonymous' })
      const result = await service.decide(request, 0, noVisitor, evaluation => !evaluation.hasErrors)
      assert.equal(result.kind, 'evaluated')
      return result.kind === 'evaluated' && result.answer
    },
    dropped: async () => {
      const { values } = await metrics.loginsDropped.get()
      return Object.fromEntries(values.map(({ labels, value }) => [labels.why, value]))
    },
    storeFailures: async () => {
      const { values } = await metrics.dependencyFailures.get()
      return values.reduce((sum, { value }) => sum + value, 0)
    },
    /** Lets the store answer all calls one by one, oldest first. @returns their project ids in this order. */
    async answerAll(): Promise<number[]> {
      const order: number[] = []
      for (let write = writes.shift(); write !== undefined; write = writes.shift()) {
        order.push(write.assignment.projectId)
        write.answer()
        await turn()
      }
      return order
    },
  }
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index)

describe('log-ins of persons who are not stored yet', () => {
  it('keep the flags of these persons however many log-ins of another project are waiting', async () => {
    let isThere = false
    const { logIn, timers, writes, dropped } = start(projectId => isThere && projectId === victimId)
    assert.deepEqual(await dropped(), { person_missing: 0, queue_full: 0, queue_timeout: 0 })
    for (const index of range(20)) await logIn(victimId, `before-${index}`)
    for (const index of range(2_100)) await logIn(attackerId, `nobody-${index}`)
    for (const index of range(20)) await logIn(victimId, `after-${index}`)
    assert.deepEqual(await dropped(), { person_missing: 140, queue_full: 0, queue_timeout: 0 })
    isThere = true
    for (const { run, delayMs, isCancelled } of timers.splice(0)) if (delayMs === 300 && !isCancelled) run()
    await turn()
    assert.deepEqual(
      writes.map(({ assignment }) => assignment.distinctId),
      [...range(20).map(index => `before-${index}`), ...range(20).map(index => `after-${index}`)],
    )
    const lookingAgain = timers.filter(({ delayMs, isCancelled }) => delayMs === 700 && !isCancelled)
    assert.equal(lookingAgain.length, 1_960, 'the log-ins of the other project that were not dropped')
  })

  it('evict the oldest waiting log-in of their own project if that project has the most waiting log-ins', async () => {
    let isThere = false
    const { logIn, timers, writes, answerAll } = start(() => isThere)
    for (const index of range(2_001)) await logIn(attackerId, String(index))
    isThere = true
    for (const { run, delayMs, isCancelled } of timers.splice(0)) if (delayMs === 300 && !isCancelled) run()
    await turn()
    assert.equal(writes[0]?.assignment.distinctId, '1')
    assert.equal((await answerAll()).length, atOnceMax + waitingMax, 'the others look again')
  })
})

describe('log-ins whose continuity rows wait for the store', () => {
  it('are served before queued log-ins of a busier project', async () => {
    const { logIn, writes, answerAll, dropped, storeFailures } = start(() => true)
    const ofAttacker = range(600).map(index => logIn(attackerId, `p${index}`))
    const ofVictim = range(5).map(index => logIn(victimId, `v${index}`))
    assert.equal(writes.length, atOnceMax)
    const order = await answerAll()
    assert.deepEqual(await Promise.all(ofVictim), [true, true, true, true, true])
    const lastOfVictim = order.lastIndexOf(victimId)
    assert.ok(lastOfVictim <= atOnceMax + 10, `${lastOfVictim} calls came before: each has one turn in two`)
    const kept = (await Promise.all(ofAttacker)).filter(isKept => isKept)
    assert.equal(kept.length, atOnceMax + waitingMax - ofVictim.length)
    assert.deepEqual(await dropped(), {
      person_missing: 0,
      queue_full: 600 + 5 - atOnceMax - waitingMax,
      queue_timeout: 0,
    })
    assert.equal(await storeFailures(), 0)
    const next = logIn(victimId, 'next')
    await answerAll()
    assert.equal(await next, true, 'the store has not failed')
  })

  it('are written in the order in which their project sent them', async () => {
    const { logIn, writes } = start(() => true)
    const all = range(300).map(index => logIn(index % 3 === 0 ? victimId : attackerId, String(index)))
    const written: HashKeyAssignment[] = []
    for (let write = writes.shift(); write !== undefined; write = writes.shift()) {
      written.push(write.assignment)
      write.answer()
      await turn()
    }
    assert.deepEqual(new Set(await Promise.all(all)), new Set([true]))
    for (const projectId of [attackerId, victimId]) {
      const ids = written.filter(each => each.projectId === projectId).map(({ distinctId }) => Number(distinctId))
      assert.deepEqual(
        ids,
        ids.toSorted((a, b) => a - b),
      )
    }
  })

  it('do not count their time in the queue as a failure of the store', async () => {
    const { logIn, timers, writes, answerAll, dropped, storeFailures } = start(() => true)
    const all = range(atOnceMax + 20).map(index => logIn(attackerId, String(index)))
    assert.equal(timers.length, all.length)
    for (const { run } of timers.slice(atOnceMax)) run()
    assert.deepEqual(new Set(await Promise.all(all.slice(atOnceMax))), new Set([false]))
    assert.deepEqual(await dropped(), { person_missing: 0, queue_full: 0, queue_timeout: 20 })
    assert.equal((await answerAll()).length, atOnceMax, 'log-ins that gave up are not written')
    const next = logIn(victimId, 'next')
    assert.equal(writes.length, 1)
    await answerAll()
    assert.equal(await next, true)
    assert.equal(await storeFailures(), 0)
  })
})
