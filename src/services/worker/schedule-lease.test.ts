import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { PortError } from '#ports/port-error.ts'
import type { ScheduleOwners } from '#ports/state/worker-state.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { runPeriodically } from '../shared/run-periodically.ts'
import { createScheduleLease, scheduleLeaseMs } from './schedule-lease.ts'

async function aState(t: TestContext) {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const store = openSqliteManagementStore({ dataFolder, access: 'write' })
  t.after(() => store.close())
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const world = { store, clock, claimCount: 0, isDown: false }
  const owners: ScheduleOwners = {
    claimSchedule: lease => {
      world.claimCount++
      return world.isDown ? Promise.reject(new PortError('state', 'full')) : store.claimSchedule(lease)
    },
    releaseSchedule: store.releaseSchedule,
  }
  return Object.assign(world, { lease: (ownerId: string) => createScheduleLease({ owners, ownerId, clock }) })
}

describe('the lease for scheduled tasks', () => {
  it('belongs to one worker, and to another worker once it was not renewed in time', async t => {
    const { lease, clock } = await aState(t)
    const [one, other] = [lease('one'), lease('other')]
    assert.deepEqual([await one.isOurs(), await other.isOurs()], [true, false])
    clock.advance(scheduleLeaseMs - 1)
    assert.deepEqual([await other.isOurs(), await one.isOurs()], [false, true], 'renewed in time')
    clock.advance(scheduleLeaseMs)
    assert.deepEqual([await other.isOurs(), await one.isOurs()], [true, false])
  })

  it('is written once per half of its duration, however many callers ask', async t => {
    const world = await aState(t)
    const lease = world.lease('one')
    for (let ms = 0; ms < 10 * scheduleLeaseMs; ms += 1_000) {
      assert.deepEqual(await Promise.all([lease.isOurs(), lease.isOurs(), lease.isOurs()]), [true, true, true])
      world.clock.advance(1_000)
    }
    assert.ok(world.claimCount <= 21, `${world.claimCount} writes`)
  })

  it('is free immediately after a stop, and available to the same worker after a kill', async t => {
    const { lease } = await aState(t)
    const one = lease('one')
    await one.isOurs()
    assert.equal(await lease('one').isOurs(), true, 'the same worker, started again')
    await one.leave()
    assert.equal(await lease('other').isOurs(), true)
  })

  it('remains valid while the state cannot be written, until it expires', async t => {
    const world = await aState(t)
    const lease = world.lease('one')
    await lease.isOurs()
    world.isDown = true
    world.clock.advance(scheduleLeaseMs - 1)
    assert.equal(await lease.isOurs(), true)
    world.clock.advance(1)
    await assert.rejects(lease.isOurs(), { code: 'full' })
  })

  it('is claimed again if the clock was set back', async t => {
    const world = await aState(t)
    const lease = world.lease('one')
    await lease.isOurs()
    world.clock.advance(-3_600_000)
    assert.equal(await lease.isOurs(), true)
    assert.equal(world.claimCount, 2)
  })

  it('allows one of two workers to run a task, and the other worker once the first has died', async t => {
    const { lease, clock } = await aState(t)
    const rounds: string[] = []
    const start = (ownerId: string) => {
      const stopping = new AbortController()
      const { isOurs } = lease(ownerId)
      const options = {
        everyMs: 1,
        what: 'a test',
        logger: createSilentLogger(),
        signal: stopping.signal,
        mayRun: isOurs,
      }
      const ended = runPeriodically(async () => void rounds.push(ownerId), options)
      t.after(() => stopping.abort())
      return async () => {
        stopping.abort()
        await ended
      }
    }
    const kill = start('one')
    await eventually(() => rounds.length > 0)
    start('other')
    await eventually(() => rounds.length > 20)
    assert.deepEqual([...new Set(rounds)], ['one'])
    await kill()
    clock.advance(scheduleLeaseMs)
    await eventually(() => rounds.includes('other'))
  })
})
