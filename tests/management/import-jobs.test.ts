import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { noImportChanges } from '#core/imports/import-changes.ts'
import type { ImportedCount } from '#core/imports/imported-counts.ts'
import { err } from '#core/result.ts'
import type { ServiceApi } from '#importer/send/service-api.ts'
import { readJobReport, readStoredCounts } from '#importer/verify/job-report.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'
import { type ManagementApi, startManagement } from '../support/management-api.ts'

const jobs = '/api/projects/1/import_jobs/'

const create = (api: ManagementApi, more: object = {}) => api.post(jobs, { source: 'csv', ...more })

describe('import jobs', () => {
  it('have an unguessable id and a number, and are found by either', async t => {
    const api = await startManagement(t)
    const [first, second] = [await create(api), await create(api)]
    assert.deepEqual([first.number, second.number], [2, 3])
    for (const { id } of [first, second]) assert.ok(Number.isSafeInteger(id) && id > 2 ** 32, String(id))
    for (const name of [second.id, second.number])
      assert.equal((await api.patch(`${jobs}${name}/`, { name: String(name) })).id, second.id)
    const body = await api.get(jobs)
    assert.deepEqual(fieldOf(body.results, 'id'), [second.id, first.id])
    for (const name of ['0', '-1', '1e3', '9007199254740993', '4'])
      assert.equal((await api.call('GET', `${jobs}${name}/`)).status, 404, name)
  })

  it('keep their options', async t => {
    const api = await startManagement(t)
    assert.deepEqual((await create(api)).options, {
      person_properties: 'keep',
      first_touch_backdate: false,
      geoip: false,
      experiments: false,
    })
    const { options } = await create(api, { options: { geoip: true, person_properties: 'overwrite' } })
    assert.deepEqual(options, {
      person_properties: 'overwrite',
      first_touch_backdate: false,
      geoip: true,
      experiments: false,
    })
  })

  it('reject an option for destinations, since there are no destinations', async t => {
    const api = await startManagement(t)
    await create(api, { replay_side_effects: [] })
    await api.refuses('POST', jobs, [
      { source: 'csv', replay_side_effects: ['webhook'] },
      'replay_side_effects',
      'invalid_input',
    ])
  })

  it('show the id that allows adding events only to keys with write access', async t => {
    const api = await startManagement(t)
    const { id, number } = await create(api)
    for (const [scope, shown] of [
      ['import_job:read', null],
      ['import_job:write', id],
    ] as const) {
      const key = await api.addKey([scope])
      const [list, one, report] = await Promise.all(
        ['', `${number}/`, `${number}/report/`].map(path => api.call('GET', jobs + path, { key })),
      )
      const seen = [list!.body.results[0], one!.body, report!.body.job]
      assert.deepEqual(
        fieldsOf(seen, 'id', 'number'),
        seen.map(() => [shown, number]),
        scope,
      )
    }
  })

  it('show persons and groups in the samples of a report only to keys that may read them', async t => {
    const api = await startManagement(t)
    const { number } = await create(api)
    const samples = [
      { personId: 'p', distinctIds: ['d'] },
      { groupTypeIndex: 0, groupKey: 'g' },
    ]
    const notes = [{ importJobId: number, reason: 'undo_left:history_is_incomplete', count: 7, samples }]
    await api.commit({ imports: { ...noImportChanges, notes } })
    const seen = async (...scopes: string[]) => {
      const key = await api.addKey(['import_job:read', ...scopes])
      const body = await api.get(`${jobs}${number}/report/`, key)
      assert.equal(body.notes[0].count, 7)
      return body.notes[0].samples
    }
    assert.deepEqual(await seen(), [])
    assert.deepEqual(await seen('group:read', 'query:read'), [])
    assert.deepEqual(await seen('person:read'), samples.slice(0, 1))
    assert.deepEqual(await seen('person:read', 'group:write'), samples)
  })

  it('are rejected beyond 50 open jobs, however many are created concurrently', async t => {
    const api = await startManagement(t)
    const created = await Promise.all(
      Array.from({ length: 55 }, () => api.call('POST', jobs, { body: { source: 'csv' } })),
    )
    const refused = created.filter(({ status }) => status === 409)
    assert.deepEqual([refused.length, (await api.get(jobs)).count], [5, 50])
    assert.match(refused[0]!.body.detail, /50 import jobs that are neither published nor discarded/)
  })

  it('are rejected beyond 500 jobs within 24 hours', async t => {
    const asked: unknown[] = []
    const createImportJob = async (_: unknown, limits: unknown) => {
      asked.push(limits)
      return err('too_many_per_day' as const)
    }
    const api = await startManagement(t, { wrap: store => ({ ...store, createImportJob }) })
    await api.refuses('POST', jobs, [{ source: 'csv' }, null, 'conflict', '500 import jobs within 24 hours'])
    assert.deepEqual(asked, [{ openMax: 50, perDayMax: 500, keptMax: 1_000 }])
  })

  it('are rejected beyond 1,000 open or published jobs, with a separate error code', async t => {
    const createImportJob = async () => err('too_many_kept' as const)
    const api = await startManagement(t, { wrap: store => ({ ...store, createImportJob }) })
    const tooMany = /1000 published or open import jobs.*import without a job/
    await api.refuses('POST', jobs, [{ source: 'csv' }, null, 'too_many_import_jobs', tooMany])
  })

  it('are rejected if the project drops old events, unless the request allows it', async t => {
    const api = await startManagement(t)
    const setting = (seconds: number) => api.patch('/api/projects/1/', { drop_events_older_than_seconds: seconds })
    await setting(86_400)
    const dropsOld = ['accept_old', 'project_drops_old_events', '86400 seconds'] as const
    await api.refuses('POST', jobs, [{ source: 'csv' }, ...dropsOld])
    await create(api, { accept_old: true })
    await setting(0)
    await create(api)
  })
})

const idBuckets = Array<number>(256).fill(0)

/** A job with these stored counts. */
async function worldOf(t: TestContext, all: readonly ImportedCount[]) {
  const asked: number[] = []
  const api = await startManagement(t, {
    events: {
      countImportedRows: async () => ({ rows: all.length, idBuckets }),
      listImportedCounts: async ({ after, limit }) => {
        asked.push(limit)
        const from =
          after === null ? 0 : 1 + all.findIndex(each => each.day === after.day && each.event === after.event)
        return all.slice(from, from + limit)
      },
    },
  })
  const body = await api.post(jobs, { source: 'csv' })
  return { api, asked, path: `${jobs}${body.id}/`, id: String(body.id) }
}

function countsOf(dayCount: number, nameOf: (index: number) => string, perDay: number): ImportedCount[] {
  return Array.from({ length: dayCount * perDay }, (_, index) => ({
    day: new Date(Date.UTC(2015, 0, 1 + Math.floor(index / perDay))).toISOString().slice(0, 10),
    event: nameOf(index % perDay),
    uuids: index + 1,
  }))
}

describe('the counts of an import job', () => {
  it('are all in the report if there are few', async t => {
    const all = countsOf(2, index => `e${index}`, 3)
    const { api, path } = await worldOf(t, all)
    const body = await api.get(`${path}report/`)
    assert.deepEqual([body.counts, body.counts_next], [all, null])
    assert.deepEqual(await api.get(`${path}counts/`), { next: null, results: all })
  })

  it('come in pages of at most 10,000 counts and one mebibyte, and the report contains the first page', async t => {
    for (const [all, pages] of [
      [countsOf(3_650, index => `e${index}`, 10), [10_000, 10_000, 10_000, 6_500]],
      [countsOf(100, index => `${index}${'é&/_ \n'.repeat(30)}`, 100), null],
    ] as const) {
      const { api, path, asked } = await worldOf(t, all)
      const report = await api.get(`${path}report`)
      const seen = [report.counts]
      for (let next = report.counts_next; next !== null; ) {
        assert.match(next, /\/import_jobs\/\d+\/counts\/\?cursor=/)
        const { status, body, text } = await api.call('GET', next.slice(next.indexOf('/api/')))
        assert.equal(status, 200, text)
        assert.ok(Buffer.byteLength(text) < 1_200_000)
        seen.push(body.results)
        next = body.next
      }
      assert.deepEqual(seen.flat(), all)
      assert.ok(asked.every(limit => limit === 10_001))
      if (pages === null) assert.ok(seen.length > 2)
      else assert.deepEqual(fieldOf(seen, 'length'), pages)
    }
  })

  it('are read page by page by the importer, which also accepts an answer that contains all of them', async t => {
    const all = countsOf(3_000, index => `€ ${index}`, 10)
    const { api, id } = await worldOf(t, all)
    const asked: string[] = []
    const service = {
      address: 'http://service',
      async call(_: string, path: string, options: { query?: Record<string, string> } = {}) {
        asked.push(path)
        const query = new URLSearchParams(options.query).toString()
        return await api.get(`/api/projects/1${path}?${query}`)
      },
    } as unknown as ServiceApi
    const report = await readJobReport(service, id)
    assert.deepEqual(await Array.fromAsync(readStoredCounts(service, id, report)), all)
    assert.equal(asked.length, 3)
    assert.deepEqual(
      await Array.fromAsync(readStoredCounts(service, id, { ...report, countsCursor: null })),
      report.counts,
    )
  })

  it('answer 404 for an unknown job, and 400 for an invalid cursor', async t => {
    const { api, path } = await worldOf(t, [])
    assert.equal((await api.call('GET', `${jobs}99/counts/`)).status, 404)
    for (const cursor of ['2024-05-01', '2024-99-01_e', 'x_e'])
      assert.equal((await api.call('GET', `${path}counts/?cursor=${cursor}`)).status, 400, cursor)
  })
})
