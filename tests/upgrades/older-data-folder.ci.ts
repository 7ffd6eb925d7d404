// This version opens a data folder of an older version that was killed while events waited, processes those events and
// continues. `make-data-folder.ts` of the older version made the folders; they are never made anew.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startPennon, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'
import { waitingEvents } from './waiting-events.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const processed = ['$set', 'processed', 'imported']
const waiting = [...waitingEvents.live, ...waitingEvents.historical].map(({ event }) => event)

interface Person {
  readonly distinct_ids: string[]
  readonly properties: Record<string, unknown>
}

describe('a data folder of an older version', () => {
  for (const packed of globSync('*.tar.gz', { cwd: here }))
    it(`goes on with what it holds: ${packed}`, async t => {
      const folder = tempDir(t)
      const { status, stderr } = spawnSync('tar', ['xzf', join(here, packed), '-C', folder], { encoding: 'utf8' })
      assert.equal(status, 0, stderr)
      const pennon = await startPennon({ dataFolder: folder, settings: { PENNON_LOG_LEVEL: 'info' } })
      await pennon.caughtUp()

      const list = async <T>(path: string) =>
        (await pennon.api<{ results: T[] }>('GET', `/api/projects/@current${path}`)).results
      const names = async () => (await list<{ event: string }>('/events/?limit=100')).map(({ event }) => event).sort()
      assert.deepEqual(await names(), [...processed, ...waiting].sort())

      const persons = await list<Person>('/persons/')
      assert.equal(persons.length, 1)
      assert.deepEqual(persons[0]!.distinct_ids.toSorted(), ['ada', 'anon-1'])
      const { plan, age } = persons[0]!.properties
      assert.deepEqual({ plan, age }, { plan: 'pro', age: 36 })
      const groups = await list<{ group_properties: object }>('/groups/?group_type_index=0')
      assert.deepEqual(
        groups.map(({ group_properties }) => group_properties),
        [{ size: 3 }],
      )

      const asked = await pennon.post('/flags/?v=2', { api_key: testProjectKey, distinct_id: 'anon-1' })
      const { flags } = (await asked.json()) as { flags: Record<string, { enabled: boolean }> }
      assert.equal(flags.kept!.enabled, true)

      await pennon.post('/capture/', { api_key: testProjectKey, event: 'new', distinct_id: 'ada' })
      await pennon.caughtUp()
      assert.deepEqual(await names(), [...processed, ...waiting, 'new'].sort())
      const lost = await pennon.api<{ results: object[] }>('GET', '/api/instance/lost_records/')
      assert.deepEqual(lost.results, [])
      await pennon.stop()
      const lines = pennon
        .output()
        .split('\n')
        .filter(line => line.startsWith('{'))
      const migrations = lines.map(line => JSON.parse(line)).filter(({ durationMs }) => durationMs !== undefined)
      assert.deepEqual(
        migrations.map(({ level, process }) => [level, process]),
        [
          ['info', 'serve'],
          ['info', 'work'],
        ],
      )
      assert.ok(migrations[0].to > migrations[0].from && migrations[1].tables.includes('events'))
    })
})
