// The time given to the profiles of a Mixpanel export, whose rows have none.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { ImportPlan } from '#importer/job/plan.ts'
import type { Rehearsal } from '#importer/stages/report/import-report.ts'
import { addDefaultProfileTime } from '../../src/commands/import/job/profile-time.ts'
import { ImportCommands } from '../support/import-command.ts'
import { refusalOf } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

const profile = `${JSON.stringify({ $distinct_id: 'u-1', $properties: { $email: 'u1@example.test', plan: 'pro' } })}\n`
const event = (time: number) =>
  `${JSON.stringify({ event: 'Paid', properties: { time, distinct_id: 'u-1', $insert_id: String(time) } })}\n`
const lastEvent = 1_714_564_800

describe('the time of Mixpanel profiles', () => {
  it('without any other time, profiles get the time of the last event', async t => {
    const commands = new ImportCommands(tempDir(t))
    const files = [
      commands.file('profiles.jsonl', profile),
      commands.file('events.jsonl', `${event(lastEvent)}${event(lastEvent - 86_400)}`),
    ]
    assert.equal((await commands.plan(files, '--source', 'mixpanel')).exitCode, 0)
    const ran = await commands.call('run')
    assert.match(ran.stderr, /Profiles have no time: using that of the last event, 2024-05-01T12:00:00/)
    assert.match(ran.stdout, /^Next: pennon import plan .*the plan has no target project/m)
    const report = JSON.parse((await commands.call('report', '--json')).stdout) as Rehearsal
    assert.deepEqual(report.balance.rejected, 0)
    assert.deepEqual(
      report.events.map(({ event: name, first, last }) => [name, first.slice(0, 10), last.slice(0, 10)]),
      [
        ['Paid', '2024-04-30', '2024-05-01'],
        ['$set', '2024-05-01', '2024-05-01'],
      ],
    )
    assert.doesNotMatch((await commands.call('run')).stderr, /Staging again/)
  })

  it('profiles move along with the last event if a time zone is given afterwards, unless --profile-timestamp is set', async t => {
    for (const [said, expected] of [
      [[], '2024-05-01T19:00:00.000Z'],
      [['--profile-timestamp', '2024-06-01'], '2024-06-01T00:00:00.000Z'],
    ] as const) {
      const commands = new ImportCommands(tempDir(t))
      const raw = commands.file('raw.jsonl', profile + event(lastEvent))
      await commands.plan([raw], '--source', 'mixpanel', ...said)
      assert.equal((await commands.call('run')).exitCode, 0)
      const zoned = await commands.call('run', '--json', '--source-timezone', 'America/Los_Angeles')
      const { events } = JSON.parse(zoned.stdout) as Rehearsal
      assert.equal(events.find(({ event: name }) => name === '$set')?.first, expected)
    }
  })

  it('a job of profiles without events stops and asks for --profile-timestamp', async t => {
    const commands = new ImportCommands(tempDir(t))
    await commands.plan([commands.file('profiles.jsonl', profile)], '--source', 'mixpanel')
    for (const _ of [1, 2]) {
      assert.match(refusalOf(await commands.call('run')), /no event to take it from.*--profile-timestamp/)
    }
    const plan = JSON.parse(readFileSync(join(commands.job, 'plan.json'), 'utf8')) as ImportPlan
    assert.deepEqual(plan.config, {})
  })

  it('fetched profiles get the end of the fetched range', () => {
    const fetched = (config: object) => ({
      config,
      isComplete: true,
      parts: [],
      partsWaiting: 0,
      partsEmpty: 0,
      warnings: [],
    })
    assert.deepEqual(addDefaultProfileTime({}, 'mixpanel', fetched({ source: 'mixpanel', to: '2024-05-31' })), {
      profile_timestamp: '2024-06-01T00:00:00.000Z',
    })
    const said = { profile_timestamp: '2024-05-02T00:00:00Z' }
    assert.deepEqual(addDefaultProfileTime(said, 'mixpanel', fetched({ to: '2024-05-31' })), said)
    assert.deepEqual(addDefaultProfileTime({}, 'amplitude', fetched({ to: '2024-05-31' })), {})
    assert.deepEqual(addDefaultProfileTime({}, 'mixpanel', null), {})
  })
})
