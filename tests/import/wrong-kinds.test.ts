// A value of the wrong type anywhere in a file of a job is reported with the name of the file.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { it, type TestContext } from 'node:test'
import { isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import { approve, readApproval } from '#importer/job/approval.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { readManifest } from '#importer/job/manifest.ts'
import { type ImportPlan, readPlan, writePlan } from '#importer/job/plan.ts'
import { ProgressTracker, progressSchema } from '#importer/job/progress-figures.ts'
import { matchesSchema } from '#importer/records/file-schema.ts'
import { readCheckpoint } from '#importer/send/checkpoint.ts'
import { readRetryOutcomes, storeRetryOutcomes } from '#importer/send/retry-outcomes.ts'
import { sendStage } from '#importer/send/send-stage.ts'
import { readEnding, readServiceJob, storeEnding } from '#importer/send/service-job.ts'
import { generic } from '#importer/sources/generic/generic.ts'
import { readRehearsal, type Verification } from '#importer/stages/report/import-report.ts'
import { sampleSchema } from '#importer/stages/report/samples.ts'
import { readSent, readVerification, updateReport } from '#importer/verify/sent.ts'
import { startBatchStandIn } from '../support/batch-stand-in.ts'
import { mapping } from '../support/import-command.ts'
import { TestJob } from '../support/import-job.ts'
import { sendOptions } from '../support/sending.ts'
import { tempDir } from '../support/temp-dir.ts'

const readers: Readonly<Record<string, (folder: JobFolder) => unknown>> = {
  'plan.json': readPlan,
  'manifest.json': readManifest,
  'report.json': readRehearsal,
  'approval.json': readApproval,
  'service-job.json': readServiceJob,
  'checkpoint.json': readCheckpoint,
  'progress.json': folder => folder.readJson('progress.json', progressSchema),
  'verify.json': readVerification,
  'verify-persons.json': readSent,
  'retry/outcomes.json': readRetryOutcomes,
  'ending.json': readEnding,
}

/** Values from outside, which may have any type, and the part of the report that is derived from other files. */
const free = new Set(['config', 'fetch', 'joining', 'samples', 'sent'])

it('a value of the wrong type anywhere in a file of a job is reported with the name of the file', async t => {
  const folder = await sentJob(t)
  for (const [name, read] of Object.entries(readers)) {
    const whole = JSON.parse(readFileSync(folder.file(name), 'utf8')) as JsonValue
    assert.notEqual(read(folder), null, name)
    let count = 0
    for (const [path, changed] of wrongKinds(whole)) {
      writeFileSync(folder.file(name), JSON.stringify(changed))
      assert.throws(
        () => read(folder),
        (error: Error) => error instanceof JobStopped && error.message.startsWith(`${folder.file(name)} is damaged. `),
        `${name}: ${path}`,
      )
      count++
    }
    assert.ok(count > 2, name)
    writeFileSync(folder.file(name), JSON.stringify(whole))
  }
  const [sample] = readFileSync(folder.file('rehearsal/samples.jsonl'), 'utf8').split('\n')
  for (const [path, changed] of wrongKinds(JSON.parse(sample!) as JsonValue))
    if (!path.startsWith('.events.0.')) assert.equal(matchesSchema(sampleSchema, changed), false, path)
})

/**
 * The value with each of its members in turn replaced by another type, with the path of the member; of a list only the
 * first.
 */
function* wrongKinds(value: JsonValue, path = ''): Generator<readonly [path: string, changed: JsonValue]> {
  if (path !== '') yield [path, typeof value === 'number' || value === null ? ['wrong'] : 7]
  if (Array.isArray(value)) {
    for (const [inner, changed] of value.length === 0 ? [] : wrongKinds(value[0]!, `${path}.0`))
      yield [inner, [changed, ...value.slice(1)]]
    return
  }
  if (!isJsonObject(value)) return
  for (const key of Object.keys(value))
    if (!free.has(key))
      for (const [inner, changed] of wrongKinds((value as JsonObject)[key]!, `${path}.${key}`))
        yield [inner, { ...value, [key]: changed }]
}

/** A job with all of its files, as the commands write them. */
async function sentJob(t: TestContext): Promise<JobFolder> {
  const raw = `${tempDir(t)}/raw.jsonl`
  const record = { id: 'r', event: 'Paid', user: 'u', device: 'd', at: '2024-05-01T12:00:00Z' }
  writeFileSync(raw, `${JSON.stringify(record)}\n\n{"id":"none","event":"Paid","user":"u"}\nbroken\n`)
  const job = new TestJob(tempDir(t), generic, [raw], { config: { mapping } })
  const { folder } = job
  const target = { address: 'http://localhost', projectKey: 'phc_x', projectId: '1', projectName: 'One' }
  const plan: ImportPlan = { ...job.plan, target }
  writePlan(folder, plan)
  const manifest = await job.stageAndScan()
  await job.rehearse()
  folder.writeJson('approval.json', approve({ plan, manifest }, plan.createdAt))
  folder.writeJson('service-job.json', { id: '7', secretId: 's', target: 'http://localhost', project: '1' })
  const standIn = await startBatchStandIn(t)
  const opened = job.open()
  await sendStage(sendOptions(folder.path, opened, standIn.url))
  opened.close()
  const check = { name: 'id_buckets', state: 'differs', compared: 1, differences: ['one'] } as const
  const verification: Verification = {
    ...{ v: 1, verified_at: plan.createdAt, ok: false, expected_rows: 2, stored_rows: 1, checks: [check] },
    notes: [{ reason: 'merge_refused', count: 1, samples: [{}] }],
  }
  folder.writeJson('verify.json', verification)
  const retried = new Map([['raw.jsonl:4', { kind: 'sent', events: 1, refused: 0 } as const]])
  mkdirSync(dirname(folder.file('retry/outcomes.json')), { recursive: true })
  storeRetryOutcomes(folder, retried)
  folder.writeJson('verify-persons.json', { compared: 1, equal: 0, newer: 0, differences: ['one'] })
  updateReport(folder, plan)
  storeEnding(folder, { serviceJobId: '7', how: 'publish', isDone: true })
  const tracker = new ProgressTracker({ nowMs: () => 1_700_000_000_000, say: () => undefined })
  tracker.begin('send', { records: 3, unit: 'records' })
  folder.writeJson('progress.json', tracker.figures('paused', 'paused'))
  return folder
}
