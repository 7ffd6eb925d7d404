// An import without any SDK: the curl program posts to /batch/, as docs/wire/service.md §4.3 describes.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { eventually } from '../support/eventually.ts'
import { startPennonFor, testProjectKey } from '../support/pennon.ts'
import { storedEvents, storedPerson, usageOf } from './acceptance.ts'

const oldMs = Date.UTC(2021, 4, 6, 7, 8, 9, 123)

it('curl to /batch/ imports events, persons and groups that can be queried and are not charged', async t => {
  const pennon = await startPennonFor(t)
  const event = (name: string, distinctId: string, afterMs: number, properties: object) => ({
    event: name,
    timestamp: new Date(oldMs + afterMs).toISOString(),
    properties: { distinct_id: distinctId, ...properties },
  })
  const batch = [
    event('$pageview', 'device-1', 0, { $current_url: 'https://example.test/' }),
    event('$identify', 'ada', 1_000, { $anon_distinct_id: 'device-1', $set: { plan: 'pro' } }),
    event('$group_identify', 'ada', 2_000, { $group_type: 'company', $group_key: 'acme', $group_set: { size: 5 } }),
    event('Paid', 'ada', 3_000, { amount: 12.5, $groups: { company: 'acme' } }),
  ]
  const body = JSON.stringify({ api_key: testProjectKey, historical_migration: true, batch })
  const { stdout } = await promisify(execFile)('curl', [
    ...['--silent', '--show-error', '--write-out', ' %{http_code}', '--header', 'Content-Type: application/json'],
    ...['--data', body, `${pennon.url}/batch/`],
  ])
  assert.equal(stdout, '{"status":"Ok"} 200')

  const rows = await storedEvents(pennon, 'ada')
  assert.deepEqual(
    rows.map(row => [row.event, Date.parse(row.timestamp), row.lane, row.historical_migration]),
    [
      ['$identify', oldMs + 1_000, 'historical', true],
      // The documented name; the stored event has the name that PostHog stores.
      ['$groupidentify', oldMs + 2_000, 'historical', true],
      ['Paid', oldMs + 3_000, 'historical', true],
    ],
  )
  assert.equal(rows[2]!.properties.amount, 12.5)
  const query = `SELECT event, count() FROM events WHERE toYear(timestamp) = 2021 GROUP BY event ORDER BY event`
  const { results } = await pennon.api<{ results: [string, number][] }>('POST', '/api/projects/@current/query/', {
    query: { kind: 'HogQLQuery', query },
  })
  assert.deepEqual(results, [
    ['$groupidentify', 1],
    ['$identify', 1],
    ['$pageview', 1],
    ['Paid', 1],
  ])
  const person = await storedPerson(pennon, 'device-1')
  assert.deepEqual(person?.distinct_ids.toSorted(), ['ada', 'device-1'])
  assert.equal(person.properties.plan, 'pro')
  // Usage is counted from stored events, some seconds later.
  await eventually(async () => (await usageOf(pennon)).imported === batch.length, { what: 'usage' })
  assert.deepEqual(await usageOf(pennon), { charged: 0, imported: batch.length })
})
