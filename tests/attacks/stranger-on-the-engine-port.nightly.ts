// The embedded engine dies and a process without any rights takes its port. That process must not get rows, passwords
// or properties, and none of its answers may count as a stored insert.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { EngineEndpoint } from '../../src/adapters/clickhouse-embedded/engine-endpoint.ts'
import { eventually } from '../support/eventually.ts'
import { startPennonFor, testProjectKey } from '../support/pennon.ts'
import { startStranger } from '../support/stranger-process.ts'

const eventCount = 40

for (const frontProcesses of ['1', '2']) {
  describe(`another process on the port of a killed engine, ${frontProcesses} front(s)`, () => {
    it('receives nothing, and every acknowledged event is stored in the end', async t => {
      const pennon = await startPennonFor(t, { settings: { PENNON_FRONT_PROCESSES: frontProcesses } })
      const send = (name: string) =>
        pennon.post('/capture/', {
          api_key: testProjectKey,
          event: name,
          distinct_id: 'ada',
          properties: { secret: 'only-for-the-engine' },
        })
      const countStored = async () => {
        const path = '/api/projects/@current/events/?distinct_id=ada&limit=1000'
        return (await pennon.api<{ results: unknown[] }>('GET', path)).results.length
      }
      // Connections are open and idle, as in a running instance.
      assert.equal((await send('before')).status, 200)
      await eventually(async () => (await countStored()) === 1)

      const { url, writer, reader } = JSON.parse(
        readFileSync(join(pennon.dataFolder, 'events', 'endpoint.json'), 'utf8'),
      ) as EngineEndpoint
      const stranger = startStranger(t, Number(new URL(url).port))
      process.kill(pennon.childPids().events!, 'SIGKILL')
      await stranger.listening
      let acknowledgedCount = 0
      for (let index = 0; index < eventCount; index++)
        if ((await send(`after ${index}`)).status === 200) acknowledgedCount++
      assert.equal(acknowledgedCount, eventCount)
      await eventually(async () => (await countStored()) === 1 + eventCount, { what: 'the events in the store' })
      await pennon.caughtUp()
      const { outcomes } = await pennon.api<{ outcomes: { outcome: string; count: number }[] }>(
        'GET',
        '/api/projects/@current/ingestion_status/',
      )
      assert.deepEqual(
        outcomes.map(({ outcome, count }) => [outcome, count]),
        [['stored', 1 + eventCount]],
      )

      const received = await stranger.received()
      const all = received.join('\n')
      const passwords = [writer, reader].flatMap(({ username, password }) => [
        password,
        Buffer.from(`${username}:${password}`).toString('base64'),
      ])
      const leaks = ['only-for-the-engine', 'INSERT', 'authorization', ...passwords].filter(text =>
        all.toLowerCase().includes(text.toLowerCase()),
      )
      t.diagnostic(
        `acknowledged ${acknowledgedCount}, found ${(await countStored()) - 1}, requests to the stranger ${received.length}, leaks ${leaks.length}`,
      )
      assert.deepEqual(
        leaks.map(text => text.slice(0, 20)),
        [],
      )
    })
  })
}
