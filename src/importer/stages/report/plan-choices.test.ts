import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import type { ImportLimits } from '#importer/job/plan.ts'
import { generic } from '#importer/sources/generic/generic.ts'
import { jobOf, limits as usual } from '../../../../tests/support/import-job.ts'
import { describeDifferingZones, describeZone, formatChoices, listPlanChoices } from './plan-choices.ts'

const config = { mapping: { event: 'event', distinct_id: 'user', timestamp: 'at' } }
const overwriting = { person_properties: 'overwrite', first_touch_backdate: true, geoip: true, experiments: true }

describe('the options of a plan', () => {
  it('are listed if they differ from the defaults, those that replace live values first', () => {
    const limits = { ...usual, joining: overwriting, acceptsOld: true, retentionDays: 1_000 }
    const choices = listPlanChoices({ config: { allow_dangerous_merge: true, strip_person_updates: true }, limits })
    assert.deepEqual(
      choices.map(({ option, replacesLiveValues }) => `${option}${replacesLiveValues ? ' !' : ''}`),
      [
        ...['--person-properties overwrite !', '--first-touch-backdate !', '--geoip-from-record'],
        ...['--count-in-experiments', '--accept-old', '--strip-person-data', '--allow-dangerous-merge'],
        '--retention-days 1000',
      ],
    )
    assert.match(formatChoices(choices)[0]!, /^--person-properties overwrite: REPLACES LIVE VALUES\. /)
    assert.doesNotMatch(formatChoices(choices)[2]!, /REPLACES/)
  })

  it('mention --keep-person-data only for a project that may have live events', () => {
    const kept = (answer?: { hasEvents: boolean }) =>
      listPlanChoices({ config: { strip_person_updates: false }, limits: usual }, answer as never).length
    assert.deepEqual([kept(), kept({ hasEvents: true }), kept({ hasEvents: false })], [1, 1, 0])
  })

  it('all appear in the report, or one line states that every option has its default', async t => {
    const marked = await reports(t, { joining: overwriting })
    assert.match(
      marked.html,
      /ATTENTION: publishing replaces values of live events .*overwrite, --first-touch-backdate/,
    )
    assert.match(marked.html, /--geoip-from-record/)
    assert.equal(JSON.parse(marked.json).choices.length, 4)
    const plain = await reports(t, {})
    assert.match(plain.html, /All have their defaults: no value of a live event is replaced/)
    assert.deepEqual(JSON.parse(plain.json).choices, [])
  })
})

async function reports(t: TestContext, limits: Partial<ImportLimits>) {
  const job = jobOf(t, [[{ event: 'Paid', user: 'u', at: '2024-05-01T00:00:00Z' }]], generic, { config, limits })
  await job.report()
  const text = (end: string) => readFileSync(job.folder.file(`report.${end}`), 'utf8')
  return { json: text('json'), html: text('html') }
}

const zoned = { source_timezone: 'Europe/Oslo' }

describe('the time zone of times that are given without one', () => {
  it('is taken from the configuration, or otherwise from the mapping, which is then mentioned', () => {
    assert.equal(describeZone({}), 'none given')
    assert.equal(describeZone({ source_timezone: 'UTC' }), 'UTC')
    assert.equal(describeZone({ mapping: zoned }), 'Europe/Oslo, by the mapping')
    assert.equal(
      describeZone({ source_timezone: 'UTC', mapping: zoned }),
      'UTC, which overrides Europe/Oslo in the mapping',
    )
  })

  it('is announced only if the configuration and the mapping differ', () => {
    for (const config of [
      {},
      { mapping: zoned },
      { ...zoned, mapping: zoned },
      { source_timezone: 'UTC', mapping: {} },
    ])
      assert.equal(describeDifferingZones(config), null)
    assert.match(
      describeDifferingZones({ source_timezone: 'UTC', mapping: zoned })!,
      /^Times .* read as UTC, which overrides/,
    )
  })
})
