// This version opens the data folder of an instance with the first schema that was killed while events waited
// (`make-data-folder.ts`), processes these events, and shows all data.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventStoreMigrations } from '#adapters/clickhouse/schema.ts'
import { migrations } from '#adapters/sql/known-migrations.ts'
import { eventually } from '../support/eventually.ts'
import { startPennonFor, testProjectKey } from '../support/pennon.ts'
import { baselineEvents } from './baseline-events.ts'
import { unpackedFolder } from './unpacked-folder.ts'

const { processed, imported, ofJob, rejected, waiting, waitingImport } = baselineEvents
const namesOf = (...lists: readonly { readonly event: string }[][]) =>
  lists
    .flat()
    .map(({ event }) => event)
    .sort()

interface Person {
  readonly distinct_ids: string[]
  readonly properties: Record<string, unknown>
}

describe('a data folder of the first schema', () => {
  it('is migrated, its waiting events are processed, and all data is there', async t => {
    const folder = unpackedFolder(t, 'baseline')
    // Its rejects must not expire before this test runs.
    const settings = { PENNON_LOG_LEVEL: 'info', PENNON_REJECT_RETENTION_DAYS: '3650' }
    const pennon = await startPennonFor(t, { dataFolder: folder, settings })
    await pennon.caughtUp()

    const list = async <T>(path: string) =>
      (await pennon.api<{ results: T[] }>('GET', `/api/projects/@current${path}`)).results
    const names = async () => namesOf(await list<{ event: string }>('/events/?limit=100'))
    assert.deepEqual(await names(), namesOf(processed, imported, waiting, waitingImport))
    const rejects = await list<{ event: string; reason: string; body_kind: string }>('/rejected_events/')
    assert.deepEqual(
      rejects.map(({ event, reason, body_kind: kind }) => [event, reason, kind]),
      [[rejected.event, 'invalid_shape', 'request']],
    )
    assert.deepEqual(
      (await list<{ name: string }>('/cohorts/')).map(({ name }) => name),
      ['pros'],
    )

    const persons = () => list<Person>('/persons/')
    const [ada, ...others] = await persons()
    assert.deepEqual([others, ada!.distinct_ids.toSorted()], [[], ['ada', 'anon-1']])
    const { plan, age } = ada!.properties
    assert.deepEqual({ plan, age }, { plan: 'pro', age: 36 })
    const groups = await list<{ group_properties: object }>('/groups/?group_type_index=0')
    assert.deepEqual(
      groups.map(({ group_properties }) => group_properties),
      [{ size: 3 }],
    )

    const asked = await pennon.post('/flags/?v=2', { api_key: testProjectKey, distinct_id: 'anon-1' })
    const { flags } = (await asked.json()) as { flags: Record<string, { enabled: boolean }> }
    assert.equal(flags['for-pros']!.enabled, true)
    const usage = await pennon.api<{ results: { value: string; calls: number[] }[] }>(
      'GET',
      '/api/projects/@current/feature_flags/1/usage/?date_from=2026-11-01&date_to=2026-11-01&interval=day',
    )
    assert.deepEqual(
      usage.results.map(({ value, calls }) => [value, calls]),
      [['true', [1]]],
    )

    const jobs = await list<{ number: number; day: string | null; name: string }>('/import_jobs/')
    const job = jobs.find(({ day }) => day === null)!
    assert.equal(job.name, 'history')
    await pennon.api('POST', `/api/projects/@current/import_jobs/${job.number}/publish/`)
    await eventually(async () => (await names()).includes(ofJob[0]!.event), { what: 'the job to be published' })
    await eventually(async () => (await persons()).length === 2, { what: 'the person of the job' })

    await pennon.post('/capture/', { api_key: testProjectKey, event: 'new', distinct_id: 'ada' })
    await pennon.caughtUp()
    const all = namesOf(processed, imported, waiting, waitingImport, ofJob, [{ event: 'new' }])
    assert.deepEqual(await names(), all)

    await pennon.api('POST', `/api/projects/@current/import_jobs/${job.number}/discard/`)
    await eventually(async () => (await persons()).length === 1, { what: 'the person of the job to be removed' })
    await eventually(async () => !(await names()).includes(ofJob[0]!.event), { what: 'the job to be discarded' })
    const [left] = await persons()
    assert.deepEqual([left!.distinct_ids.toSorted(), left!.properties], [['ada', 'anon-1'], ada!.properties])
    const lost = await pennon.api<{ results: object[] }>('GET', '/api/instance/lost_records/')
    assert.deepEqual(lost.results, [])

    await pennon.stop()
    const logged = pennon
      .output()
      .split('\n')
      .filter(line => line.startsWith('{'))
      .map(line => JSON.parse(line))
      .filter(({ durationMs }) => durationMs !== undefined)
      .map(({ process, from, to, changes }) => ({ process, ...(changes === undefined ? { from, to } : { changes }) }))
    const [first, last] = [migrations[0]!.version, migrations.at(-1)!.version]
    const changes = eventStoreMigrations.slice(1).map(({ name }) => name)
    assert.deepEqual(logged, [
      ...(last > first ? [{ process: 'serve', from: first, to: last }] : []),
      ...(changes.length > 0 ? [{ process: 'work', changes }] : []),
    ])
  })
})
