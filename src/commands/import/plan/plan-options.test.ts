import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type PlanOptions, readImportLimits, readSourceConfig } from './plan-options.ts'

const limits = (options: Partial<PlanOptions>) => readImportLimits({ maxRejectShare: '1%', ...options } as PlanOptions)

describe('the limits in a plan', () => {
  it('contain the import options of the command line, under the names that the service uses', () => {
    const usual = limits({})
    assert.deepEqual([usual.joining, usual.acceptsOld], [undefined, undefined])
    assert.deepEqual(limits({ personProperties: 'overwrite' }).joining, {
      person_properties: 'overwrite',
      first_touch_backdate: false,
    })
    const asked = limits({ geoipFromRecord: true, countInExperiments: true, acceptOld: true })
    assert.deepEqual([asked.joining, asked.acceptsOld], [{ geoip: true, experiments: true }, true])
  })
})

describe('the configuration of a PostHog import', () => {
  it('keeps or removes person data only if an option says so', () => {
    const config = (options: Partial<PlanOptions>) =>
      readSourceConfig({ source: 'posthog', ...options } as PlanOptions).config
    assert.deepEqual(config({}), {})
    assert.deepEqual(config({ keepPersonData: true }), { strip_person_updates: false })
    assert.deepEqual(config({ stripPersonData: true }), { strip_person_updates: true })
  })
})
