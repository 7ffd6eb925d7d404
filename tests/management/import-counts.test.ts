import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { ImportedCount } from '#core/imports/imported-counts.ts'
import type { ServiceApi } from '#importer/send/job-api.ts'
import { readJobReport, readStoredCounts } from '#importer/verify/job-report.ts'
import { fieldOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'

const jobs = '/api/projects/1/import_jobs/'
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
  it('are all in the report when there are few', async t => {
    const all = countsOf(2, index => `e${index}`, 3)
    const { api, path } = await worldOf(t, all)
    const body = await api.get(`${path}report/`)
    assert.deepEqual([body.counts, body.counts_next], [all, null])
    assert.deepEqual(await api.get(`${path}counts/`), { next: null, results: all })
  })

  it('come in pages of 10,000 and of a mebibyte, the first of them in the report', async t => {
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

  it('are read page by page by the importer, which also accepts all of them in one answer', async t => {
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
