// Every command refuses to open data of Pennon 0.1.0 or earlier and leaves it unchanged. The folder comes from an
// instance that was killed: its state has a `-wal` file, which SQLite would merge into it.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createBackupWriter } from '#adapters/backup-file/write-backup.ts'
import { createClickHouseClients } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import { migrateEventStore } from '#adapters/clickhouse/migrate.ts'
import { startEngine } from '../support/engine.ts'
import { callCommand } from '../support/pennon-command.ts'
import { refusedStart } from '../support/refused-start.ts'
import { tempDir } from '../support/temp-dir.ts'
import { unpackedFolder } from './unpacked-folder.ts'

const expected = /written by Pennon 0\.1\.0 or earlier, and 0\.1\.0 is the last version that can open it/

function filesOf(folder: string): Record<string, string> {
  const names = readdirSync(folder).sort()
  assert.ok(names.includes('state.db-wal'))
  return Object.fromEntries(
    names.map(name => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  )
}

describe('data from a version before the first migration', () => {
  it('makes a start refuse the folder, and no byte in it changes', async t => {
    const folder = unpackedFolder(t, 'refused-0.1.0')
    const before = filesOf(folder)
    const line = await refusedStart(folder)
    assert.match(line, expected)
    assert.match(line, /Export .* start this version with an empty PENNON_DATA.* \(docs\/operating\/upgrades\.md\)\.$/m)
    assert.deepEqual(filesOf(folder), before)
  })

  it('makes commands that would read the folder refuse it, and no byte in it changes', async t => {
    const folder = unpackedFolder(t, 'refused-0.1.0')
    const before = filesOf(folder)
    for (const [exitCode, ...args] of [
      [1, 'doctor'],
      [2, 'backup', join(tempDir(t), 'backup.tar')],
      [2, 'new-key'],
      [2, 'work'],
    ] as const) {
      const ended = await callCommand({ PENNON_DATA: folder, PORT: '0' }, ...args)
      assert.equal(ended.exitCode, exitCode, ended.stdout + ended.stderr)
      assert.match(ended.stdout + ended.stderr, expected, args[0])
      assert.deepEqual(filesOf(folder), before, args[0])
    }
  })

  it('is refused if it is in the ClickHouse at CLICKHOUSE_URL, and its tables stay unchanged', async t => {
    const engine = await startEngine()
    t.after(() => engine.stop())
    const clients = createClickHouseClients({ endpoint: engine.endpoint, queryTimeoutSeconds: 8 })
    t.after(() => clients.close())
    await migrateEventStore(clients, { rejectRetentionDays: 30, isEmbedded: false })
    const tables = () =>
      clients.write(async client => {
        const query = `SELECT name, create_table_query, total_rows FROM system.tables WHERE database = 'pennon' ORDER BY name`
        return (await client.query({ query, format: 'JSONCompactEachRow' })).json()
      })
    await clients.write(client => client.command({ query: 'DROP TABLE pennon.schema_version SYNC' }))
    const before = await tables()
    const { url, writer } = engine.endpoint()
    const user = `${writer.username}:${encodeURIComponent(writer.password)}`
    const settings = { CLICKHOUSE_URL: `${url.replace('http://', `http://${user}@`)}/pennon` }
    const folder = join(tempDir(t), 'data')
    assert.match(await refusedStart(folder, settings), /The event store was written by Pennon 0\.1\.0 or earlier/)
    assert.equal(existsSync(folder), false)
    const { exitCode, stdout } = await callCommand({ ...settings, PENNON_DATA: folder, PORT: '0' }, 'doctor')
    assert.equal(exitCode, 1)
    assert.match(stdout, expected)
    assert.deepEqual(await tables(), before)
  })

  it('is refused in a backup, and nothing is restored', async t => {
    const file = join(tempDir(t), 'backup.tar')
    const writer = await createBackupWriter(file, { nowMs: () => 0, checkStop: () => undefined })
    const description = {
      ...{ format: 1, pennon: '0.1.0', createdAt: '2026-11-27T00:00:00.000Z', schema: 19 },
      ...{ positions: { main: 7 }, events: true },
    }
    await writer.addContent('backup.json', JSON.stringify(description))
    await writer.addFile('state.db', join(unpackedFolder(t, 'refused-0.1.0'), 'state.db'))
    await writer.finish()
    await writer.close()
    const folder = tempDir(t)
    for (const args of [
      ['restore', file],
      ['backup', '--verify', file],
    ]) {
      const ended = await callCommand({ PENNON_DATA: folder }, ...args)
      assert.equal(ended.exitCode, 2, ended.stdout + ended.stderr)
      assert.match(ended.stderr, expected)
    }
    assert.deepEqual(readdirSync(folder), [])
  })
})
