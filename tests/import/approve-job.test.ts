// What the person who approves an import sees. The target only needs to know the project key.

import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { checkpointFile, createCheckpoint } from '#importer/send/checkpoint.ts'
import { ImportCommands } from '../support/import-command.ts'
import { tempDir } from '../support/temp-dir.ts'

const record = `${JSON.stringify({ id: 'r', event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z' })}\n`

describe('approving an import', () => {
  it('approval requires a rehearsal of the current plan and the name of the target', async t => {
    const commands = new ImportCommands(tempDir(t))
    const host = await target(t)
    const raw = commands.file('raw.jsonl', record)
    const wrongKey = await commands.plan([raw], '--host', host, '--project-key', 'phc_other')
    assert.match(wrongKey.stderr, /rejected the project API key phc_other.*Nothing was sent/)
    assert.equal((await commands.plan([raw], '--host', host, '--project-key', 'phc_shop')).exitCode, 0)
    assert.match(
      (await commands.call('approve', '--project', host)).stderr,
      /has not been rehearsed|has not been staged yet/,
    )
    await commands.call('run')
    assert.match((await commands.call('approve')).stderr, /confirm the project/)
    assert.match((await commands.call('approve', '--project', 'other')).stderr, /but the target is/)
    const approved = await commands.call('approve', '--project', host)
    assert.match(approved.stdout, /^Approved as [0-9a-f]{12}\./)
    assert.ok(existsSync(join(commands.job, 'approval.json')))
    assert.equal((await commands.call('run')).exitCode, 2, 'sending needs a personal key')
    assert.match(
      (await commands.call('status')).stdout,
      /^Last run: Set PENNON_PERSONAL_KEY to a personal API key with the scopes .*person:read/m,
    )
    await commands.plan([raw], '--host', host, '--project-key', 'phc_shop')
    assert.ok(!existsSync(join(commands.job, 'approval.json')), 'another plan is not approved')
    const cut = commands.file('cut.jsonl', `${record}{"id": "r-2", "ev`)
    await commands.plan([cut], '--host', host, '--project-key', 'phc_shop')
    await commands.call('run')
    const refused = await commands.call('approve', '--project', host)
    assert.equal(refused.exitCode, 2)
    assert.match(refused.stderr, /cut\.jsonl is damaged in line 2 \(it ends in the middle of a record\): 1 record was/)
  })

  it('approval shows the options that change live data, and is refused after the job was sent', async t => {
    const { commands, host, plan } = await planning(t)
    await plan('--person-properties', 'overwrite', '--count-in-experiments')
    const ran = await commands.call('run')
    assert.match(ran.stdout, /^Options of the plan:\n {2}--person-properties overwrite: REPLACES LIVE VALUES\./m)
    const approved = await commands.call('approve', '--project', host)
    assert.equal(approved.exitCode, 0, approved.stderr)
    assert.match(
      approved.stdout,
      /^Options of the plan:\n {2}--person-properties overwrite: REPLACES LIVE VALUES\. .*\n {2}--count-in-experiments: Flag.*\nApproved as /,
    )
    await plan()
    await commands.call('run')
    assert.match((await commands.call('approve', '--project', host)).stdout, /^Approved as /)
    // Mark the job as sent after its approval.
    const identity = {
      ...{ jobId: 'j', serviceJobId: '7', target: host, project: '1' },
      approvalSha256: '',
      mappingSha256: '',
    }
    writeFileSync(
      join(commands.job, checkpointFile),
      JSON.stringify({ ...createCheckpoint(identity, ''), state: 'sent' }),
    )
    const approval = () => readFileSync(join(commands.job, 'approval.json'), 'utf8')
    const before = approval()
    const again = await commands.call('approve', '--project', host)
    assert.equal(again.exitCode, 2)
    assert.match(again.stderr, /has been sent since, so there is nothing to approve\./)
    assert.equal(approval(), before)
  })
})

async function planning(t: TestContext, text = record) {
  const host = await target(t)
  const commands = new ImportCommands(tempDir(t))
  const raw = commands.file('raw.jsonl', text)
  const plan = async (...options: readonly string[]) => {
    const planned = await commands.plan([raw], '--host', host, '--project-key', 'phc_shop', ...options)
    assert.equal(planned.exitCode, 0, planned.stderr)
  }
  return { commands, host, plan }
}

/** Answers only requests for the configuration of a project. */
async function target(t: TestContext): Promise<string> {
  const http = createServer((request, response) => {
    response.statusCode = request.url!.startsWith('/array/phc_shop/config') ? 200 : 404
    response.end('{}')
  })
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  t.after(() => http.close())
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`
}
