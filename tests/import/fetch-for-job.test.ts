// A planned job gets its raw files from the fetch stage, which `pennon import run` calls.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { describe, it } from 'node:test'
import { fetchFilesForJob } from '#commands/import/fetch/fetch-job-stage.ts'
import { isInterruption } from '#commands/import/messages/interruption.ts'
import type { JsonObject } from '#core/json.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { type Fault, startMixpanel } from '../support/export-stand-in.ts'
import { fetchSecrets } from '../support/fetching.ts'
import { quickClock } from '../support/fixed-clock.ts'
import { silentProgress } from '../support/silent-progress.ts'
import { tempDir } from '../support/temp-dir.ts'

async function aJob(t: TestContext, faultOf: (day: string, times: number) => Fault | null = () => null) {
  const days = ['2024-05-01', '2024-05-02', '2024-05-03']
  const standIn = await startMixpanel({
    lines: new Map(days.map(day => [day, [`{"event":"${day}"}`]])),
    faultOf: ({ from, times }) => faultOf(from, times),
  })
  t.after(() => standIn.stop())
  const folder = new JobFolder(tempDir(t))
  const clock = quickClock()
  const figures = { records: 0, total: 0, waited: new Set<string>(), said: [] as string[] }
  const progress: StageProgress = {
    ...silentProgress,
    begin: (_, { records = 0 }) => Object.assign(figures, { records: 0, total: records }),
    add: ({ records = 0 }) => {
      figures.records += records
    },
    waiting: reason => void (reason !== null && figures.waited.add(reason)),
    say: line => figures.said.push(line),
  }
  const run = { folder, findSpaceProblem: () => null, progress, signal: new AbortController().signal }
  const config: JsonObject = { source: 'mixpanel', host: standIn.url, from: days[0]!, to: days[2]! }
  const fetchFiles = (more: Partial<typeof run> = {}, fetch = config) =>
    fetchFilesForJob({ ...run, ...more }, fetch, { clock, env: fetchSecrets })
  return { standIn, folder, fetchFiles, figures }
}

describe('fetching for a job', () => {
  it('the files come in order of time, progress is reported, and a second run requests nothing', async t => {
    const wait = { kind: 'status', status: 429, retryAfter: '840' } as const
    const { standIn, folder, fetchFiles, figures } = await aJob(t, (day, times) =>
      day === '2024-05-01' && times === 1 ? wait : null,
    )
    const files = await fetchFiles()
    const objects = ['2024-05-01', '2024-05-02', '2024-05-03'].map(day => `raw/mixpanel-${day}.jsonl.gz`)
    assert.deepEqual(
      files,
      objects.map(object => ({ path: folder.file(object), object })),
    )
    assert.deepEqual([figures.records, figures.total], [3, 3])
    assert.ok(figures.waited.has('source limit, 14 min'), [...figures.waited].join())
    assert.deepEqual(await fetchFiles(), files)
    assert.equal(standIn.asked.length, 4)
  })

  it('a fetch that needs action from the user stops the job, and an interrupted fetch pauses it', async t => {
    const { fetchFiles } = await aJob(t, () => ({ kind: 'status', status: 401 }))
    await assert.rejects(fetchFiles(), JobStopped)
    await assert.rejects(fetchFiles({}, { source: 'mixpanel' }), ImportConfigError)
    const { fetchFiles: fetchOthers } = await aJob(t)
    const pause = new AbortController()
    const progress = { ...silentProgress, begin: () => pause.abort() }
    const paused = fetchOthers({ progress, signal: pause.signal })
    await assert.rejects(paused, error => isInterruption(error, pause.signal))
    assert.equal((await fetchOthers()).length, 3)
  })
})
