// Fetching the events of another instance; a running Pennon plays its part. Source: docs/wire/import.md §1.8.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fetchInto, fetchSecrets, rawFiles, rawLines } from '../support/fetching.ts'
import { startPennonFor, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

describe('fetching from another instance', () => {
  it('each event is fetched once with its original properties, across pages and within one microsecond', async t => {
    const pennon = await startPennonFor(t)
    const uuidOf = (index: number) => `018f3a10-0000-7000-8000-${String(index).padStart(12, '0')}`
    const events = Array.from({ length: 12_000 }, (_, index) => ({
      uuid: uuidOf(index),
      event: `order ${index % 3}`,
      // A third of them share one timestamp, so that a page ends among them.
      timestamp: new Date(Date.UTC(2024, 4, 1 + (index % 2), 12) + (index % 3 === 0 ? 0 : index)).toISOString(),
      properties: { distinct_id: `u-${index % 50}`, big: 9007199254740993n, text: 'ä"\n' },
    }))
    const big = (_: string, value: unknown) =>
      typeof value === 'bigint' ? (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(String(value)) : value
    for (let from = 0; from < events.length; from += 2_000) {
      const batch = events.slice(from, from + 2_000)
      const body = JSON.stringify({ api_key: testProjectKey, historical_migration: true, batch }, big)
      const answer = await fetch(`${pennon.url}/batch/`, { method: 'POST', body })
      assert.equal(answer.status, 200)
    }
    await pennon.caughtUp()
    const folder = tempDir(t)
    const config = { source: 'posthog', host: pennon.url, project_id: '@current', from: '2024-04-30', to: '2024-05-02' }
    const env = { ...fetchSecrets, POSTHOG_PERSONAL_KEY: testPersonalKey }
    const { partsDone, partsEmpty } = await fetchInto(folder, config, { env })
    assert.deepEqual([partsDone, partsEmpty], [2, 1])
    assert.deepEqual(rawFiles(folder), [
      'posthog-%40current-2024-05-01.jsonl.gz',
      'posthog-%40current-2024-05-02.jsonl.gz',
    ])
    const rows = rawLines(folder).map(line => JSON.parse(line) as Record<string, string>)
    assert.deepEqual(
      rows.map(({ uuid }) => uuid).sort(),
      events.map(({ uuid }) => uuid),
    )
    const byUuid = new Map(rows.map(row => [row.uuid, row]))
    for (const { uuid, event, timestamp } of [events[0]!, events[7_001]!]) {
      const row = byUuid.get(uuid)!
      assert.equal(row.event, event)
      assert.equal(Date.parse(`${row.timestamp!.replace(' ', 'T').replace(/Z?$/, 'Z')}`), Date.parse(timestamp))
      assert.match(row.properties!, /"big":9007199254740993/)
    }
  })

  it('a key without permission to read is reported', async t => {
    const pennon = await startPennonFor(t)
    const config = { source: 'posthog', host: pennon.url, project_id: '@current', from: '2024-05-01', to: '2024-05-02' }
    await assert.rejects(fetchInto(tempDir(t), config), /PostHog answers 40[13].*Check the key/)
  })
})
