// The state file is removed under a running instance. Reads are answered from the open file, writes are refused because
// they would be lost, and readiness and one log line report it. Events accepted in the meantime wait in the log.

import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennonFor } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

const flagsPath = '/api/projects/@current/feature_flags/'

test('while the state file is missing, reading and capture work, but changes are refused until it is back', async t => {
  const { pennon, dataFolder } = await started(t)
  move(dataFolder, join(dataFolder, 'away'))
  await isNoticed(pennon)
  assert.equal((await pennon.capture('while it is away')).status, 200)
  await answersFlags(pennon)
  await pennon.api('GET', flagsPath)
  // Each writing thread checks by itself, once a second.
  let count = 0
  await eventually(() => refusalOf(pennon.api('POST', flagsPath, { key: `lost-${++count}` })))
  const lines = pennon.output().match(/.*state\.db was removed or replaced.*/g) ?? []
  assert.equal(lines.length, 1, pennon.output())
  assert.match(lines[0]!, /put the file back/)
  assert.equal(readdirSync(dataFolder).includes('state.db'), false, 'no empty state is created')

  move(join(dataFolder, 'away'), dataFolder)
  await eventually(async () => (await pennon.readiness()).processing === 'ok')
  await eventually(async () => !(await refusalOf(pennon.api('POST', flagsPath, { key: 'kept' }))))
  await pennon.caughtUp()
  assert.deepEqual(await pennon.eventNames(), ['before', 'while it is away'])
  assert.equal(await pennon.stop(), 0)
})

test('an instance whose state was replaced exits with 0, and the next processes waiting events into the new state', async t => {
  const { pennon, dataFolder } = await started(t)
  // As when a restored copy is put in place.
  const copy = join(dataFolder, 'copy.db')
  for (const suffix of ['', '-wal']) copyFileSync(join(dataFolder, `state.db${suffix}`), `${copy}${suffix}`)
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(dataFolder, `state.db${suffix}`))
  for (const suffix of ['', '-wal']) renameSync(`${copy}${suffix}`, join(dataFolder, `state.db${suffix}`))
  await isNoticed(pennon)
  assert.equal((await pennon.capture('while it is another')).status, 200)
  await answersFlags(pennon)
  assert.equal(await pennon.stop(), 0)

  const next = await startPennonFor(t, { dataFolder })
  await next.caughtUp()
  assert.deepEqual(await next.eventNames(), ['before', 'while it is another'])
  assert.equal(await next.stop(), 0)
})

async function started(t: TestContext): Promise<{ pennon: Pennon; dataFolder: string }> {
  const dataFolder = tempDir(t)
  const pennon = await startPennonFor(t, { dataFolder })
  await pennon.api('POST', flagsPath, { key: 'on', filters: { groups: [{ rollout_percentage: 100 }] } })
  assert.equal((await pennon.capture('before')).status, 200)
  await pennon.caughtUp()
  return { pennon, dataFolder }
}

async function isNoticed(pennon: Pennon): Promise<void> {
  await eventually(async () => (await pennon.readiness()).processing === 'state_files_removed')
  const { flags, capture, processing_reason: reason } = await pennon.readiness()
  assert.deepEqual([flags, capture], ['ok', 'ok'])
  assert.match(reason!, /state\.db was removed or replaced/)
}

async function answersFlags(pennon: Pennon): Promise<void> {
  const { status, featureFlags } = await pennon.decide()
  assert.deepEqual([status, featureFlags.on], [200, true])
}

function move(from: string, to: string): void {
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(from))
    if (/^state\.db(-wal|-shm)?$/.test(name)) renameSync(join(from, name), join(to, name))
}

async function refusalOf(call: Promise<unknown>): Promise<boolean> {
  try {
    await call
    return false
  } catch (error) {
    assert.match((error as Error).message, /: 503 /)
    return true
  }
}
