import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { implicitDiscardsMax, usualOptions } from '#core/imports/import-job.ts'
import { openSqliteState } from '../../../tests/support/state.ts'
import { aChange } from '../../../tests/support/values.ts'
import { createJob as createJobOrRefuse, discardJob, findJob } from './manage-jobs.ts'

const newJob = { projectId: 1, name: 'n', source: 's', options: usualOptions, plan: {} }

/** Fake randomness: each call is filled with the next of these bytes, in a cycle. */
function bytesOf(...values: readonly number[]): (size: number) => Uint8Array {
  let next = 0
  return size => new Uint8Array(size).fill(values[next++ % values.length]!)
}

async function createJob(deps: Parameters<typeof createJobOrRefuse>[0]) {
  const created = await createJobOrRefuse(deps, newJob, aChange())
  assert.ok(created.ok)
  return created.value
}

describe('creating an import job', () => {
  it('gives the job a random public id in addition to its sequential number', async t => {
    const { management } = await openSqliteState(t)
    const [a, b] = [
      await createJob({ management, randomBytes: bytesOf(1, 2) }),
      await createJob({ management, randomBytes: bytesOf(0xff) }),
    ]
    assert.deepEqual([a.id, b.id], [2, 3])
    for (const { publicId } of [a, b]) assert.ok(Number.isSafeInteger(publicId) && publicId > 2 ** 32, String(publicId))
    assert.notEqual(a.publicId, b.publicId)
    for (const id of [b.id, b.publicId]) assert.deepEqual(await findJob({ management }, 1, id), b)
    assert.equal(await findJob({ management }, 2, b.publicId), null)
  })

  it('generates another random id if the first is taken', async t => {
    const { management } = await openSqliteState(t)
    const first = await createJob({ management, randomBytes: bytesOf(7) })
    const second = await createJob({ management, randomBytes: bytesOf(7, 7, 7, 8) })
    assert.notEqual(second.publicId, first.publicId)
    await assert.rejects(createJob({ management, randomBytes: bytesOf(7) }), { code: 'conflict' })
  })
})

describe('discarding implicit jobs', () => {
  it('refuses to discard more implicit jobs of one day than the limit allows', async t => {
    const { management } = await openSqliteState(t)
    const day = '2026-11-01'
    const discardNext = async (nowMs: number) => {
      await management.createImplicitJob(1, day, nowMs)
      const [next] = (await management.listImportJobs(1, { limit: 1, offset: 0 })).jobs
      const discarded = await discardJob({ management }, 1, next!.id, aChange('Test', nowMs))
      return discarded.ok || discarded.error
    }
    for (let count = 1; count <= implicitDiscardsMax; count++) assert.equal(await discardNext(count), true)
    assert.equal(await discardNext(implicitDiscardsMax + 1), 'too_many_implicit_jobs')
    assert.equal((await management.listImplicitJobs(1, day)).length, implicitDiscardsMax + 1)
  })
})
