// Import jobs over the wire, on a real instance: pending events are visible nowhere, published ones everywhere, and
// discarded ones are gone, even when a worker is killed.

import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'
import { removeFolder } from '../support/temp-dir.ts'

interface Job {
  readonly id: number
  readonly number: number
  readonly state: string
}

interface Report {
  readonly rows: number
  readonly counts: readonly { day: string; event: string; uuids: number }[]
  readonly id_buckets: readonly number[]
  readonly notes: readonly { reason: string; count: number }[]
}

const api = '/api/projects/@current'

describe('an import job over HTTP', () => {
  const dataFolder = mkdtempSync(join(tmpdir(), 'pennon-import-'))
  let pennon: Pennon
  before(async () => {
    pennon = await startPennon({ dataFolder })
  })
  after(async () => {
    await pennon.stop()
    await removeFolder(dataFolder)
  })

  const createJob = (): Promise<Job> => pennon.api('POST', `${api}/import_jobs/`, { source: 'mixpanel', name: 'test' })
  const isIn = (id: number, state: string): Promise<unknown> =>
    eventually(async () => (await pennon.api<Job>('GET', `${api}/import_jobs/${id}/`)).state === state, {
      what: `job ${id} to be ${state}`,
    })
  const send = async (job: number | null, batch: readonly object[], headers: Record<string, string> = {}) => {
    const response = await fetch(`${pennon.url}/batch/`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-encoding': 'gzip',
        ...(job !== null && { 'x-import-job': String(job) }),
        ...headers,
      },
      body: gzipSync(JSON.stringify({ api_key: testProjectKey, historical_migration: true, batch })),
    })
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Record<string, unknown>,
    }
  }
  const countEvents = async (): Promise<number> =>
    (await pennon.api<{ results: unknown[] }>('GET', `${api}/events/?limit=1000`)).results.length
  const persons = async (): Promise<readonly { distinct_ids: string[]; properties: Record<string, unknown> }[]> =>
    (
      await pennon.api<{ results: { distinct_ids: string[]; properties: Record<string, unknown> }[] }>(
        'GET',
        `${api}/persons/?limit=1000`,
      )
    ).results
  const personOf = async (id: string) => (await persons()).find(({ distinct_ids }) => distinct_ids.includes(id))
  const aBatch = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, index) => ({
      uuid: `5a5a5a5a-0000-4000-8000-${prefix}${String(index).padStart(8, '0')}`,
      event: index % 3 === 0 ? 'signed up' : 'paid',
      timestamp: new Date(Date.UTC(2024, 0, 1 + (index % 20), 12)).toISOString(),
      properties: { distinct_id: `${prefix}-user-${index % 7}`, $set: { plan: `old-${prefix}` }, index },
    }))

  it('a job is invisible while pending, is published as a whole, and can be undone', async () => {
    const live = await pennon.post('/e/', {
      api_key: testProjectKey,
      event: 'live',
      distinct_id: 'aaaa-user-0',
      properties: { $set: { plan: 'live' } },
    })
    assert.equal(live.status, 200)
    await pennon.caughtUp()
    const job = await createJob()
    const batch = aBatch('aaaa', 100)
    const link = {
      uuid: '5a5a5a5a-0000-5000-8000-aaaa99999999',
      event: '$identify',
      timestamp: '2024-01-02T00:00:00Z',
      properties: { distinct_id: 'aaaa-user-1', $anon_distinct_id: 'aaaa-device', $groups: { company: 'acme' } },
    }
    assert.deepEqual((await send(job.id, [...batch, link])).body, { status: 'Ok' })
    const again = await send(job.id, batch.slice(0, 10), { 'x-import-report': '1' })
    assert.equal(again.status, 200)
    assert.ok(Number(again.headers.get('x-import-rate')) > 0)
    await pennon.caughtUp()
    assert.deepEqual([await countEvents(), (await persons()).length], [1, 1])
    const report = await pennon.api<Report>('GET', `${api}/import_jobs/${job.id}/report/`)
    assert.equal(report.rows, 101)
    assert.equal(
      report.id_buckets.reduce((sum, count) => sum + count, 0),
      101,
    )
    assert.equal(
      report.counts.filter(({ event }) => event === 'paid').reduce((sum, { uuids }) => sum + uuids, 0),
      66,
    )
    const { results } = await pennon.api<{ results: { uuid: string; properties: { index: number } }[] }>(
      'GET',
      `${api}/import_jobs/${job.id}/events/?uuids=${batch[5]!.uuid}`,
    )
    assert.deepEqual(
      results.map(({ properties }) => properties.index),
      [5],
    )

    await pennon.api('POST', `${api}/import_jobs/${job.id}/publish/`)
    await isIn(job.id, 'published')
    assert.equal(await countEvents(), 102)
    assert.equal((await personOf('aaaa-user-0'))?.properties.plan, 'live')
    assert.deepEqual((await personOf('aaaa-device'))?.distinct_ids.toSorted(), ['aaaa-device', 'aaaa-user-1'])
    assert.equal((await send(job.id, batch)).status, 409)

    await pennon.api('POST', `${api}/import_jobs/${job.id}/discard/`)
    await isIn(job.id, 'discarded')
    assert.equal(await countEvents(), 1)
    assert.deepEqual(
      (await persons()).map(({ distinct_ids }) => distinct_ids),
      [['aaaa-user-0']],
    )
    assert.deepEqual(await pennon.api('GET', `${api}/groups_types/`), [])
    const notes = (await pennon.api<Report>('GET', `${api}/import_jobs/${job.id}/report/`)).notes
    assert.deepEqual(
      notes.filter(({ reason }) => reason.startsWith('undo_left')),
      [],
    )
  })

  it('events of a published job show the properties of their persons', async () => {
    const live = { event: 'live', distinct_id: 'known', properties: { $set: { city: 'Oslo', rate: 1.0 } } }
    assert.equal((await pennon.post('/e/', { api_key: testProjectKey, ...live })).status, 200)
    await pennon.caughtUp()
    const job = await createJob()
    const paid = (id: string, uuid: number, properties: object = {}) => ({
      ...{ uuid: `5a5a5a5a-0000-4000-8000-00000000000${uuid}`, event: 'paid', timestamp: '2024-01-02T00:00:00Z' },
      properties: { distinct_id: id, ...properties },
    })
    const profile = {
      ...paid('described', 4, { $set: { city: 'Rome' } }),
      event: '$set',
      timestamp: '2024-01-09T00:00:00Z',
    }
    const personless = paid('known', 5, { $process_person_profile: false })
    await send(job.id, [paid('known', 1), paid('described', 2), paid('unknown', 3), profile, personless])
    await pennon.caughtUp()
    await pennon.api('POST', `${api}/import_jobs/${job.id}/publish/`)
    await isIn(job.id, 'published')
    const answer = await pennon.api<{ results: { breakdown_value: string; count: number }[] }>(
      'POST',
      `${api}/query/`,
      {
        query: {
          kind: 'TrendsQuery',
          series: [{ kind: 'EventsNode', event: 'paid' }],
          dateRange: { date_from: '2024-01-01', date_to: '2024-01-31' },
          breakdownFilter: { breakdown: 'city', breakdown_type: 'person' },
        },
      },
    )
    assert.deepEqual(
      answer.results.map(({ breakdown_value, count }) => [breakdown_value, count]),
      [
        ['Oslo', 1],
        ['Rome', 1],
        ['$$_posthog_breakdown_null_$$', 2],
      ],
    )
    await pennon.api('POST', `${api}/import_jobs/${job.id}/discard/`)
    await isIn(job.id, 'discarded')
  })

  it('the job lists refused events, and counts repeats and recent events', async () => {
    const job = await createJob()
    const [first, second] = aBatch('bbbb', 2)
    const recent = { ...second, uuid: '5a5a5a5a-0000-4000-8000-bbbb77777777', timestamp: new Date().toISOString() }
    const bad = { ...first, uuid: '5a5a5a5a-0000-4000-8000-bbbb88888888', timestamp: 'yesterday' }
    const answer = await send(job.id, [first!, first!, recent, bad], { 'x-import-report': '1' })
    assert.deepEqual(answer.body, {
      status: 'Ok',
      accepted: 3,
      duplicates: 1,
      recent: 1,
      charged: 0,
      failed_records: [{ index: 3, uuid: bad.uuid, field: 'timestamp', reason: 'timestamp_invalid' }],
    })
    await pennon.caughtUp()
    const repeated = await send(job.id, [first!], { 'x-import-report': '1' })
    assert.equal(repeated.body.duplicates, 1)
    await pennon.api('POST', `${api}/import_jobs/${job.id}/discard/`)
    await isIn(job.id, 'discarded')
  })

  it('no rows are missing after a restart', async () => {
    const outputs: string[] = []
    const restart = async () => {
      await pennon.stop()
      outputs.push(pennon.output())
      pennon = await startPennon({ dataFolder })
    }
    const job = await createJob()
    await send(job.id, aBatch('eeee', 10))
    await pennon.caughtUp()
    await pennon.api('POST', `${api}/import_jobs/${job.id}/publish/`)
    await isIn(job.id, 'published')
    // The worker records what the event store holds after it has processed something.
    await pennon.post('/e/', { api_key: testProjectKey, event: 'later', distinct_id: 'later' })
    await pennon.caughtUp()
    await restart()
    await pennon.api('POST', `${api}/import_jobs/${job.id}/discard/`)
    await isIn(job.id, 'discarded')
    await restart()
    assert.doesNotMatch([...outputs, pennon.output()].join(''), /the event store has changed/)
  })

  it('imports without a job are collected by day and can be undone', async () => {
    const eventCount = await countEvents()
    await send(null, aBatch('ffff', 50))
    await pennon.caughtUp()
    assert.equal(await countEvents(), eventCount + 50)
    const { results } = await pennon.api<{ results: (Job & { day: string | null })[] }>('GET', `${api}/import_jobs/`)
    const implicitJob = results.find(({ day }) => day !== null)!
    assert.equal((await pennon.api<Report>('GET', `${api}/import_jobs/${implicitJob.id}/report/`)).rows, 50)
    await pennon.api('POST', `${api}/import_jobs/${implicitJob.id}/discard/`)
    await isIn(implicitJob.id, 'discarded')
    assert.equal(await countEvents(), eventCount)
    assert.equal(await personOf('ffff-user-1'), undefined)
  })

  it('only events with the id of the job are accepted into it', async () => {
    const other = await pennon.api<{ id: number }>('POST', '/api/projects/', { name: 'other' })
    const otherJob = await pennon.api<Job>('POST', `/api/projects/${other.id}/import_jobs/`, { source: 'csv' })
    const batch = aBatch('cccc', 1)
    assert.deepEqual((await send(otherJob.id, batch)).body.code, 'unknown_import_job')
    assert.deepEqual((await send(4_000_000, batch)).body.code, 'unknown_import_job')
    // The number of a job can be guessed, so only its id admits events.
    const own = await createJob()
    assert.ok(own.id > 2 ** 32 && Number.isSafeInteger(own.id))
    assert.deepEqual((await send(own.number, batch)).body.code, 'unknown_import_job')
    assert.equal((await pennon.api<Job>('GET', `${api}/import_jobs/${own.number}/`)).id, own.id)
    await pennon.api('POST', `${api}/import_jobs/${own.id}/discard/`)
    assert.deepEqual((await send(1, batch)).body.code, 'invalid_import_job')
    const live = await pennon.post(
      '/batch/',
      { api_key: testProjectKey, batch },
      { 'x-import-job': String(otherJob.id) },
    )
    assert.deepEqual([live.status, ((await live.json()) as { code: string }).code], [400, 'not_historical'])
    await assert.rejects(pennon.api('GET', `${api}/import_jobs/${otherJob.id}/`), /: 404 /)
    await assert.rejects(pennon.api('POST', `${api}/import_jobs/${otherJob.id}/publish/`), /: 404 /)
  })

  it('the next worker finishes publishing when workers are killed', async () => {
    const eventCount = await countEvents()
    const job = await createJob()
    for (let part = 0; part < 4; part++)
      assert.equal((await send(job.id, aBatch(`dd0${part}`, 2_000).map(spread))).status, 200)
    const profiles = aBatch('dd09', 2_000).map(({ uuid, properties: { index } }) => ({
      ...{ uuid, event: '$set', timestamp: '2024-02-01T00:00:00Z' },
      properties: { distinct_id: `dd00-user-${index % 7}-${index}`, $set: { described: index } },
    }))
    assert.equal((await send(job.id, profiles)).status, 200)
    await pennon.caughtUp()
    await pennon.api('POST', `${api}/import_jobs/${job.id}/publish/`)
    for (let kill = 0; kill < 3; kill++) {
      await new Promise(resolve => setTimeout(resolve, 1_500))
      const { work } = pennon.childPids()
      if (work !== undefined) process.kill(work, 'SIGKILL')
    }
    await isIn(job.id, 'published')
    const report = await pennon.api<Report>('GET', `${api}/import_jobs/${job.id}/report/`)
    assert.equal(report.rows, 10_000)
    const described = await pennon.api<{ results: number[][] }>('POST', `${api}/query/`, {
      query: {
        kind: 'HogQLQuery',
        query: `SELECT count() FROM events WHERE event != '$set' AND startsWith(distinct_id, 'dd00-')
          AND JSONExtractRaw(person_properties, 'described') = extract(distinct_id, '[0-9]+$')`,
      },
    })
    assert.deepEqual(described.results, [[2_000]])
    await pennon.api('POST', `${api}/import_jobs/${job.id}/discard/`)
    await isIn(job.id, 'discarded')
    assert.equal(await countEvents(), eventCount)
    assert.equal(
      (await persons()).filter(({ distinct_ids }) => distinct_ids.some(id => id.startsWith('dd0'))).length,
      0,
    )
  })
})

/** One person for each event. */
function spread<Event extends { readonly properties: { readonly distinct_id: string; readonly index: number } }>(
  event: Event,
): Event {
  return {
    ...event,
    properties: { ...event.properties, distinct_id: `${event.properties.distinct_id}-${event.properties.index}` },
  }
}
