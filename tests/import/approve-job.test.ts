// What the person who approves an import sees. The target only needs to know the project key.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { readApproval } from '#importer/job/approval.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { ImportCommands } from '../support/import-command.ts'
import { serveAnswers } from '../support/local-server.ts'
import { callCommand, mustSucceed, refusalOf } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

const record = `${JSON.stringify({ id: 'r', event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z' })}\n`

describe('approving an import in a script', () => {
  it('accepts the hash that the rehearsal printed, and refuses any other hash', async t => {
    const { commands, host, plan } = await planning(t)
    await plan()
    assert.deepEqual(JSON.parse((await commands.call('status', '--json')).stdout).approvalSha256, null)
    const ran = mustSucceed(await commands.call('run'))
    const [, printed] = /^Next: pennon import run .* --yes ([0-9a-f]{12}) \(approve and send it, /m.exec(ran.stdout)!
    const [, hash] = await commands.yes()
    assert.ok(hash.length === 64 && hash.startsWith(printed!))
    assert.equal(JSON.parse((await commands.call('run', '--json')).stdout).approvalSha256, hash)
    for (const [yes, message] of [
      [printed!.slice(1), /--yes takes the hash that pennon import run prints, at least 12 of its digits/],
      [`${printed}g`, /--yes takes the hash/],
      [
        '0'.repeat(12),
        new RegExp(`is for other files.*pennon import report .*: pennon import run .* --yes ${printed}$`, 'm'),
      ],
    ] as const) {
      const refused = await commands.call('run', '--yes', yes)
      assert.deepEqual([refused.exitCode, refused.stdout], [2, ''])
      assert.match(refused.stderr, message)
    }
    assert.equal(readApproval(new JobFolder(commands.job)), null)
    const approved = await commands.call('run', '--yes', printed!)
    assert.match(approved.stdout, new RegExp(`^Approved as ${printed}\\.$`, 'm'))
    assert.equal(approved.exitCode, 2, 'sending needs a personal key')
    assert.match(
      (await commands.call('status')).stdout,
      /^Last run: Set PENNON_PERSONAL_KEY to a personal API key with the scopes .*person:read/m,
    )
    assert.doesNotMatch((await commands.call('run', '--yes', hash)).stdout, /Approved/, 'it is approved already')
    const limits = refusalOf(await commands.call('run', '--max-reject-share', '7%'))
    assert.match(limits, /^pennon: the limits changed since the approval\. .* --yes [0-9a-f]{12} /m)
    assert.match((await commands.call('run', '--yes', hash)).stderr, /is for other files, options, limits or another/)
    assert.match(
      (await commands.call('run', ...(await commands.yes()))).stdout,
      /^the limits changed since the approval\.\nApproved as /m,
    )
    await plan()
    assert.equal(readApproval(new JobFolder(commands.job)), null, 'another plan is not approved')
    const test = ['--rehearsal-project', 'phc_test', '--yes', hash]
    assert.match((await commands.call('run', ...test)).stderr, /cannot be combined with --rehearsal-project/)
    const wrongKey = await commands.plan(
      [commands.file('raw.jsonl', record)],
      '--host',
      host,
      '--project-key',
      'phc_other',
    )
    assert.match(wrongKey.stderr, /rejected the project API key phc_other.*Nothing was sent/)
  })

  it('shows the reasons of rejected records, with what to do', async t => {
    const { commands, plan } = await planning(t, `${record}${JSON.stringify({ event: 'Paid', user: 'u-1' })}\n`)
    await plan('--max-reject-share', '60%')
    assert.match(
      mustSucceed(await commands.call('run')).stdout,
      /^Rejected records \(to see them: pennon import rejects .*\):\n {2}1 timestamp_missing: .+\n/m,
    )
  })

  it('explains why more events would be sent than records produce events', async t => {
    const linked = JSON.stringify({ id: 'r-2', event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z', device: 'd-1' })
    const { commands, plan } = await planning(t, `${record}${linked}\n`)
    await plan()
    assert.match(
      mustSucceed(await commands.call('run')).stdout,
      /^2 records: 2 produce events, .*\n3 events would be sent and 0 charged \(2 from records, and 1 generated to link ids /m,
    )
  })

  it('shows the options that change live data', async t => {
    const { commands, plan } = await planning(t)
    await plan('--person-properties', 'overwrite', '--count-in-experiments')
    await commands.call('run')
    assert.match(
      (await commands.call('run', ...(await commands.yes()))).stdout,
      /^Options of the plan:\n {2}--person-properties overwrite: REPLACES LIVE VALUES\. .*\n {2}--count-in-experiments: Flag.*\n2 warnings:\n.*\n.*\nReport: .*\nApproved as /m,
    )
  })

  it('is refused for damaged files, and when no target is given', async t => {
    const { commands, plan } = await planning(t, `${record}{"id": "r-2", "ev`)
    await plan()
    const stopped = await commands.call('run', '--json')
    assert.deepEqual([stopped.exitCode, JSON.parse(stopped.stdout).approvalSha256], [2, null])
    assert.match(stopped.stderr, /raw\.jsonl is damaged in line 2 \(it ends in the middle of a record\): 1 record was/)
    const whole = new ImportCommands(tempDir(t))
    await whole.plan([whole.file('raw.jsonl', record)])
    const ran = await whole.call('run')
    assert.deepEqual([ran.exitCode, ran.stderr], [0, ''])
    assert.match(ran.stdout, /^Next: pennon import plan .* --project-key phc_… \(the plan has no target project\)$/m)
    const [, digits] = /--yes ([0-9a-f]{12})$/m.exec((await whole.call('run', '--yes', '0'.repeat(12))).stderr)!
    assert.match((await whole.call('run', '--yes', digits!)).stderr, /^pennon: the plan has no target\. Next: .*plan /)
  })

  it('is refused by `pennon import go` without a terminal, with the names of the commands to use', async () => {
    const stderr = refusalOf(await callCommand({}, 'import', 'go', 'an export', '--source', 'mixpanel'))
    assert.match(
      stderr,
      /^pennon: there is no terminal .*: pennon import plan FOLDER 'an export' --source mixpanel; pennon import run FOLDER, .*; pennon import publish FOLDER /,
    )
  })
})

async function planning(t: TestContext, text = record) {
  const host = await serveAnswers(t, { '/array/phc_shop/config': {} })
  const commands = new ImportCommands(tempDir(t))
  const raw = commands.file('raw.jsonl', text)
  const plan = async (...options: readonly string[]) => {
    mustSucceed(await commands.plan([raw], '--host', host, '--project-key', 'phc_shop', ...options))
  }
  return { commands, host, plan }
}
