import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon } from '../support/pennon.ts'
import { mountSmallDisk, noSmallDisk } from '../support/small-disk.ts'
import {
  type CheckedLoad,
  findFaults,
  nothingFound,
  patientTarget,
  type Sent,
  startCheckedLoad,
} from './checked-load.ts'

// A disk that fills up under load: first up to the reserve, then to the last byte.

const MiB = 1024 * 1024
const diskBytes = 640 * MiB
/** Space left for the event store and the state when the log accepts no more. */
const reserveBytes = 192 * MiB

describe('an instance whose disk fills up under load', { skip: noSmallDisk() }, () => {
  let disk: string
  let removeDisk = () => {}
  let ballastPath: string
  let pennon: Pennon
  const loads: CheckedLoad[] = []
  const sent: Sent[] = []

  before(async () => {
    const small = mountSmallDisk(diskBytes)
    disk = small.path
    removeDisk = small.remove
    ballastPath = join(disk, 'ballast')
    pennon = await start(reserveBytes)
    await pennon.api('POST', '/api/projects/@current/feature_flags/', {
      key: 'on',
      filters: { groups: [{ rollout_percentage: 100 }] },
    })
  })
  after(async () => {
    for (const load of loads) load.abandon()
    await pennon?.killTree()
    removeDisk()
  })

  const start = (reserve: number) =>
    startPennon({
      dataFolder: join(disk, 'data'),
      settings: { PENNON_MIN_FREE_BYTES: String(reserve), PENNON_LOG_LEVEL: 'error' },
    })
  const startLoad = (run: string) => {
    const load = startCheckedLoad(() => patientTarget(pennon), { run })
    loads.push(load)
    return load
  }
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(disk)
    return bavail * bsize
  }
  const fillBelowReserve = () => writeBallast(ballastPath, freeBytes() - reserveBytes + 64 * MiB)
  const readiness = (query?: string) => pennon.readiness(query)
  async function assertFlagsAreServed(): Promise<void> {
    assert.deepEqual(await pennon.decide(), { status: 200, featureFlags: { on: true } })
  }
  const processedCount = async () => {
    const { lanes } = await pennon.api<{ lanes: Record<string, { appended: number; processed: number }> }>(
      'GET',
      '/api/projects/@current/ingestion_status/',
    )
    const sum = (count: 'appended' | 'processed') =>
      Object.values(lanes).reduce((total, lane) => total + lane[count], 0)
    return { appended: sum('appended'), processed: sum('processed') }
  }

  it('refuses events with a reason before the disk is full, serves flags, and processes accepted events', async () => {
    const load = startLoad('reserve ')
    await eventually(() => load.acknowledgedCount() > 200)
    let refused!: Response
    await eventually(async () => {
      fillBelowReserve() // repeated for space freed by merges or logs
      refused = await pennon.capture('probe')
      return refused.status === 503 && (await readiness()).capture === 'log_or_disk_full'
    })
    assert.equal((await readiness()).status, 200)
    assert.equal((await readiness('?require=capture')).status, 503)
    assert.match(refused.headers.get('retry-after') ?? '', /^([1-9]|[12]\d|30)$/)
    await assertFlagsAreServed()
    await eventually(async () => {
      const { appended, processed } = await processedCount()
      return processed === appended
    })
    assert.equal((await readiness()).processing, 'ok')
    rmSync(ballastPath)
    await eventually(async () => (await readiness('?require=capture')).status === 200)
    const before = load.acknowledgedCount()
    await eventually(() => load.acknowledgedCount() > before + 50)
    sent.push(await load.stop())
    assert.deepEqual(await findFaults(patientTarget(pennon), sent), nothingFound)
  })

  it('loses and duplicates nothing on a completely full disk, and recovers by itself', async () => {
    // Without a reserve, the log itself runs out of space in the middle of a commit.
    assert.equal(await pennon.stop(), 0)
    pennon = await start(0)
    const pids = [pennon.pid, ...Object.values(pennon.childPids())]
    const load = startLoad('full ')
    await eventually(() => load.acknowledgedCount() > 200)
    // Leaves something to process when no writes are possible.
    process.kill(pennon.childPids().work!, 'SIGSTOP')
    const behind = load.acknowledgedCount()
    await eventually(() => load.acknowledgedCount() > behind + 200)
    writeBallast(ballastPath, Number.POSITIVE_INFINITY)
    await eventually(async () => (await readiness()).capture === 'log_or_disk_full')
    process.kill(pennon.childPids().work!, 'SIGCONT')
    await eventually(async () => /^waiting_for/.test((await readiness()).processing!))
    for (let time = 0; time < 10; time++) {
      await assertFlagsAreServed()
      writeBallast(ballastPath, Number.POSITIVE_INFINITY) // space freed in between
      await sleep(300)
    }
    rmSync(ballastPath)
    await eventually(async () => (await readiness('?require=capture')).status === 200)
    await eventually(async () => (await readiness()).processing === 'ok')
    const before = load.acknowledgedCount()
    await eventually(() => load.acknowledgedCount() > before + 50)
    sent.push(await load.stop())
    assert.deepEqual(await findFaults(patientTarget(pennon), sent), nothingFound)
    assert.deepEqual([pennon.pid, ...Object.values(pennon.childPids())], pids, 'no process was restarted')
  })

  it('has files that SQLite finds intact', async () => {
    assert.equal(await pennon.stop(), 0)
    const paths = execFileSync('find', [disk, '-name', '*.db', '-not', '-name', 'lock.db'], { encoding: 'utf8' })
    for (const path of paths.trim().split('\n')) {
      const db = new Database(path, { readonly: true })
      assert.equal(db.pragma('integrity_check', { simple: true }), 'ok', path)
      db.close()
    }
  })
})

/** Writes this many bytes, or as many as fit. */
function writeBallast(path: string, bytes: number): void {
  const file = openSync(path, 'a')
  try {
    const block = Buffer.alloc(MiB)
    for (let left = bytes; left > 0; ) {
      const written = writeSync(file, block, 0, Math.min(left, block.length))
      left -= written
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    closeSync(file)
  }
}
