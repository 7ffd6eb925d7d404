// Ctrl-C during an import command whose service is unreachable: each command exits with the way to continue, and claims
// nothing untrue.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { JobFolder } from '#importer/job/job-folder.ts'
import { storeServiceJob } from '#importer/send/service-job.ts'
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { ImportCommands } from '../support/import-command.ts'
import { serve } from '../support/local-server.ts'
import { refusalOf } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

const line = `${JSON.stringify({ id: 'r', event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z' })}\n`
const keys = { PENNON_PERSONAL_KEY: `phx_${'a'.repeat(30)}` }

/** An approved job whose service answers with `answer`; without it, the service is gone. */
async function approved(t: TestContext, answer?: RequestListener, text = line) {
  const folder = tempDir(t)
  const planning = new ImportCommands(folder)
  const welcoming: RequestListener = (_, response) => void response.end('{}')
  let current = welcoming
  const url = await serve(t, (request, response) => current(request, response))
  await planning.plan([planning.file('raw.jsonl', text)], '--host', url, '--project-key', 'phc_a')
  await planning.call('run')
  planning.approve()
  current = answer ?? (request => void request.socket.destroy())
  const commands = new ImportCommands(folder, keys)
  const serviceJob = { id: '7', secretId: '70', target: url, project: '1' }
  storeServiceJob(new JobFolder(commands.job), serviceJob)
  return commands
}

async function interrupted(commands: ImportCommands, isWaiting: RegExp, command: string, ...options: string[]) {
  const { child, ended } = commands.start(command, ...options)
  const shown = collectText(child.stdout!, child.stderr!)
  const progress = async () => shown() + (await commands.call('status')).stdout
  await eventually(async () => child.exitCode !== null || isWaiting.test(shown()) || isWaiting.test(await progress()))
  child.kill('SIGINT')
  return ended
}

describe('Ctrl-C during an import whose service is unreachable', () => {
  it('Ctrl-C pauses a run that waits for the service, and prints how to continue', async t => {
    const commands = await approved(t)
    const { exitCode, stderr } = await interrupted(commands, /no connection/, 'run')
    assert.equal(exitCode, 130, stderr)
    assert.match(stderr, /^pennon: paused\. Progress is kept\. To continue: pennon import run .*$/m)
    assert.doesNotMatch(stderr, /AbortError| at /)
    assert.match((await commands.call('status')).stdout, /^Last run: paused\. Progress is kept/m)
  })

  it('pausing a run reports to the service at once how much was sent', async t => {
    const reportedProgress: unknown[] = []
    let batches = 0
    const answer: RequestListener = (request, response) => {
      const path = request.url!
      let body = ''
      request.on('data', chunk => {
        body += chunk
      })
      request.on('end', () => {
        if (request.method === 'PATCH') reportedProgress.push(JSON.parse(body).progress)
        // The second batch gets no answer, so the run is paused while it waits.
        if (path.startsWith('/batch') && ++batches > 1) return
        if (path.startsWith('/batch')) response.end(JSON.stringify({ status: 'Ok', accepted: 1, failed_records: [] }))
        else if (path.includes('/query')) response.end(JSON.stringify({ results: [] }))
        else response.end(JSON.stringify({ state: 'sending' }))
      })
    }
    // Links go in a batch before the events.
    const commands = await approved(t, answer, line.replace('"user"', '"device":"d-1","user"'))
    const { child, ended } = commands.start('run')
    await eventually(() => child.exitCode !== null || batches > 1)
    child.kill('SIGINT')
    const { exitCode, stderr } = await ended
    assert.equal(exitCode, 130, stderr)
    assert.partialDeepStrictEqual(reportedProgress.at(-1), { sent: 1, paused: true })
  })

  for (const [state, message] of [
    ['discarded', /^pennon: import job 7 is discarded, so nothing more is sent\. .*: pennon import plan$/m],
    ['sending', /^pennon: http\S+ answers 409 to a batch: closed\. Next: pennon import status \S+job$/m],
  ] as const)
    it(`a job that takes no more events while it is sent and is then ${state} names the next command`, async t => {
      let isSending = false
      const commands = await approved(t, (request, response) => {
        if (request.url!.startsWith('/batch')) {
          isSending = true
          response.writeHead(409).end(JSON.stringify({ detail: 'closed' }))
        } else if (request.url!.includes('/query')) response.end(JSON.stringify({ results: [] }))
        else response.end(JSON.stringify({ state: isSending ? state : 'sending' }))
      })
      assert.match(refusalOf(await commands.call('run')), message)
    })

  for (const how of ['publish', 'discard'])
    it(`Ctrl-C while ${how} waits for the service says that nothing was requested`, async t => {
      const commands = await approved(t)
      const { exitCode, stderr } = await interrupted(
        commands,
        /^waiting: no connection/m,
        how,
        ...(how === 'publish' ? ['--unverified'] : []),
      )
      assert.equal(exitCode, 130, stderr)
      assert.match(stderr, new RegExp(`canceled. Nothing was changed. To ${how}: .*import ${how} `))
    })

  it('Ctrl-C after the service has accepted the request says that the service continues by itself', async t => {
    let state = 'pending'
    const commands = await approved(t, (request, response) => {
      if (request.method === 'POST') state = 'discarding'
      response.end(JSON.stringify({ state, step: 'clearing' }))
    })
    const url = (await commands.call('status', '--json')).stdout
    const { target } = JSON.parse(url) as { target: { address: string } }
    const { exitCode, stderr } = await interrupted(commands, /clearing up/, 'discard', '--project', target.address)
    assert.equal(exitCode, 130, stderr)
    assert.match(stderr, /no longer waiting\. The service continues/)
    const alone = new ImportCommands(join(commands.job, '..'))
    assert.match((await alone.call('status')).stdout, /^Next: pennon import discard .*wait until the service is done/m)
  })

  it('Ctrl-C during an unanswered request says that its outcome is unknown', async t => {
    const commands = await approved(t, (request, response) => {
      if (request.method === 'POST') request.socket.destroy()
      else response.end(JSON.stringify({ state: 'pending', step: null }))
    })
    const { target } = JSON.parse((await commands.call('status', '--json')).stdout) as { target: { address: string } }
    const options = ['--project', target.address]
    const { exitCode, stderr } = await interrupted(commands, /^waiting: no connection/m, 'discard', ...options)
    assert.equal(exitCode, 130, stderr)
    assert.match(stderr, /has not confirmed the request to discard.*pennon import status/)
  })

  for (const name of ['SIGINT', 'SIGTERM'] as const)
    it(`${name} ends a run whose disk does not respond`, async t => {
      const commands = new ImportCommands(tempDir(t))
      const raw = commands.file('raw.jsonl', line)
      await commands.plan([raw])
      // Opening a pipe for reading blocks until a writer opens it.
      rmSync(raw)
      execFileSync('mkfifo', [raw])
      const { child, ended } = commands.start('run')
      await eventually(async () => /the hashes of the files/.test((await commands.call('status')).stdout))
      child.kill(name)
      const { stderr } = await ended
      assert.deepEqual([child.exitCode, child.signalCode], [null, 'SIGINT'], stderr)
      assert.match(stderr, /^pennon: paused\. Progress is kept\. To continue: pennon import run /m)
    })

  it('Ctrl-C ends a plan whose instance does not answer', async t => {
    let isAsked = false
    const url = await serve(t, () => {
      isAsked = true
    })
    const commands = new ImportCommands(tempDir(t))
    const raw = commands.file('raw.jsonl', line)
    const { child, ended } = commands.start(
      'plan',
      raw,
      '--source',
      'mixpanel',
      '--host',
      url,
      '--project-key',
      'phc_a',
    )
    await eventually(() => isAsked || child.exitCode !== null)
    child.kill('SIGINT')
    const { exitCode, stderr } = await ended
    assert.equal(exitCode, 130)
    assert.match(stderr, /^pennon: canceled; nothing was planned\. To plan it: pennon import plan .*\n$/)
  })
})

it('every command refuses a file in place of the import folder, and names a remedy', async t => {
  const commands = new ImportCommands(tempDir(t))
  commands.file('job', line)
  const fixed = commands.file('fixed.jsonl', line)
  for (const [command, ...options] of [
    ...['run', 'status', 'report', 'rejects', 'publish', 'discard'].map(name => [name]),
    ['retry', '--rejects', fixed],
    ['plan', fixed, '--source', 'mixpanel'],
    ['fetch', '--source', 'mixpanel', '--from', '2024-05-01', '--to', '2024-05-02'],
  ] as [string, ...string[]][]) {
    const stderr = refusalOf(await commands.call(command, ...options))
    assert.match(stderr, /^pennon: .* is a file, but an import needs a folder\. .* start a new one: pennon import/)
    assert.equal(stderr.trimEnd().split('\n').length, 1)
  }
})
