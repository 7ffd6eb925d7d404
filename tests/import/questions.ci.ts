// The questions of the import commands, answered on a terminal.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { readApproval } from '#importer/job/approval.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { ImportCommands } from '../support/import-command.ts'
import { type Pennon, startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { mustSucceed } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'
import { ctrlC, ctrlD, OnTerminal } from './on-a-terminal.ts'

const settings = { PENNON_PERSONAL_KEY: testPersonalKey }
const exported = '{"event":"Paid","properties":{"time":1714564800,"distinct_id":"u-1"}}\n'
const toApprove = /Type the name of the target to approve and send[^\n]*: /
const toPublish = /Type the name of the target to publish[^\n]*: /

function onTerminal(t: TestContext, cwd: string, ...args: readonly string[]): OnTerminal {
  const terminal = new OnTerminal(settings, cwd, 'import', ...args)
  t.after(() => terminal.stop())
  return terminal
}

describe('an import on a terminal', () => {
  let pennon: Pennon
  let project: string
  before(async () => {
    pennon = await startPennon()
    project = (await pennon.api<{ name: string }>('GET', '/api/projects/@current/')).name
  })
  after(() => pennon.stop())

  it('`plan` asks for missing options', async t => {
    const folder = tempDir(t)
    const job = join(folder, 'job')
    const raw = new ImportCommands(folder).file('raw.jsonl', exported)
    const plan = onTerminal(t, folder, 'plan', job)
    await plan.answer(/Which product is it from\?[^\n]*: /, 'mixpanle\r')
    await plan.answer(/Which product is it from\?[^\n]*: /, 'mixpanel\r')
    await plan.answer(/File or folder of the export[^\n]*: /, `${raw}x\r`)
    await plan.answer(/cannot be read.*File or folder of the export[^\n]*: /s, `${raw}\r`)
    await plan.answer(/Project API key[^\n]*: /, `${pennon.url}\r`)
    await plan.answer(/that is not a project API key.*Project API key[^\n]*: /s, 'phc_of_another_instance\r')
    await plan.answer(/URL of the instance[^\n]*: /, 'https://?\r')
    await plan.answer(/must be a URL such as.*URL of the instance[^\n]*: /s, `${pennon.url}\r`)
    await plan.answer(/rejected the project API key.*Project API key[^\n]*: /s, `${testProjectKey}\r`)
    await plan.answer(/URL of the instance[^\n]*: /, `${pennon.url}\r`)
    assert.equal(await plan.ended(), 0, plan.shown)
    assert.doesNotMatch(plan.shown + readFileSync(join(job, 'plan.json'), 'utf8'), /phx_/)
  })

  it('`run` asks for the name of the project between the rehearsal and sending', async t => {
    const folder = tempDir(t)
    const commands = new ImportCommands(folder, settings)
    const target = ['--source', 'mixpanel', '--host', pennon.url, '--project-key', testProjectKey]
    await commands.plan([commands.file('raw.jsonl', exported)], ...target)
    const isApproved = () => readApproval(new JobFolder(commands.job)) !== null
    for (const key of [ctrlC, ctrlD]) {
      const left = onTerminal(t, folder, 'run', commands.job)
      await left.answer(toApprove, key)
      assert.equal(await left.ended(), 130, left.shown)
      assert.match(
        left.shown,
        /pennon: canceled\. Nothing was sent\. Next: pennon import run \S+ \(approve and send it, after reading/,
      )
      assert.ok(left.isSane(), left.shown)
    }
    const stopped = onTerminal(t, folder, 'run', commands.job)
    await stopped.answer(/Job job in .*1 event would be sent and 0 charged.*Report: /s, '')
    await stopped.answer(toApprove, '\r')
    assert.equal(await stopped.ended(), 0, stopped.shown)
    assert.match(
      stopped.shown,
      /Nothing was sent\.\r\nNext: pennon import run \S+ \(approve and send it, after reading/,
    )
    const mistyped = onTerminal(t, folder, 'run', commands.job)
    await mistyped.answer(toApprove, `${project}x\r`)
    await mistyped.answer(/That is not "[^\n]+"\.\r\n.*approve and send[^\n]*: /s, '\r')
    assert.equal(await mistyped.ended(), 0, mistyped.shown)
    assert.ok(!isApproved())
    commands.approve()
    const changed = onTerminal(t, folder, 'run', commands.job, '--max-reject-share', '7%')
    await changed.answer(/the limits changed since the approval\./, '')
    await changed.answer(toApprove, `${project}\r`)
    assert.equal(await changed.ended(), 0, changed.shown)
    assert.match(changed.shown, /Approved as [0-9a-f]{12}\.\r\n.*Sent to .*Next: pennon import publish /s)
    mustSucceed(await commands.call('discard', '--project', project))
  })

  it('`go` leads from the plan to the published events, and the user can stop at each question', async t => {
    const folder = tempDir(t)
    const raw = new ImportCommands(folder).file('raw.jsonl', exported)
    const go = () =>
      onTerminal(
        t,
        folder,
        ...['go', raw, '--source', 'mixpanel', '--host', pennon.url, '--project-key', testProjectKey],
      )
    const whole = go()
    await whole.answer(toApprove, `${project}\r`)
    await whole.answer(toPublish, `${project}\r`)
    assert.equal(await whole.ended(), 0, whole.shown)
    assert.match(whole.shown, /The stored events match .*Published: the events are part of the project\./s)
    assert.doesNotMatch(whole.shown, /Next: /, 'the user need not type a command')
    const [job] = readdirSync(folder).filter(name => /^import-20\d\d-\d\d-\d\d-mixpanel$/.test(name))
    const before = readFileSync(join(folder, job!, 'plan.json'), 'utf8')
    const unsent = go()
    await unsent.answer(toApprove, '\r')
    assert.equal(await unsent.ended(), 0, unsent.shown)
    assert.match(unsent.shown, new RegExp(`Nothing was sent\\.\r\nNext: pennon import run ${job}-2 `))
    const hidden = go()
    await hidden.answer(toApprove, `${project}\r`)
    await hidden.answer(toPublish, '\r')
    assert.equal(await hidden.ended(), 0, hidden.shown)
    const toContinue = `Nothing was changed\\.\\s+Next: pennon import publish ${job}-3 `
    assert.match(hidden.shown, new RegExp(toContinue))
    const canceled = onTerminal(t, folder, 'publish', `${job}-3`)
    await canceled.answer(toPublish, ctrlC)
    assert.equal(await canceled.ended(), 130, canceled.shown)
    assert.match(canceled.shown, new RegExp(`canceled\\. ${toContinue}`))
    assert.equal(readFileSync(join(folder, job!, 'plan.json'), 'utf8'), before)
    const again = onTerminal(t, folder, 'go', raw, '--source', 'mixpanel', '--folder', job!)
    assert.equal(await again.ended(), 2, again.shown)
    assert.match(again.shown, /already contains an import\. To continue it: pennon import run /)
  })

  it('`run` asks about live events on the same days before it asks for the approval', async t => {
    const live = { api_key: testProjectKey, event: 'live', distinct_id: 'u-2', timestamp: '2024-05-01T10:00:00Z' }
    assert.equal((await pennon.post('/capture/', live)).status, 200)
    await pennon.caughtUp()
    const folder = tempDir(t)
    const commands = new ImportCommands(folder, settings)
    const target = ['--source', 'mixpanel', '--host', pennon.url, '--project-key', testProjectKey]
    await commands.plan([commands.file('raw.jsonl', exported)], ...target)
    const question = /has live events on the same days \(2024-05-01\)\..*Type yes to send it anyway[^\n]*: /s
    const stopped = onTerminal(t, folder, 'run', commands.job)
    await stopped.answer(question, '\r')
    assert.equal(await stopped.ended(), 0, stopped.shown)
    assert.match(stopped.shown, /Nothing was sent\.\r\nNext: pennon import run \S+ --overlap-ok; this is fine if/)
    assert.doesNotMatch(stopped.shown, toApprove)
    const accepted = onTerminal(t, folder, 'run', commands.job)
    await accepted.answer(question, 'y\r')
    await accepted.answer(/That is not "yes"\..*Type yes[^\n]*: /s, 'yes\r')
    await accepted.answer(toApprove, `${project}\r`)
    assert.equal(await accepted.ended(), 0, accepted.shown)
    assert.match(accepted.shown, /The stored events match /)
  })
})
