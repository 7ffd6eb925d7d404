// Beyond a certain size, the event store keeps a part as one file per column, whose names contain more than letters and
// digits. A backup of such parts could once be written but not restored.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { createBackupWriter } from '#adapters/backup-file/write-backup.ts'
import { createClickHouseClients } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import { migrateEventStore } from '#adapters/clickhouse/migrate.ts'
import { eventStoreMigrations } from '#adapters/clickhouse/schema.ts'
import { listFilesOfStoppedEngine } from '#adapters/clickhouse-embedded/event-files.ts'
import { openStateWriter } from '#adapters/sqlite/state-writer-client.ts'
import { backUpInstance } from '#compose/backup/backup.ts'
import { readConfig } from '#config.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { startEngine } from '../support/engine.ts'
import { runCommand } from '../support/pennon-command.ts'
import { refusedStart } from '../support/refused-start.ts'
import { tempDir } from '../support/temp-dir.ts'

const quiet = { onProgress: () => undefined, checkStop: () => undefined }

/** A stopped instance whose event store has wide parts in each table, and one merged into another. */
async function wideInstance(t: TestContext, folder: string): Promise<{ dataFolder: string; tables: string[] }> {
  const engine = await startEngine({}, folder)
  t.after(() => engine.stop())
  const clients = createClickHouseClients({ endpoint: engine.endpoint, queryTimeoutSeconds: 8 })
  await migrateEventStore(clients, { rejectRetentionDays: 30, isEmbedded: true })
  const tables: string[] = []
  await clients.write(async (client, database) => {
    const shown = await client.query({ query: `SHOW TABLES FROM ${database}`, format: 'JSONCompactEachRow' })
    for (const [table] of await shown.json<[string]>()) {
      tables.push(table)
      const name = `${database}.\`${table}\``
      await client.command({
        query: `ALTER TABLE ${name} MODIFY SETTING min_bytes_for_wide_part = 0, min_rows_for_wide_part = 0`,
      })
      const column =
        {
          ...{ subject_mirror_fill: 'fill_id', worker_marks: 'instance', known_person_properties: 'import_job_id' },
          schema_version: 'version',
        }[table] ?? 'project_id'
      // Rows have today's date, so that none expires.
      const [more, value] = {
        rejected_events: [', received_at', ', now()'],
        replayed_rejects: [', received_at', ', now()'],
        flag_call_arrivals: [', token', ', 1'],
      }[table] ?? ['', '']
      for (const again of ['OPTIMIZE TABLE', 'SELECT 1 FROM', 'SELECT 1 FROM']) {
        await client.command({ query: `INSERT INTO ${name} (${column}${more}) VALUES ('1'${value})` })
        await client.command({ query: `${again} ${name}${again === 'OPTIMIZE TABLE' ? ' FINAL' : ' LIMIT 0'}` })
      }
    }
  })
  await clients.close()
  await engine.kill()
  await (await openStateWriter({ dataFolder: engine.dataFolder, logger: createSilentLogger() })).close()
  return { dataFolder: engine.dataFolder, tables }
}

function configOf(dataFolder: string) {
  const config = readConfig({ PENNON_DATA: dataFolder, PENNON_MIN_FREE_BYTES: '1' })
  assert.ok(config.ok, config.ok ? '' : config.error)
  return config.value
}

describe('a backup of an event store with wide parts', () => {
  it('lists its rows per table, and a verification restores the same rows', async t => {
    const folder = tempDir(t)
    const { dataFolder, tables } = await wideInstance(t, folder)
    const file = join(folder, 'b.tar')
    const made = await backUpInstance(configOf(dataFolder), file, { nowMs: Date.now, ...quiet })
    assert.ok(made.ok, made.ok ? '' : made.error)
    assert.deepEqual(Object.keys(made.value.description.rows!.events).sort(), tables.sort())

    const verified = await runCommand({ PENNON_DATA: join(folder, 'none') }, 'backup', '--verify', file)
    assert.equal(verified.exitCode, 0, verified.stderr)
    for (const table of tables) {
      // The row of the first migration is replaced as well.
      const count = table === 'schema_version' ? 2 + eventStoreMigrations.length : 3
      assert.match(verified.stdout, new RegExp(`\\b${table} ${count}\\b`))
    }
    assert.match(verified.stdout, /schema_version \d+/)
    assert.deepEqual([existsSync(`${file}.verifying`), existsSync(join(folder, 'none'))], [false, false])

    const names = listFilesOfStoppedEngine(dataFolder).files.map(({ name }) => basename(name))
    for (const name of ['%24group_0.bin', 'flags%2Ekeys.bin']) assert.ok(names.includes(name), name)
  })

  it('can be restored again after a restore was killed, and until then a start refuses the incomplete folder', async t => {
    const folder = tempDir(t)
    const [dataFolder, target] = [join(folder, 'data'), join(folder, 'target')]
    mkdirSync(dataFolder)
    await (await openStateWriter({ dataFolder, logger: createSilentLogger() })).close()
    const file = join(folder, 'b.tar')
    const made = await backUpInstance(configOf(dataFolder), file, { nowMs: Date.now, ...quiet })
    assert.ok(made.ok, made.ok ? '' : made.error)
    const settings = { PENNON_DATA: target }
    const refusedStartNames = async () => {
      const refused = await refusedStart(target, { ...settings, PENNON_MIN_FREE_BYTES: '1' })
      assert.match(refused, /A restore into \S+target did not finish\. Run `pennon restore` again/)
      return readdirSync(target).sort()
    }

    // Killed after the log and before the state was moved into place: what it left stays.
    mkdirSync(join(target, 'log'), { recursive: true })
    mkdirSync(join(target, 'restoring'))
    const beside = await runCommand(settings, 'restore', file)
    assert.match(beside.stderr, /target already contains log/)
    assert.deepEqual(await refusedStartNames(), ['log', 'restoring'])

    // Killed while unpacking.
    rmSync(join(target, 'log'), { recursive: true })
    assert.deepEqual(await refusedStartNames(), ['restoring'])
    const restored = await runCommand(settings, 'restore', file)
    assert.equal(restored.exitCode, 0, restored.stderr)
    assert.deepEqual(
      readdirSync(target).filter(name => name === 'restoring' || name === 'state.db'),
      ['state.db'],
    )
  })

  it('fails verification if a table’s rows differ from the description; the table is named, and no files remain', async t => {
    const folder = tempDir(t)
    const dataFolder = join(folder, 'data')
    mkdirSync(dataFolder)
    await (await openStateWriter({ dataFolder, logger: createSilentLogger() })).close()
    const file = join(folder, 'b.tar')
    const made = await backUpInstance(configOf(dataFolder), file, { nowMs: Date.now, ...quiet })
    assert.ok(made.ok, made.ok ? '' : made.error)
    const other = join(folder, 'other.tar')
    const { rows } = made.value.description
    const description = { ...made.value.description, rows: { ...rows!, state: { ...rows!.state, person: 7 } } }
    await writeBackup(other, JSON.stringify(description), readFileSync(join(dataFolder, 'state.db')))
    const { exitCode, stderr } = await runCommand({}, 'backup', '--verify', other)
    assert.equal(exitCode, 2)
    assert.match(
      stderr,
      /^pennon: \S+other\.tar does not match its description: the state has 0 rows of person instead of 7\.\n$/,
    )
    assert.deepEqual(readdirSync(folder).sort(), ['b.tar', 'data', 'other.tar'])
  })

  it('is refused in one printable line if its description is damaged, and no folder is created', async t => {
    const folder = tempDir(t)
    const file = join(folder, 'b.tar')
    await writeBackup(file, JSON.stringify({ format: 9, pennon: '\u001b[2J\u009b31m\nsecond line' }))
    const { exitCode, stdout, stderr } = await runCommand({ PENNON_DATA: join(folder, 'x', 'y') }, 'restore', file)
    assert.deepEqual([exitCode, stdout], [2, ''], stderr)
    assert.match(stderr, /^pennon: [\x20-\x7e]+ has format 9, [\x20-\x7e]+\n$/)
    assert.deepEqual(readdirSync(folder), ['b.tar'])
  })
})

async function writeBackup(file: string, description: string, state?: Uint8Array): Promise<void> {
  rmSync(file, { force: true })
  const writer = await createBackupWriter(file, { nowMs: () => 0, checkStop: () => undefined })
  await writer.addContent('backup.json', description)
  if (state !== undefined) await writer.addContent('state.db', state)
  await writer.finish()
  await writer.close()
}
