// A stop while the database hangs finishes in time, and everything acknowledged to clients is kept.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { childProcessesOf } from '../support/child-processes.ts'
import { type Pennon, startPennon, startPennonFor, testProjectKey } from '../support/pennon.ts'
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

/** Exceeds the timeouts of most connections, so that the first ones have been given up. */
const hangSeconds = 8

describe('a stop while PostgreSQL hangs', { skip: noPostgres() }, () => {
  const postgres = startedForTests(startPostgres)

  for (const fronts of ['1', '2'])
    it(`takes less than 10 s and loses no event (${fronts} front)`, async t => {
      await stopsWhileHanging(t, postgres, fronts, async () => {})
    })

  // Delays that could add up: a client that does not finish its request, a worker in the middle of a chunk, and
  // connections that are given up and reopened.
  for (const fronts of ['1', '2'])
    it(`takes no longer after a long hang, with a slow client (${fronts} front)`, async t => {
      await stopsWhileHanging(t, postgres, fronts, async pennon => {
        for (let count = 0; count < hangSeconds; count++) {
          const body = { api_key: testProjectKey, distinct_id: 'ada' }
          await pennon.post('/flags?v=2', body)
          await pennon.post('/i/v0/e/', { ...body, event: 'more' })
          await setTimeout(1_000)
        }
        await slowUpload(t, pennon.port)
      })
    })
})

async function stopsWhileHanging(
  t: TestContext,
  postgres: TestPostgres,
  fronts: string,
  beforeStop: (pennon: Pennon) => Promise<void>,
): Promise<void> {
  const dataFolder = tempDir(t)
  const settings = { DATABASE_URL: await postgres.createDatabase(), PENNON_FRONT_PROCESSES: fronts }
  const pennon = await startPennon({ dataFolder, settings })
  await pennon.api('GET', '/api/projects/@current/feature_flags/')
  await pennon.caughtUp()

  const frozen = [postgres.pid, ...childProcessesOf(postgres.pid)]
  for (const pid of frozen) process.kill(pid, 'SIGSTOP')
  try {
    for (let count = 0; count < 20; count++) {
      const body = { api_key: testProjectKey, distinct_id: 'ada' }
      assert.equal((await pennon.post('/flags?v=2', body)).status, 200)
      assert.equal((await pennon.post('/i/v0/e/', { ...body, event: 'seen', properties: { count } })).status, 200)
    }
    await beforeStop(pennon)
    const startedAt = performance.now()
    const exitCode = await pennon.stop()
    t.diagnostic(`the stop took ${Math.round(performance.now() - startedAt)} ms`)
    // A process that takes longer than 10 s exits with 1.
    assert.equal(exitCode, 0, pennon.output())
    assert.doesNotMatch(pennon.output(), /shutdown took too long/)
  } finally {
    for (const pid of frozen) process.kill(pid, 'SIGCONT')
  }

  const again = await startPennonFor(t, { dataFolder, settings })
  await again.caughtUp()
  const { results } = await again.api<{ results: unknown[] }>('GET', '/api/projects/@current/events/?event=seen')
  assert.equal(results.length, 20)
}

/** A request whose second half is never sent. */
async function slowUpload(t: TestContext, port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined) // the server cuts it off
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  const head = 'POST /batch/ HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n'
  await new Promise(sent => socket.write(`${head}{"api_key"`, sent))
}
