// Creates logs on disk for tests of the writer and the reader of `sqlite-log`.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { writeLogIdentity } from '#adapters/sqlite-log/log-identity.ts'
import { listSegments } from '#adapters/sqlite-log/segment-file.ts'
import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import { openSqliteLogWriter, type SqliteLogWriterOptions } from '#adapters/sqlite-log/sqlite-log-writer.ts'
import type { EventLogWriter } from '#ports/log/event-log.ts'
import { tempDir } from './temp-dir.ts'
import { aCapturedEvent, encodedEvents } from './values.ts'

/** Makes a state and an empty log that belong together, as a start does. */
export async function stateWithLog(dataFolder: string): Promise<void> {
  await migrateSqlite(dataFolder)
  const management = openSqliteManagementStore({ dataFolder, access: 'write' })
  const id = randomUUID()
  writeLogIdentity(join(dataFolder, 'log'), id)
  await management.followLog({ id, place: 'here', formerId: null, begunAt: '{}' })
  await management.close()
}

export async function openedWriter(
  t: TestContext,
  options: Partial<SqliteLogWriterOptions> = {},
  folder = tempDir(t),
): Promise<{ folder: string; writer: EventLogWriter }> {
  const writer = await openSqliteLogWriter({ folder, nowMs: Date.now, logBytesMax: 1e9, ...options })
  t.after(() => writer.close())
  return { folder, writer }
}

export function openedReader(t: TestContext, folder: string) {
  const reader = openSqliteLogReader({ folder })
  t.after(() => reader.close())
  return reader
}

/** A log of several small segments whose files are closed; event n is at offset n. */
export async function filledStream(t: TestContext, folder: string) {
  const { writer } = await openedWriter(t, { segmentBytesMax: 50_000 }, folder)
  for (let n = 0; n < 60; n++) {
    const propertiesJson = JSON.stringify({ pad: 'x'.repeat(3_000) })
    await writer.append('live', encodedEvents([aCapturedEvent(n, { propertiesJson })]))
  }
  await writer.close()
  const segments = listSegments(join(folder, 'main'))
  assert.ok(segments.length >= 4)
  return segments
}
