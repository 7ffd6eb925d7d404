// Creation and migration of the event store’s tables, on a real engine.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, it } from 'node:test'
import { findTablesProblem, migrateEventStore } from '#adapters/clickhouse/migrate.ts'
import { type EventStoreMigration, eventStoreMigrations } from '#adapters/clickhouse/schema.ts'
import { PortError } from '#ports/port-error.ts'
import { engineForTests } from '../support/engine-for-tests.ts'

const colours: EventStoreMigration = {
  name: 'colours',
  statements: database => [
    `ALTER TABLE ${database}.groups ADD COLUMN IF NOT EXISTS colour String`,
    `CREATE TABLE IF NOT EXISTS ${database}.colours (colour String) ENGINE = MergeTree ORDER BY colour`,
  ],
}
const migrations = [...eventStoreMigrations, colours]
const versionsOf = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

describe('the tables of the event store', () => {
  const server = engineForTests()
  const options = { rejectRetentionDays: 30, isEmbedded: true }
  const command = (query: string) => server.clients.write(client => client.command({ query }))
  const select = async (query: string) =>
    server.clients.write(async client =>
      (await client.query({ query, format: 'JSONCompactEachRow' })).json<unknown[]>(),
    )
  const definitions = () =>
    select(`SELECT name, metadata_modification_time, create_table_query FROM system.tables WHERE database = 'pennon'
      ORDER BY name`)
  const versions = async () => (await select('SELECT DISTINCT version FROM pennon.schema_version ORDER BY 1')).flat()
  const isUnfit = (message: RegExp) => (error: unknown) =>
    error instanceof PortError && error.code === 'conflict' && message.test(error.message)

  const unfit = () => findTablesProblem(server.engine.endpoint()!, 8)

  beforeEach(() => command('DROP DATABASE IF EXISTS pennon SYNC'))

  it('are changed once by a new migration', async () => {
    assert.deepEqual(await migrateEventStore(server.clients, options), [])
    await command("INSERT INTO pennon.groups (project_id, group_key) VALUES (1, 'acme')")
    assert.deepEqual(await migrateEventStore(server.clients, { ...options, migrations }), ['colours'])
    assert.deepEqual(await versions(), versionsOf(migrations.length))
    assert.deepEqual(await select('SELECT group_key, colour FROM pennon.groups'), [['acme', '']])
    const before = await definitions()
    assert.deepEqual(await migrateEventStore(server.clients, { ...options, migrations }), [])
    assert.deepEqual(await definitions(), before)
  })

  it('also contain the links of events from before the column for links existed', async () => {
    await migrateEventStore(server.clients, { ...options, migrations: eventStoreMigrations.slice(0, 1) })
    const cases = [
      ['$identify', 'ada', '{"$anon_distinct_id":"anon","alias":"other"}', 'anon'],
      ['$identify', 'ada', '{ "$anon_distinct_id" : "a\\"b\\u00e9" }', 'a"bé'],
      ['$identify', 'ada', '{"n":123456789012345678901234567890,"$anon_distinct_id": "anon"}', 'anon'],
      ['$create_alias', 'ada', '{"alias":"other","n":1e999}', 'other'],
      ['$merge_dangerously', 'ada', '{"alias":"\'other\'"}', "'other'"],
      ['$create_alias', 'ada', '{"$anon_distinct_id":"anon"}', ''],
      ['$identify', 'ada', '{"$anon_distinct_id":null}', ''],
      ['$identify', 'ada', '{"$anon_distinct_id":"ada"}', ''],
      ['$identify', 'ada', '{"$anon_distinct_id":" "}', ''],
      ['$identify', 'ada', '{"$anon_distinct_id":"\'Anonymous\'"}', ''],
      ['$identify', 'null', '{"$anon_distinct_id":"anon"}', ''],
      ['e', 'ada', '{"$anon_distinct_id":"anon","alias":"other"}', ''],
    ] as const
    const rows = cases.map(([event, distinct_id, properties]) => {
      return { project_id: 1, event, distinct_id, properties, person_mode: 'full', lane: 'main' }
    })
    const link = { ...rows[0]!, event: '$identify' }
    const personless = [
      { ...link, person_mode: 'propertyless' },
      { ...link, lane: 'ai' },
    ]
    const tables = ['events', 'events_pending']
    for (const table of tables)
      for (const [index, row] of [...rows, ...personless].entries())
        await command(
          `INSERT INTO pennon.${table} (${Object.keys(row).join(', ')}, uuid, captured_at) FORMAT JSONEachRow
          ${JSON.stringify({ ...row, uuid: randomUUID(), captured_at: index })}`,
        )
    assert.deepEqual(await migrateEventStore(server.clients, options), ['history'])
    for (const table of tables)
      assert.deepEqual(
        (await select(`SELECT linked_id FROM pennon.${table} ORDER BY captured_at`)).flat(),
        [...cases.map(([, , , linkedId]) => linkedId), '', ''],
        table,
      )
    const columnsOf = (table: string) =>
      select(`SELECT name, type, position, default_kind, default_expression, compression_codec FROM system.columns
        WHERE database = 'pennon' AND table = '${table}' ORDER BY position`)
    assert.deepEqual(await columnsOf('events'), await columnsOf('events_pending'))
  })

  it('can be created and changed by several processes at once', async () => {
    await Promise.all([1, 2, 3].map(() => migrateEventStore(server.clients, { ...options, migrations })))
    assert.deepEqual(await versions(), versionsOf(migrations.length))
  })

  it('are completed after an interrupted start, and if one of them is missing', async () => {
    await migrateEventStore(server.clients, { ...options, migrations })
    const whole = (await definitions()).map(([name]) => name)
    await command('TRUNCATE TABLE pennon.schema_version')
    for (const table of ['events', 'colours']) await command(`DROP TABLE pennon.${table} SYNC`)
    await migrateEventStore(server.clients, { ...options, migrations })
    await command('DROP TABLE pennon.persons SYNC')
    await migrateEventStore(server.clients, { ...options, migrations })
    assert.deepEqual(
      (await definitions()).map(([name]) => name),
      whole,
    )
  })

  it('are altered only when the disk has space', async () => {
    await migrateEventStore(server.clients, options)
    await assert.rejects(migrateEventStore(server.clients, { ...options, migrations, freeBytes: () => 1_000 }), {
      code: 'full',
    })
    assert.deepEqual(await versions(), versionsOf(eventStoreMigrations.length))
  })

  it('are rejected, and not touched, when a newer version changed them', async () => {
    await migrateEventStore(server.clients, { ...options, migrations })
    const before = await definitions()
    await assert.rejects(
      migrateEventStore(server.clients, options),
      isUnfit(/newer Pennon \(schema 3; this version supports up to 2\)/),
    )
    assert.match((await unfit()) ?? '', /newer Pennon/)
    assert.deepEqual(await definitions(), before)
  })

  it('are rejected, and not touched, when they come from a version without a migration count', async () => {
    await migrateEventStore(server.clients, options)
    assert.equal(await unfit(), null)
    await command('DROP TABLE pennon.schema_version SYNC')
    const before = await definitions()
    const expected =
      /The event store was written by Pennon 0\.1\.0 or earlier, and 0\.1\.0 is the last version that can open it/
    await assert.rejects(migrateEventStore(server.clients, options), isUnfit(expected))
    assert.match((await unfit()) ?? '', expected)
    assert.deepEqual(await definitions(), before)
  })
})
