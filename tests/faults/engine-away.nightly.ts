// The embedded engine is down and cannot restart, or can no longer be found. Readiness and doctor report it, and
// everything recovers by itself once the cause is gone.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennonFor } from '../support/pennon.ts'
import { runCommand } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

for (const fronts of ['1', '2']) {
  test(`a lost engine is reported while its configuration cannot be written, with fronts: ${fronts}`, async t => {
    const pennon = await started(t, fronts)
    const killed = pennon.childPids().events!
    // Makes writing fail as on a full disk.
    const inTheWay = join(pennon.dataFolder, 'events', 'config.xml.new')
    mkdirSync(inTheWay)
    process.kill(killed, 'SIGKILL')
    await eventually(async () => (await readiness(pennon)) === '503 event_store_unavailable')
    const { stdout } = await runCommand({ PENNON_DATA: pennon.dataFolder, PORT: String(pennon.port) }, 'doctor')
    assert.match(stdout, /events: event_store_unavailable/)
    await eventually(() => pennon.output().includes('cannot start a process'))

    rmdirSync(inTheWay)
    await eventually(async () => (await readiness(pennon)) === '200 ok')
    await answersQueries(pennon)
    assert.equal(await pennon.stop(), 0)
  })

  test(`a removed endpoint file is reported and written again when possible, with fronts: ${fronts}`, async t => {
    const pennon = await started(t, fronts)
    const { events } = pennon.childPids()
    const file = join(pennon.dataFolder, 'events', 'endpoint.json')
    const before = readFileSync(file, 'utf8')
    mkdirSync(`${file}.new`)
    rmSync(file)
    await eventually(async () => (await readiness(pennon)) === '503 event_store_unavailable')
    await eventually(() => pennon.output().includes('is missing and cannot be written'))
    rmdirSync(`${file}.new`)
    await eventually(async () => (await readiness(pennon)) === '200 ok')
    assert.equal(readFileSync(file, 'utf8'), before)
    assert.equal(pennon.childPids().events, events, 'the same engine')
    await answersQueries(pennon)
    assert.equal(await pennon.stop(), 0)
  })
}

async function started(t: TestContext, fronts: string): Promise<Pennon> {
  const pennon = await startPennonFor(t, { dataFolder: tempDir(t), settings: { PENNON_FRONT_PROCESSES: fronts } })
  assert.equal((await pennon.capture('before')).status, 200)
  await pennon.caughtUp()
  await answersQueries(pennon)
  return pennon
}

/** The readiness status when events are required, and its value for events. */
async function readiness(pennon: Pennon): Promise<string> {
  const { status, events } = await pennon.readiness('?require=events')
  return `${status} ${events}`
}

test('an unreachable CLICKHOUSE_URL is reported soon, without a request', async t => {
  const settings = { CLICKHOUSE_URL: 'http://pennon:secret@127.0.0.1:9/pennon' }
  const pennon = await startPennonFor(t, { settings, waitForProcessing: false })
  await eventually(() => /processing is waiting for the event store/.test(pennon.output()))
  assert.doesNotMatch(pennon.output(), /:secret@/)
  const { status, events, processing } = await pennon.readiness()
  assert.deepEqual([status, events, processing], [200, 'event_store_unavailable', 'waiting_for_event_store'])
})

async function answersQueries(pennon: Pennon): Promise<void> {
  assert.deepEqual(await pennon.eventNames(), ['before'])
}
