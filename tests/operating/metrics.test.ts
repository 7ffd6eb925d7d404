// What the first scrape of `/metrics` shows before an instance has had any request.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import packageJson from '../../package.json' with { type: 'json' }
import { eventually } from '../support/eventually.ts'
import { startPennonFor } from '../support/pennon.ts'

it('the metrics contain the build, the start time and every counter that alerts need before anything happens', async t => {
  const startedAt = Date.now() / 1000
  const pennon = await startPennonFor(t)
  const scrape = async () => (await fetch(`${pennon.url}/metrics`)).text()
  // The worker's first report arrives just after its start.
  const text = await eventually(async () => {
    const scraped = await scrape()
    return scraped.includes('process_start_time_seconds{process="work"}') ? scraped : null
  })
  const value = (series: string) => {
    const found = text.split('\n').find(line => line.startsWith(`${series} `))
    assert.ok(found !== undefined, `${series} is missing`)
    return Number(found.slice(series.length + 1))
  }
  assert.equal(value(`pennon_build_info{version="${packageJson.version}",node="${process.versions.node}"}`), 1)
  for (const name of ['serve', 'work']) {
    const start = value(`process_start_time_seconds{process="${name}"}`)
    // To the second, the precision to which the clocks of the system and of its processes agree.
    assert.ok(
      start > startedAt - 1 && start < Date.now() / 1000 + 1,
      `${name} started at ${start}, not after ${startedAt}`,
    )
  }
  for (const series of [
    'pennon_requests_total{route="flags",status="503"}',
    'pennon_requests_total{route="capture",status="500"}',
    'pennon_request_seconds_count{route="capture_v1"}',
    'pennon_events_accepted_total{lane="historical"}',
    'pennon_events_refused_total{reason="events_over_quota"}',
    'pennon_events_refused_total{reason="invalid_json"}',
    'pennon_events_processed_total{lane="main",outcome="rejected",reason="log_record_missing"}',
    'pennon_events_processed_total{lane="main",outcome="dropped",reason="event_dropped_too_old"}',
    'pennon_flag_requests_total{result="busy"}',
    'pennon_flags_unknown_total{reason="timeout"}',
    'pennon_dependency_failures_total{port="event-log",code="full"}',
    'pennon_child_restarts_total{process="events"}',
  ])
    assert.equal(value(series), 0, series)

  assert.equal(value('pennon_log_limit_bytes'), 10 * 1024 ** 3)
  for (const gauge of ['pennon_log_bytes', 'pennon_disk_free_bytes']) assert.ok(value(gauge) > 0, gauge)

  await fetch(`${pennon.url}/decide?v=3`, { method: 'POST', body: '{}' })
  const buckets = (await scrape()).match(/pennon_request_seconds_bucket\{le="0\.000\d*",route="flags"\}/g)
  assert.equal(buckets?.length, 3, 'buckets below a millisecond')

  // Gauges appear with the first report of their process.
  for (const file of ['docs/grafana/metrics.json', 'docs/grafana/alerts.yml']) {
    const asked = new Set(readFileSync(file, 'utf8').match(/\b(?:pennon|process)_[a-z_]+(?=[{[\s")<>])/g))
    assert.ok(asked.size > 5, file)
    for (const name of asked)
      await eventually(async () => new RegExp(`^${name}[{ ]`, 'm').test(await scrape()), { what: `${name} of ${file}` })
  }
})
