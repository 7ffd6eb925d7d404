// A copy of the data folder in which links were followed could once not start: the event store failed on a folder in
// place of a link.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { createClickHouseClients } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import { migrateEventStore } from '#adapters/clickhouse/migrate.ts'
import { ReplacedLinkError, removeFoldersReplacingLinks } from '#adapters/clickhouse-embedded/replaced-links.ts'
import { prepareEngineStart } from '#adapters/clickhouse-embedded/start-engine.ts'
import { spawnPreparedEngine, startEngine } from '../support/engine.ts'
import { tempDir } from '../support/temp-dir.ts'

it('an event store copied with `cp -L`, which turns links into folders, starts with all its rows', async t => {
  const folder = tempDir(t)
  const engine = await startEngine({}, folder)
  t.after(() => engine.stop())
  const clients = createClickHouseClients({ endpoint: engine.endpoint, queryTimeoutSeconds: 8 })
  await migrateEventStore(clients, { rejectRetentionDays: 30, isEmbedded: true })
  const insert = (database: string) => `INSERT INTO ${database}.events (project_id) VALUES (1)`
  await clients.write((client, database) => client.command({ query: insert(database) }))
  await clients.close()
  await engine.kill()
  assert.deepEqual(removeFoldersReplacingLinks(engine.dataFolder), [], 'links are not mistaken for folders')

  const copy = join(folder, 'copy')
  execFileSync('cp', ['-rL', engine.dataFolder, copy])
  const events = join(copy, 'events', 'store', 'data', 'pennon', 'events')
  assert.ok(lstatSync(events).isDirectory())
  writeFileSync(join(events, 'own'), 'of nobody')
  assert.throws(() => removeFoldersReplacingLinks(copy), ReplacedLinkError)
  assert.ok(existsSync(join(events, 'own')))
  execFileSync('rm', [join(events, 'own')])

  const tables = readdirSync(join(engine.dataFolder, 'events', 'store', 'data', 'pennon'))
  assert.equal(
    removeFoldersReplacingLinks(copy).length,
    tables.length + 1,
    'one per table, and one for the definitions',
  )
  const started = await spawnPreparedEngine(copy, () => prepareEngineStart(copy))
  t.after(() => started.child.kill('SIGKILL'))
  const again = createClickHouseClients({ endpoint: () => started.endpoint, queryTimeoutSeconds: 8 })
  t.after(() => again.close())
  const count = await again.write(async (client, database) => {
    const counted = await client.query({
      query: `SELECT count() FROM ${database}.events`,
      format: 'JSONCompactEachRow',
    })
    return (await counted.json<[string]>())[0]![0]
  })
  assert.equal(Number(count), 1)
})
