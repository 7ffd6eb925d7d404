// Cached counts of flag usage, on the real engine: whatever happens between two counts, the answer is that of a plain
// count of the calls.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { pino } from 'pino'
import type { Project } from '#core/project.ts'
import { createFlagUsageRefresher } from '#services/worker/cache-flag-usage.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { countsOf, startFlagServer } from './flag-calls-server.ts'
import { createCallsWorld, plainUsage, wallClock } from './flag-calls-world.ts'

const at = (text: string) => Date.parse(text)
/** The API's clock is fixed at this time. */
let nowMs = at('2026-05-01T12:00:00Z')
const clock = { nowMs: () => ++nowMs }
const events = eventStoreForTests({ clock })
let jobCount = 1

function keeperOf(projectId: number, timezone: () => string) {
  const project = () => ({ id: projectId, timezone: timezone() }) as Project
  const projects = { listProjectIds: async () => [projectId], findProject: async () => project() }
  return createFlagUsageRefresher({
    events: events.store,
    projects,
    clock,
    logger: pino({ level: 'silent' }),
    callsMin: 1,
  })
}

/** How many buckets of a table's row are kept, however often. */
async function cachedRows(projectId: number, where: string): Promise<number> {
  const query = `SELECT count() FROM cached_flag_usage WHERE project_id = ${projectId} AND ${where}`
  const result = await events.clients.read(client => client.query({ query, format: 'JSONCompactEachRow' }))
  return Number((await result.json<[number]>())[0]![0])
}

describe('cached counts of flag usage', () => {
  for (const timezone of ['Europe/Berlin', 'Asia/Kolkata'])
    it(`do not change any answer at any step of a random history, in ${timezone}`, async t => {
      const { projectId, answer } = await startFlagServer(t, events.store, { timezone })
      const seed = testSeed()
      t.diagnostic(`SEED=${seed}`)
      const random = seededRandom(seed)
      const [fromMs, endMs] = [at('2026-03-27T00:00:00Z'), at('2026-03-31T00:00:00Z')]
      const newJob = () => ++jobCount
      const world = createCallsWorld({ store: events.store, projectId, random, fromMs, endMs, newJob })
      let keeper = keeperOf(projectId, () => timezone)
      const keep = async () => {
        for (let isComplete = false; !isComplete; ) isComplete = await keeper.refreshNow()
      }
      const check = async (when: string) => {
        for (const interval of ['hour', 'day'] as const) {
          const expected = plainUsage(world.calls(), 'beta', wallClock(timezone, interval))
          const range = '?date_from=2026-03-25&date_to=2026-04-02'
          assert.deepEqual(countsOf(await answer('usage', `${range}&interval=${interval}`), interval), expected, when)
        }
      }
      await world.step('call')
      await keep()
      for (let step = 0; step < 12; step++) {
        const name = await world.step()
        // A worker that was killed knows nothing of what the last one found.
        if (random() < 0.2) keeper = keeperOf(projectId, () => timezone)
        if (name === 'merge' || random() < 0.3) await keep()
        await check(`after step ${step}, ${name}`)
      }
      await keep()
      await world.sendAgain()
      await check('after every call was sent again')
      await keep()
      await events.optimize('events', 'deduplicated_flag_calls', 'flag_call_arrivals', 'cached_flag_usage')
      await check('after the parts were merged')
      await events.engine.restart()
      await check('after the engine was killed and started again')
      assert.ok((await cachedRows(projectId, 'length(values) > 0')) > 0)
    })

  it('are used for answers until an event arrives for the day', async t => {
    const { projectId, answer, insert } = await startFlagServer(t, events.store, { timezone: 'UTC' })
    const usage = async () => (await answer('usage', '?date_from=2026-04-10&date_to=2026-04-12')).results[0].calls
    await insert({ timestampMs: at('2026-04-10T12:00:00Z') }, { timestampMs: at('2026-04-11T12:00:00Z') })
    const keeper = keeperOf(projectId, () => 'UTC')
    while (!(await keeper.refreshNow()));
    // Tampered, so that the answer shows where it comes from.
    await events.command(
      database => `ALTER TABLE ${database}.cached_flag_usage UPDATE calls = [77]
        WHERE project_id = ${projectId} AND length(calls) > 0 SETTINGS mutations_sync = 1`,
    )
    assert.deepEqual(await usage(), [77, 77, 0])
    await insert({ timestampMs: at('2026-04-11T13:00:00Z') })
    assert.deepEqual(await usage(), [77, 2, 0])
    await insert({ timestampMs: at('2026-04-12T13:00:00Z'), flag: 'other' })
    assert.deepEqual(await usage(), [77, 2, 0])
    while (!(await keeper.refreshNow()));
    await insert({ timestampMs: at('2026-04-10T13:00:00Z'), flag: 'other' })
    assert.deepEqual(await usage(), [1, 2, 0])
  })

  it('are computed once, for ended buckets of whole UTC days, and again when the time zone changes', async t => {
    const { projectId, insert } = await startFlagServer(t, events.store)
    await insert({ timestampMs: at('2026-04-10T12:00:00Z') })
    let timezone = 'Europe/Berlin'
    const keeper = keeperOf(projectId, () => timezone)
    const keep = async () => {
      while (!(await keeper.refreshNow()));
    }
    await keep()
    const lastDay = Date.parse('2026-05-01T00:00:00Z')
    assert.equal(await cachedRows(projectId, `end_ms > ${lastDay}`), 0)
    assert.equal(await cachedRows(projectId, `end_ms = ${at('2026-04-30T22:00:00Z')}`), 2)
    const before = await cachedRows(projectId, '1')
    await keep()
    assert.equal(await cachedRows(projectId, '1'), before)
    timezone = 'Asia/Tokyo'
    await keep()
    assert.equal(
      await cachedRows(projectId, `from_ms = ${at('2026-04-09T15:00:00Z')} AND end_ms = from_ms + 86400000`),
      1,
    )
  })
})
