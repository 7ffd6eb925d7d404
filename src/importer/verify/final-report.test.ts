import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { generic } from '#importer/sources/generic/generic.ts'
import { TestJob } from '../../../tests/support/import-job.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { newCheckpoint } from '../send/checkpoint.ts'
import type { ExpectedEvents } from './expected-events.ts'
import { finalSections } from './final-pages.ts'
import { finalReport } from './final-report.ts'
import type { Verification } from './verify-stage.ts'

const identity = {
  ...{ jobId: 'j', serviceJobId: '7', target: 'http://pennon', project: '1' },
  ...{ approvalSha256: '', mappingSha256: '' },
}
const verification: Verification = {
  ...{ v: 1, verified_at: '', ok: true, expected_rows: 0, stored_rows: 0, checks: [], notes: [] },
}

it('the pages of a final report show the most frequent of very many names, as those of a rehearsal do', async t => {
  const config = { mapping: { event: 'event', distinct_id: 'user', timestamp: 'at' } }
  const raw = join(tempDir(t), 'raw.jsonl')
  writeFileSync(raw, '{"event":"Paid","user":"u","at":"2024-05-01T00:00:00Z"}\n')
  const job = new TestJob(tempDir(t), generic, [raw], { config })
  await job.stage()
  await job.scan()
  const rehearsal = await job.rehearse()
  const span = { first: '2024-05-01T00:00:00.000Z', last: '2024-05-01T00:00:00.000Z' }
  const names = Array.from({ length: 10_000 }, (_, index) => [`name ${index}`, { count: index, ...span }] as const)
  const expected: ExpectedEvents = {
    ...{
      rows: 0,
      counts: new Map(),
      otherCounts: new Map(),
      idBuckets: [],
      names: new Map(names),
      samples: [],
      links: 0,
      groups: 0,
    },
  }
  const checkpoint = newCheckpoint(identity, 0, '')
  const report = finalReport({ folder: job.folder, checkpoint, rehearsal, verification, expected })
  assert.equal(report.events.length, 10_000)
  const [table] = finalSections(report).find(({ title }) => title === 'Events')!.tables
  assert.equal(table!.rows.length, 500)
  assert.deepEqual(table!.rows[0]!.slice(0, 2), ['name 9999', '9,999'])
  assert.match(table!.caption, /9,500 more are in report\.json/)
})
