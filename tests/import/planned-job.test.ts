// A job that is only planned, and one that could not be planned.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ImportCommands, mapping, plannedJob } from '../support/import-command.ts'
import { callCommand, refusalOf } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

const line = `${JSON.stringify({ id: 'r', event: 'Paid', user: 'u-1', at: '2024-05-01 12:00:00' })}\n`

describe('a job that was not sent', () => {
  it('a plan that fails creates no folder, and leaves an existing job unchanged', async t => {
    const folder = tempDir(t)
    const commands = new ImportCommands(folder)
    const raw = commands.file('raw.jsonl', line)
    for (const job of [commands.job, join(folder, 'new', 'job')]) {
      const stderr = refusalOf(await callCommand({}, 'import', 'plan', job, raw, '--source', 'generic'))
      assert.match(stderr, /needs a mapping, .*--mapping FILE/)
      assert.ok(!existsSync(job) && !existsSync(join(folder, 'new')))
    }
    assert.equal((await commands.plan([raw])).exitCode, 0)
    assert.equal((await commands.plan([raw], '--source', 'generic')).exitCode, 2)
    assert.ok(existsSync(join(commands.job, 'plan.json')))
  })

  it('a folder that cannot be created is refused with a message that says what to do', {
    skip: process.platform !== 'linux',
  }, async t => {
    const commands = new ImportCommands(tempDir(t))
    const raw = commands.file('raw.jsonl', line)
    const mappingFile = commands.file('mapping.json', JSON.stringify(mapping))
    const options = ['--source', 'generic', '--mapping', mappingFile]
    // Creating a folder in /proc fails for every user.
    const stderr = refusalOf(await callCommand({}, 'import', 'plan', '/proc/a/b', raw, ...options))
    assert.match(stderr, /\/proc\/a\/b cannot be created \(ENOENT.*Use a folder that you can write to/)
  })

  it('another plan in the same folder removes the results of the earlier plan', async t => {
    const commands = await plannedJob(t, line)
    await commands.call('run')
    assert.match((await commands.call('rejects')).stdout, /, line 1: /)
    const good = commands.file('good.jsonl', line.replace('12:00:00', '12:00:00Z'))
    assert.equal((await commands.plan([good])).exitCode, 0)
    const { stdout } = await commands.call('status')
    for (const words of [/^Not staged yet\.$/m, /^Not rehearsed yet\.$/m, /^Not run yet\.$/m])
      assert.match(stdout, words)
    for (const command of ['report', 'rejects']) {
      assert.match(refusalOf(await commands.call(command)), /nothing has been rehearsed yet: pennon import run /)
    }
    assert.equal((await commands.call('run')).exitCode, 0)
    assert.equal((await commands.call('rejects')).stdout, 'No records are rejected.\n')
  })

  it('publishing or discarding an unsent job is refused with a message that says what to do instead', async t => {
    const commands = new ImportCommands(tempDir(t))
    const raw = commands.file('raw.jsonl', line)
    const { stdout } = await commands.plan([raw])
    assert.match(
      stdout,
      /^Staging, scan and rehearsal take about \S+ s, longer for compressed files, and need about .* in /m,
    )
    const publish = refusalOf(await commands.call('publish'))
    assert.match(publish, /nothing has been sent yet, so there is nothing to publish\. Next: pennon import run /)
    const discard = await commands.call('discard')
    assert.match(discard.stderr, /To delete the plan, remove the folder .*job\. Next: /)
  })

  it('planning says which time zone applies when the mapping and an option differ', async t => {
    const commands = new ImportCommands(tempDir(t))
    const zoned = commands.file('zoned.json', JSON.stringify({ ...mapping, source_timezone: 'Europe/Oslo' }))
    const options = ['--source', 'generic', '--mapping', zoned]
    const raw = commands.file('raw.jsonl', line)
    const words = /^Times without a zone are read as UTC, which overrides Europe\/Oslo in the mapping\.$/m
    assert.match((await commands.plan([raw], ...options, '--source-timezone', 'UTC')).stdout, words)
    assert.doesNotMatch((await commands.plan([raw], ...options)).stdout, words)
    await commands.call('run')
    assert.match((await commands.call('report')).stdout, /zone for times without one: Europe\/Oslo, by the mapping\./)
  })
})
