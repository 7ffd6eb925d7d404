import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { generic } from '#importer/sources/generic/generic.ts'
import { TestJob } from '../../../../tests/support/import-job.ts'
import { tempDir } from '../../../../tests/support/temp-dir.ts'
import { updateReportLimits } from './report-limits.ts'

it('the report of a rehearsal shows the current limits, even if they were changed after it', async t => {
  const raw = join(tempDir(t), 'raw.jsonl')
  const lines = Array.from({ length: 50 }, (_, id) =>
    JSON.stringify({ id, event: 'Paid', user: id < 8 ? null : 'u', at: '2024-05-01T00:00:00Z' }),
  )
  writeFileSync(raw, lines.join('\n'))
  const config = { mapping: { event: 'event', distinct_id: 'user', timestamp: 'at', uuid: 'id' } }
  const job = new TestJob(tempDir(t), generic, [raw], { config })
  await job.stage()
  await job.scan()
  const first = await job.rehearse()
  const texts = () => ['html', 'json'].map(end => readFileSync(job.folder.file(`rehearsal/report.${end}`), 'utf8'))
  const before = texts()
  assert.equal(updateReportLimits(job.folder, first, job.plan), first)
  assert.deepEqual(texts(), before)
  const plan = { ...job.plan, limits: { ...job.plan.limits, maxRejectShare: 0.3, allowsDamagedFiles: true as const } }
  const updated = updateReportLimits(job.folder, first, plan)
  assert.deepEqual([updated.maxRejectShare, updated.choices?.length], [0.3, 1])
  const [html, json] = texts()
  assert.match(html!, /the job pauses above 30(?:\.0)? %/)
  assert.match(html!, /--allow-damaged-files/)
  assert.match(html!, /<h2>Before and after<\/h2>.*<details>/s)
  assert.deepEqual(JSON.parse(json!), JSON.parse(JSON.stringify(updated)))
  const other = { ...plan, source: 'segment', limits: job.plan.limits }
  assert.equal(
    updateReportLimits(job.folder, updated, other),
    updated,
    'with another mapping, the rehearsal is repeated instead',
  )
})
