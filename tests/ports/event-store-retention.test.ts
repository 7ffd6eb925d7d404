// Retention terms of the event store, on a real engine: a changed term is applied to existing tables.

import assert from 'node:assert/strict'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import type { PortError } from '#ports/port-error.ts'
import { engineForTests } from '../support/engine-for-tests.ts'
import { fixedClock } from '../support/fixed-clock.ts'

describe('retention of the event store', () => {
  const server = engineForTests()
  const command = (query: string) => server.clients.write(client => client.command({ query }))
  const select = async <Row>(query: string) => {
    const answer = await server.clients.write(client => client.query({ query, format: 'JSONEachRow' }))
    return answer.json<Row>()
  }
  const migrate = async (rejectRetentionDays: number, freeBytes = 2 ** 40) => {
    const store = createClickHouseEventStore({
      endpoint: server.engine.endpoint,
      clock: fixedClock(0),
      rejectRetentionDays,
      freeBytes: () => freeBytes,
    })
    try {
      await store.migrate()
    } finally {
      await store.close()
    }
  }
  /** Days of each term in a table's definition, by the column it belongs to; that of rows is `rows`. */
  const termsOf = async (table: string) => {
    const [found] = await select<{ create_table_query: string }>(
      `SELECT create_table_query FROM system.tables WHERE database = 'pennon' AND name = '${table}'`,
    )
    const { create_table_query: text } = found!
    return {
      items: /`items` String (CODEC\(NONE\)) TTL stored_at \+ toIntervalDay\((\d+)\)/.exec(text)?.slice(1),
      rows: /\) ENGINE = .* TTL .*toIntervalDay\((\d+)\)/.exec(text)?.[1],
    }
  }

  it('changes with the setting, also in the existing tables of rejected events', async () => {
    for (const days of [30, 10]) {
      await migrate(days)
      for (const table of ['rejected_events', 'replayed_rejects'])
        assert.equal((await termsOf(table)).rows, String(days), table)
    }
  })

  it('follows the worker’s trusted clock if the engine is embedded, not the clock of the machine', async () => {
    const store = createClickHouseEventStore({
      endpoint: server.engine.endpoint,
      clock: fixedClock(0),
      isEmbedded: true,
    })
    const kept = async () => {
      const ids = (table: string, column: string, where: string) =>
        `(SELECT arraySort(groupArray(toString(${column}))) FROM pennon.${table} WHERE project_id = 7 AND ${where})`
      const [found] = await select<{ rejects: string[]; recordings: string[]; items: string[] }>(
        `SELECT ${ids('rejected_events', 'reject_id', '1')} AS rejects,
          ${ids('replay_messages', 'session_id', '1')} AS recordings,
          ${ids('replay_messages', 'session_id', "items = 'x'")} AS items`,
      )
      return [found!.rejects.join(' '), found!.recordings.join(' '), found!.items.join(' ')]
    }
    const now = Date.UTC(2020, 5, 15, 12)
    try {
      await command('DROP DATABASE pennon SYNC')
      await store.migrate()
      for (const table of ['rejected_events', 'replayed_rejects', 'replay_messages', 'cached_flag_usage'])
        assert.deepEqual(await termsOf(table), { items: undefined, rows: undefined }, table)
      for (const [id, days] of Object.entries({ a: -91, b: -31, c: -5, d: 0, e: 32, f: 92 })) {
        const at = `toDateTime(${now / 1_000 + days * 86_400}, 'UTC')`
        await command(
          `INSERT INTO pennon.rejected_events (project_id, reject_id, received_at) VALUES (7, '${id}', ${at})`,
        )
        await command(`INSERT INTO pennon.replay_messages (project_id, session_id, uuid, stored_at, items)
          VALUES (7, '${id}', generateUUIDv4(), ${at}, 'x')`)
      }
      for (const table of ['rejected_events', 'replay_messages']) await command(`OPTIMIZE TABLE pennon.${table} FINAL`)
      assert.deepEqual(await kept(), ['a b c d e f', 'a b c d e f', 'a b c d e f'], 'all of it is years old')
      await store.deleteExpired({ nowMs: 0, isTrusted: false })
      assert.deepEqual(await kept(), ['a b c d e f', 'a b c d e f', 'a b c d e f'])
      await store.deleteExpired({ nowMs: now, isTrusted: false })
      assert.deepEqual(await kept(), ['c d e f', 'b c d e f', 'd e f'])
      await store.deleteExpired({ nowMs: now, isTrusted: true })
      assert.deepEqual(await kept(), ['c d', 'b c d e', 'd e'])
    } finally {
      await store.close()
      await command('DROP DATABASE pennon SYNC')
    }
  })

  it('is untouched by a start that changes nothing: no table definition is rewritten', async () => {
    await migrate(30)
    // The engine writes a definition into a new file. On a full disk that one would be empty, and no start could read it.
    const tables = "SELECT name, metadata_modification_time FROM system.tables WHERE database = 'pennon'"
    const files = () => {
      const names = readdirSync(join(server.engine.dataFolder, 'events', 'store'), {
        recursive: true,
        encoding: 'utf8',
      })
      const definitions = names.filter(name => name.endsWith('.sql'))
      return definitions
        .map(name => [name, statSync(join(server.engine.dataFolder, 'events', 'store', name)).mtimeMs])
        .sort()
    }
    const [before, tablesBefore] = [files(), await select(tables)]
    assert.ok(before.length >= tablesBefore.length && tablesBefore.length > 5)
    await migrate(30)
    assert.deepEqual(files(), before)
    assert.deepEqual(await select(tables), tablesBefore)
  })

  it('is untouched by a start that changes nothing: no row is rewritten', async () => {
    await migrate(30)
    const insert = (table: string, column: string) =>
      command(`INSERT INTO pennon.${table} (project_id, ${column}) VALUES (3, now())`)
    const tables = [
      ['replay_messages', 'stored_at'],
      ['rejected_events', 'received_at'],
      ['replayed_rejects', 'received_at'],
    ] as const
    for (const [table, column] of tables) {
      await command(`TRUNCATE TABLE pennon.${table}`)
      await insert(table, column)
      await migrate(30)
      await insert(table, column)
      const blocks = await select<{ first: string; last: string }>(
        `SELECT min(min_block_number) AS first, max(max_block_number) AS last
         FROM system.parts WHERE active AND database = 'pennon' AND table = '${table}'`,
      )
      // Rewriting rows takes a number as an insert does.
      assert.equal(Number(blocks[0]!.last) - Number(blocks[0]!.first), 1, table)
    }
  })

  it('is not altered while the disk has no space for that, and is altered afterwards', async () => {
    await migrate(30)
    const before = await termsOf('rejected_events')
    // Nothing has to be altered.
    await migrate(30, 1_000)
    await assert.rejects(migrate(31, 1_000), (error: PortError) => {
      assert.deepEqual([error.port, error.code], ['event-store', 'full'])
      return /the disk has 1000: free disk space/.test(error.message)
    })
    assert.deepEqual(await termsOf('rejected_events'), before)
    await migrate(31)
    assert.notDeepEqual(await termsOf('rejected_events'), before)
  })
})
