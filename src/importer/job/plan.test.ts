import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseJson } from '#core/json.ts'
import { limits } from '../../../tests/support/import-job.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { JobFolder } from './job-folder.ts'
import { hashConversionSettings, type ImportPlan, readPlan, writePlan } from './plan.ts'

describe('the plan of an import', () => {
  it('keeps all digits of the numbers in its configuration', t => {
    const folder = new JobFolder(tempDir(t))
    const filter = '{"field":"org","op":"eq","value":9007199254740993}'
    const plan: ImportPlan = {
      ...{ v: 4, jobId: 'job-1', createdAt: '2026-01-15T00:00:00.000Z', toolVersion: '0.0.0', source: 'generic' },
      ...{ files: [], fetch: null, format: null, target: null },
      config: { mapping: { filters: [parseJson(filter)] } },
      limits: { ...limits, maxRejectShare: 1e-7 },
    }
    writePlan(folder, plan)
    const read = readPlan(folder)!
    assert.equal(JSON.stringify(read.config), `{"mapping":{"filters":[${filter}]}}`)
    assert.equal(read.limits.maxRejectShare, 1e-7)
    assert.equal(hashConversionSettings(read), hashConversionSettings(plan))
  })

  it('is refused in an older format, with a remedy', t => {
    for (const v of [1, 2, 3]) {
      const folder = new JobFolder(tempDir(t))
      folder.writeJson('plan.json', { v, jobId: 'job-1' })
      assert.throws(() => readPlan(folder), /planned by an earlier version of Pennon.* Finish or discard it/)
    }
  })
})
