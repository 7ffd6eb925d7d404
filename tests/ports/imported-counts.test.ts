// Counts of an import job by day and name, on a real engine.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { countRowsOfImport, listRowCountsOfImport } from '#adapters/clickhouse/queries/imported-counts.ts'
import type { DayAndEvent, ImportedCount } from '#core/imports/imported-counts.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { aStoredEvent, imported } from '../support/values.ts'

const dayMs = 86_400_000

describe('the counts of an import job', () => {
  const server = eventStoreForTests()
  const importJobId = 7
  const at = (day: number) => Date.UTC(2024, 4, 1) + day * dayMs

  it('are the same in pages of any size, and include each event once, whichever table contains it', async () => {
    const names = ['$pageview', 'a b', 'a_b', 'Ä/?&', 'é', '日本']
    const rows = Array.from({ length: 200 }, (_, index) =>
      imported(
        aStoredEvent({
          uuid: randomUUID(),
          event: names[index % names.length]!,
          distinctId: `user ${index % 7}`,
          timestampMs: at(Math.floor(index / 40)),
          capturedAtMs: at(900),
        }),
        importJobId,
      ),
    )
    const others = [imported(rows[0]!, 8), { ...rows[0]!, projectId: 2 }]
    const implicitRow = imported(rows[1]!, 9, { importPartition: 1 })
    await server.insert({ pendingEvents: [...rows, ...others], events: [implicitRow] })
    await server.insert({ events: rows.slice(0, 90) })

    const expected = new Map<string, number>()
    for (const { timestampMs, event } of rows) {
      const key = `${new Date(timestampMs).toISOString().slice(0, 10)} ${event}`
      expected.set(key, (expected.get(key) ?? 0) + 1)
    }
    const inOrder = [...expected].toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    // A piece may hold all days, some of them, or a part of one: repeats have 90 of the 200 rows twice.
    const sizes = [
      [1, 1_000],
      [7, 100],
      [40, 7],
      [1_000, 7],
    ] as const
    for (const [limit, pieceRows] of sizes) {
      const all: ImportedCount[] = []
      for (let after: DayAndEvent | null = null, isMore = true; isMore; after = all.at(-1) ?? null) {
        const asked = { projectId: 1, importJobId, after, limit }
        const page: readonly ImportedCount[] = await listRowCountsOfImport(
          query => server.clients.read(query),
          asked,
          pieceRows,
        )
        all.push(...page)
        isMore = page.length === limit
      }
      assert.deepEqual(
        all.map(({ day, event, uuids }) => [`${day} ${event}`, uuids]),
        inOrder,
        `pages of ${limit} by pieces of ${pieceRows}`,
      )
    }
    assert.equal(
      (await server.store.listImportedCounts({ projectId: 1, importJobId, after: null, limit: 7 })).length,
      7,
    )
    const counted = await server.store.countImportedRows(1, importJobId)
    const { rows: count, idBuckets } = counted
    assert.deepEqual([count, idBuckets.length, idBuckets.filter(rows => rows > 0).length], [200, 256, 7])
    const job = { project: 1, job: importJobId }
    for (const pieceRows of [7, 100])
      assert.deepEqual(await countRowsOfImport(query => server.clients.read(query), job, pieceRows), counted)
  })
})
