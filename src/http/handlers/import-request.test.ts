import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createOpenJobCache, unknownPerMinuteMax } from '#services/imports/open-jobs.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { findJobRefusal, findNamedJob, type ImportRequestDeps } from './import-request.ts'

function prepare() {
  const jobs = { findNamedImportJobs: async () => [] }
  const openJobs = createOpenJobCache({ jobs, clock: fixedClock('2026-11-01T00:00:00Z') })
  const reply = { header: () => undefined }
  return async (address: string, id = 5): Promise<string> => {
    const found = await findNamedJob({ openJobs } as ImportRequestDeps, reply as never, id, address)
    return found.ok ? 'found' : found.error.code
  }
}

describe('requests that guess job ids', () => {
  it('are counted per /64 network for IPv6 and per address for IPv4', async () => {
    for (const [addressOf, neighbour, stranger] of [
      [(n: number) => `2001:db8:1:2::${n.toString(16)}`, '2001:db8:1:2:ffff::1', '2001:db8:1:3::1'],
      [() => '192.0.2.1', '192.0.2.1', '192.0.2.2'],
    ] as const) {
      const guess = prepare()
      for (let n = 1; n <= unknownPerMinuteMax; n++) assert.equal(await guess(addressOf(n), n), 'unknown_import_job')
      assert.equal(await guess(neighbour), 'too_many_unknown_import_jobs')
      assert.equal(await guess(stranger), 'unknown_import_job')
    }
  })

  it('from the same network do not block a job that was found before', async () => {
    const headers: Record<string, string> = {}
    const reply = { header: (name: string, value: string) => Object.assign(headers, { [name]: value }) }
    const deps = { findProject: () => ({ id: 1 }), openJobs: { find: async () => 'too_many' } }
    const named = { id: 3, projectId: 1, publicId: 5, network: '192.0.2.1' }
    const prepared = { kind: 'prepared', historicalMigration: true, token: 'phc_a' }
    const error = await findJobRefusal(deps as never, reply as never, named, prepared as never)
    assert.deepEqual(
      [error?.status, error?.code, headers],
      [429, 'too_many_unknown_import_jobs', { 'retry-after': '60' }],
    )
  })
})
