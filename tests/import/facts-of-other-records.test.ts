// Records that depend on others: a Heap page view belongs to the user identified later in another file; the daily
// totals of Plausible count as page views only where no other file has its pages; Amplitude merges and PostHog person
// ids give meaning to other rows. All records go through the stages of a job.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import type { ImportSource } from '#importer/records/import-source.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { formatTime } from '#importer/records/source-time.ts'
import { amplitude } from '#importer/sources/amplitude/amplitude.ts'
import { heap } from '#importer/sources/heap/heap.ts'
import { plausible } from '#importer/sources/plausible/plausible.ts'
import { posthog } from '#importer/sources/posthog/posthog.ts'
import { jobOf, resultsOf } from '../support/import-job.ts'

describe('records that depend on other records', () => {
  it('Heap events belong to the identity of their user, which is linked once and keeps every digit of its ids', async t => {
    const user = '8123456789012345678'
    const job = await converted(t, heap, {
      pageviews: [
        `{"event_id":7325461098234567891,"user_id":${user},"time":"2024-05-01 12:00:00.250","domain":"a.example.test"}`,
        `{"event_id":7325461098234567892,"user_id":5,"time":"2024-05-01 12:00:01"}`,
      ],
      sessions: [`{"event_id":1,"user_id":${user},"time":"2024-05-01 12:00:00"}`],
      user_migrations: [`{"from_user_id":4,"to_user_id":${user},"time":"2024-05-02 00:00:00"}`],
      users: [
        `{"user_id":${user},"identity":"ada@example.test","joindate":"2024-01-01 08:00:00","last_modified":"2024-06-30 09:00:00"}`,
      ],
    })
    assert.deepEqual(job.generated.map(shown), ['2024-06-30T09:00:00.000Z $identify ada@example.test'])
    assert.deepEqual(job.events.map(shown), [
      '2024-05-01T12:00:00.250Z $pageview ada@example.test',
      '2024-05-01T12:00:01.000Z $pageview 5',
      '2024-05-02T00:00:00.000Z $create_alias ada@example.test',
      '2024-06-30T09:00:00.000Z $set ada@example.test',
    ])
    assert.equal(job.events[0]!.properties.$heap_user_id, user)
    assert.deepEqual(job.skipped, ['session_marker'])
  })

  it('Plausible page rows give as many page views as they count, and other tables give events with totals', async t => {
    const config = { site: 'blog.example.test', source_timezone: 'Europe/Berlin', mode: 'synthesize' }
    const counted = '"visitors":"2","visits":"2","bounces":"0","visit_duration":"9"'
    const job = await converted(
      t,
      plausible,
      {
        imported_visitors_20240501_20240502: [
          `{"date":"2024-05-01","pageviews":"5",${counted}}`,
          `{"date":"2024-05-02","pageviews":"4",${counted}}`,
        ],
        imported_pages_20240501_20240502: [
          '{"date":"2024-05-01","hostname":"blog.example.test","page":"/a","visitors":"2","pageviews":"3"}',
          '{"date":"2024-05-01","hostname":"blog.example.test","page":"/b","visitors":"1","pageviews":"2"}',
        ],
        imported_sources_20240501_20240502: [`{"date":"2024-05-01","pageviews":"5",${counted}}`],
      },
      config,
    )
    const names = Object.groupBy(job.events, ({ event }) => event)
    const counts = Object.fromEntries(Object.entries(names).map(([name, events]) => [name, events?.length]))
    assert.deepEqual(counts, { plausible_imported_visitors: 1, $pageview: 9, plausible_imported_sources: 1 })
    // The row of direct visits equals that of the day, so only their names distinguish these two sums.
    assert.equal(new Set(job.events.map(({ event, uuid }) => `${event} ${uuid}`)).size, 11)
  })

  it('an Amplitude merge links the device to its user before another user uses the device', async t => {
    const event = (time: string, ids: object) =>
      JSON.stringify({ event_type: 'e', event_time: `2024-05-0${time}`, ...ids })
    const job = await converted(t, amplitude, {
      merges: ['{"scope":1,"merge_time":"2024-05-01 11:00:00","amplitude_id":1,"merged_amplitude_id":2}'],
      events: [
        event('1 09:00:00', { user_id: 'ada', amplitude_id: 2 }),
        event('1 10:00:00', { device_id: 'd-1', amplitude_id: 1 }),
        event('2 12:00:00', { user_id: 'bob', device_id: 'd-1', amplitude_id: 3 }),
      ],
    })
    assert.deepEqual(job.generated.map(shown), ['2024-05-01T11:00:00.000Z $identify ada'])
  })

  it('PostHog persons are merged on the day of each merge, together with their events', async t => {
    const person = (id: string, of: string, day: string) =>
      JSON.stringify({ person_id: of, distinct_id: id, person_distinct_id_version: 0, created_at: `2024-05-0${day}` })
    const config = { allow_dangerous_merge: true }
    const rows = [
      person('b', 'p-2', '2'),
      person('b-2', 'p-2', '2'),
      person('a', 'p-1', '1'),
      person('a-2', 'p-1', '1'),
    ]
    const job = await converted(t, posthog, { persons: rows }, config)
    assert.deepEqual(job.events.map(shown), [
      '2024-05-01T00:00:00.000Z $merge_dangerously a',
      '2024-05-02T00:00:00.000Z $merge_dangerously b',
    ])
  })
})

/** Stages and scans one file per table, then converts everything. */
async function converted(
  t: TestContext,
  source: ImportSource,
  tables: Record<string, readonly string[]>,
  config: JsonObject = {},
) {
  const files = Object.entries(tables).map(([table, lines]) => [`${table}.jsonl`, `${lines.join('\n')}\n`])
  const job = jobOf(t, Object.fromEntries(files), source, { config })
  await job.stageAndScan()
  const { generated, events, results } = await resultsOf(job)
  assert.ok(results.every(({ kind }) => kind !== 'rejected'))
  return { generated, events, skipped: results.flatMap(result => (result.kind === 'skipped' ? [result.reason] : [])) }
}

function shown({ timeUs, event, distinctId }: ImportedEvent): string {
  return `${formatTime(timeUs)} ${event} ${distinctId}`
}
