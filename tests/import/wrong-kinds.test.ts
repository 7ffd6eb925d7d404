// A value of the wrong type anywhere in a file of a job is reported with the name of the file.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { it, type TestContext } from 'node:test'
import { isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { readManifest } from '#importer/job/manifest.ts'
import { readPlan, writePlan } from '#importer/job/plan.ts'
import { ProgressTracker, progressSchema } from '#importer/job/progress.ts'
import { matchesSchema } from '#importer/records/file-schema.ts'
import { generic } from '#importer/sources/generic/generic.ts'
import { readRehearsal } from '#importer/stages/report/import-report.ts'
import { sampleSchema } from '#importer/stages/report/samples.ts'
import { mapping } from '../support/import-command.ts'
import { jobOf } from '../support/import-job.ts'

const readers: Readonly<Record<string, (folder: JobFolder) => unknown>> = {
  'plan.json': readPlan,
  'manifest.json': readManifest,
  'report.json': readRehearsal,
  'progress.json': folder => folder.readJson('progress.json', progressSchema),
}

/** Values from outside, which may have any type, and the part of the report that is derived from other files. */
const free = new Set(['config', 'fetch', 'joining', 'samples', 'sent'])

it('a value of the wrong type anywhere in a job file is reported with the name of the file', async t => {
  const folder = await rehearsedJob(t)
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

/** A rehearsed job with all of its files, as the commands write them. */
async function rehearsedJob(t: TestContext): Promise<JobFolder> {
  const record = { id: 'r', event: 'Paid', user: 'u', device: 'd', at: '2024-05-01T12:00:00Z' }
  const text = `${JSON.stringify(record)}\n\n{"id":"none","event":"Paid","user":"u"}\nbroken\n`
  const job = jobOf(t, [text], generic, { config: { mapping } })
  const { folder } = job
  const target = { address: 'http://localhost', projectKey: 'phc_x', projectId: '1', projectName: 'One' }
  writePlan(folder, { ...job.plan, target })
  await job.stageAndScan()
  await job.rehearse()
  const tracker = new ProgressTracker({ nowMs: () => 1_700_000_000_000, say: () => undefined })
  tracker.begin('send', { records: 3, unit: 'records' })
  folder.writeJson('progress.json', tracker.figures('paused', 'paused'))
  return folder
}
