import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { generic } from '#importer/sources/generic/generic.ts'
import { jobOf, rejectsOf, type TestJob } from '../../../tests/support/import-job.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { JobFolder } from '../job/job-folder.ts'
import { writeJobState } from '../job/job-state.ts'
import { findRetryProblem } from './check-retry.ts'

const mapping = { event: 'event', distinct_id: 'user', timestamp: 'at' }
const good = { event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z' }
const text = (...records: readonly object[]) => records.map(each => `${JSON.stringify(each)}\n`).join('')

describe('a file of repaired records', () => {
  it('is accepted if it contains rejects of the job, whether they are repaired or not', async t => {
    const { job, rejects } = await rehearsed(t, [good, { event: 'Left', at: good.at }, 'broken'])
    assert.equal(rejects.length, 2)
    const repaired = { ...rejects[0]!, source: JSON.stringify(good) }
    for (const records of [rejects, [repaired], [repaired, { event: 'other' }]])
      assert.equal(await findProblem(t, job, text(...records)), null)
  })

  it('is refused if it has a reject line of another job, even from the same place in a file', async t => {
    const { job, rejects } = await rehearsed(t, [good, { event: 'Left', at: good.at }])
    const other = await rehearsed(t, [good, { event: 'Gone', at: good.at }])
    assert.match(
      (await findProblem(t, job, text(...rejects, ...other.rejects)))!,
      /^line 2 of .*fixed\.jsonl is not a reject of this import, which rejected no such record in line 2 of raw\.jsonl$/,
    )
  })

  it('is accepted if one whole record can be sent, and refused if none can', async t => {
    const { job } = await rehearsed(t, [good, { event: 'Left', at: good.at }])
    assert.equal(await findProblem(t, job, text({ event: 'Left' }, { ...good, user: 'u-2' })), null)
    const none = /holds neither lines of the rejects of this import nor whole records of generic that can be sent/
    assert.match((await findProblem(t, job, JSON.stringify(mapping, null, 2)))!, none)
    assert.match(
      (await findProblem(t, job, text(mapping)))!,
      /\(line 1: distinct_id_missing, user\. Fill in the field of the user /,
    )
    assert.match((await findProblem(t, job, '\n'))!, none)
    assert.match((await findProblem(t, job, ''))!, none)
  })

  it('is accepted if it has reject lines of an earlier retry', async t => {
    const { job, rejects } = await rehearsed(t, [{ event: 'Left', at: good.at }])
    const reject = { ...rejects[0]!, object: 'records.jsonl', source_sha256: 'of the repaired one' }
    job.folder.write('retry/1/records.jsonl', '')
    writeJobState(new JobFolder(job.folder.file('retry/1')), 'refused/retry/1/0', reject)
    assert.equal(await findProblem(t, job, text(reject)), null)
  })
})

async function rehearsed(t: TestContext, lines: readonly (object | string)[]) {
  const content = lines.map(each => `${typeof each === 'string' ? each : JSON.stringify(each)}\n`).join('')
  const job = jobOf(t, { 'raw.jsonl': content }, generic, { config: { mapping } })
  await job.report()
  return { job, rejects: rejectsOf(job) }
}

function findProblem(
  t: TestContext,
  { folder, plan, manifest, source }: TestJob,
  content: string,
): Promise<string | null> {
  const path = join(tempDir(t), 'fixed.jsonl')
  writeFileSync(path, content)
  return findRetryProblem({ folder, plan, manifest, source }, path)
}
