import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ImportCommands, plannedJob } from '../support/import-command.ts'
import { refusalOf } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

const record = JSON.stringify({ event_type: 'e', user_id: 'u-1', event_time: '2024-05-01 12:00:00' })
const source = ['--source', 'amplitude']

describe('the configuration of an import', () => {
  it('an option that the source does not support leaves the plan unchanged', async t => {
    const commands = await plannedJob(t, record, ...source)
    const refused = refusalOf(await commands.call('run', '--source-timezone', 'Europe/Berlin'))
    assert.match(refused, /the configuration of amplitude has no key "source_timezone"/)
    assert.equal((await commands.call('run')).exitCode, 0)
  })

  it('hold_live_window is refused unless it is true or false', async t => {
    const commands = new ImportCommands(tempDir(t))
    const config = commands.file('config.json', '{"hold_live_window": "true"}')
    const refused = await commands.plan([commands.file('raw.jsonl', record)], ...source, '--config', config)
    assert.equal(refused.exitCode, 2)
    assert.equal(refused.stderr, 'pennon: hold_live_window in the configuration must be true or false\n')
  })

  it('old Mixpanel events without a time of receipt need a time zone, unless another event reveals it', async t => {
    const commands = new ImportCommands(tempDir(t))
    const old = Date.UTC(2022, 6, 1, 12) / 1000
    const event = (time: number, more: object) =>
      `${JSON.stringify({ event: 'e', properties: { time, distinct_id: 'u-1', $insert_id: `i-${time}`, ...more } })}\n`
    const mixpanel = ['--source', 'mixpanel']
    await commands.plan([commands.file('raw.jsonl', event(old, {}))], ...mixpanel)
    for (let time = 0; time < 2; time++) {
      assert.match(refusalOf(await commands.call('run')), /1 record is from before 2023.*--source-timezone/)
    }
    assert.equal((await commands.call('run', '--source-timezone', 'UTC')).exitCode, 0)
    const known = event(old + 60, { mp_processing_time_ms: (old + 62) * 1000 })
    await commands.plan([commands.file('raw.jsonl', event(old, {}) + known)], ...mixpanel)
    assert.equal((await commands.call('run')).exitCode, 0)
  })
})
