// A fetch onto a full disk waits, reports it, and continues when there is space.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { startMixpanel } from '../support/export-stand-in.ts'
import { fetchInto, rawLines } from '../support/fetching.ts'
import { quickClock } from '../support/fixed-clock.ts'
import { mountSmallDisk, noSmallDisk } from '../support/small-disk.ts'

const diskBytes = 4 * 2 ** 20

it('a fetch waits for space on a full disk, reports it, and loses nothing', { skip: noSmallDisk() }, async t => {
  const { path: disk, remove } = mountSmallDisk(diskBytes)
  t.after(remove)
  const days = ['2024-05-01', '2024-05-02', '2024-05-03']
  const lines = new Map(
    days.map(day => [day, [JSON.stringify({ event: day, noise: randomBytes(400_000).toString('hex') })]]),
  )
  const standIn = await startMixpanel({ lines })
  t.after(() => standIn.stop())
  const job = join(disk, 'job')
  const ballast = join(disk, 'ballast')
  const { bavail, bsize } = statfsSync(disk)
  writeFileSync(ballast, Buffer.alloc(bavail * bsize - 900_000))
  const reasons = new Set<string>()
  const clock = quickClock()
  const config = { source: 'mixpanel', host: standIn.url, from: days[0]!, to: days[2]! }
  const { partsDone } = await fetchInto(job, config, {
    clock,
    onProgress: ({ waiting }) => {
      if (waiting === null) return
      reasons.add(waiting.reason)
      // Space becomes free half an hour later.
      if (clock.sleptMs() > 1_800_000) rmSync(ballast, { force: true })
    },
  })
  assert.equal(partsDone, 3)
  assert.ok(reasons.has('the disk is full'), [...reasons].join())
  assert.ok(clock.sleptMs() > 1_800_000)
  assert.deepEqual(rawLines(job), [...lines.values()].flat())
  assert.ok(readFetchedParts(job)!.isComplete)
})
