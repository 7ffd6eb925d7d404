import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createApproval, storeApproval } from '#importer/job/approval.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import type { Manifest } from '#importer/job/manifest.ts'
import type { ImportPlan, ImportTarget } from '#importer/job/plan.ts'
import { storeServiceJob } from '#importer/send/service-job.ts'
import { envSetting } from '../../../../tests/support/env-setting.ts'
import { limits } from '../../../../tests/support/import-job.ts'
import { serve } from '../../../../tests/support/local-server.ts'
import { testPersonalKey } from '../../../../tests/support/pennon.ts'
import { tempDir } from '../../../../tests/support/temp-dir.ts'
import { addKnownProjectToPlan } from './known-project.ts'
import { queryServiceJob } from './query-service-job.ts'
import { queryTargetFacts } from './query-target-facts.ts'
import { describeEndedJob, requireTrustedTarget } from './target-api.ts'

const project = { projectKey: 'phc_shop', projectId: null, projectName: null }

function planTo(target: ImportTarget): ImportPlan {
  return {
    ...{ v: 4, jobId: 'job-1', createdAt: '2026-01-15T00:00:00.000Z', toolVersion: '0.0.0', source: 'generic' },
    ...{ config: {}, files: [], fetch: null, format: null, limits, target },
  }
}

/** A folder whose target can be recorded, and a server that collects the keys it receives. */
async function aFolder(t: TestContext) {
  const keys: (string | undefined)[] = []
  const address = await serve(t, (request, response) => {
    keys.push(request.headers.authorization)
    response.setHeader('content-type', 'application/json').end('{"state":"pending","results":[],"next":null}')
  })
  envSetting(t, 'PENNON_PERSONAL_KEY', testPersonalKey)
  const folder = new JobFolder(tempDir(t))
  return {
    ...{ keys, folder, address },
    madeAt: (target: string) => storeServiceJob(folder, { id: '7', secretId: 's', target, project: '1' }),
    approveFor: (target: ImportTarget) =>
      storeApproval(
        folder,
        createApproval({ plan: planTo(target), manifest: {} as Manifest }, '2026-01-15T00:00:00.000Z'),
      ),
  }
}

describe('the personal key', () => {
  it('is sent only to the target that the folder was approved for, by every function that calls a target', async t => {
    const { keys, folder, address, madeAt, approveFor } = await aFolder(t)
    const plan = planTo({ ...project, address: 'https://pennon.example.com', apiAddress: address })
    madeAt('https://pennon.example.com')
    approveFor({ ...project, address: 'https://pennon.example.com' })
    const message = /not sent to http:\/\/127.*than was approved.*approve again: pennon import run/
    const answer = await queryServiceJob({ folder, plan })
    assert.match(answer !== null && 'unknownBecause' in answer ? answer.unknownBecause : '', message)
    const signal = new AbortController().signal
    const facts = await queryTargetFacts({ folder, plan, signal }, { names: [], days: [] })
    assert.match('notAsked' in facts ? facts.notAsked : '', message)
    assert.equal(await addKnownProjectToPlan(folder, plan), plan)
    assert.throws(
      () => requireTrustedTarget({ folder, plan }),
      (error: unknown) => error instanceof JobStopped && message.test(error.message),
    )
    assert.deepEqual(keys, [])
  })

  it('is sent only to the address where the import job was created', async t => {
    const { keys, folder, address, madeAt } = await aFolder(t)
    madeAt('https://pennon.example.com')
    const answer = await queryServiceJob({ folder, plan: planTo({ ...project, address }) })
    const message = /import job 7 was created at https:\/\/pennon\.example\.com, but plan\.json has another/
    assert.match(answer !== null && 'unknownBecause' in answer ? answer.unknownBecause : '', message)
    assert.deepEqual(keys, [])
  })

  it('is sent to the target that was approved', async t => {
    const { keys, folder, address, madeAt, approveFor } = await aFolder(t)
    madeAt(address)
    approveFor({ ...project, address })
    const answer = await queryServiceJob({ folder, plan: planTo({ ...project, address }) })
    assert.ok(answer !== null && 'state' in answer && answer.state === 'pending')
    assert.deepEqual(keys, [`Bearer ${testPersonalKey}`])
  })

  it('is still sent to the approved target once its project is known', async t => {
    const { folder, address, approveFor } = await aFolder(t)
    approveFor({ ...project, address })
    const known = { ...project, address, projectId: '7', projectName: 'Shop' }
    assert.equal(requireTrustedTarget({ folder, plan: planTo(known) }), known)
  })
})

it('a job accepts events until it is published, is discarded or fails; afterwards an error says what to do', () => {
  for (const state of ['planned', 'rehearsed', 'approved', 'sending', 'verifying', 'pending'])
    assert.equal(describeEndedJob(state, 'history'), null)
  for (const state of ['publishing', 'published', 'failed'])
    assert.match(
      describeEndedJob(state, 'history')!,
      /nothing more is sent\. To undo it: pennon import discard history$/,
    )
  for (const state of ['discarding', 'discarded'])
    assert.match(describeEndedJob(state, 'history')!, /nothing more is sent\. To import again, .* pennon import plan$/)
})
