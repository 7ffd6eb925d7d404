import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import type { RehearsedInProject } from '#commands/import/run/rehearsal-project.ts'
import type { JsonObject } from '#core/json.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { writeJobState } from '#importer/job/job-state.ts'
import type { ImportReport, SentSummary } from '#importer/stages/report/import-report.ts'
import { readVerification, storeVerification } from '#importer/verify/verify-stage.ts'
import { ImportCommands, mapping, syntheticRecords } from '../support/import-command.ts'
import { serve } from '../support/local-server.ts'
import { type Pennon, startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { mustSucceed, refusalOf } from '../support/pennon-command.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

const count = async (pennon: Pennon): Promise<number> => {
  const query = { kind: 'HogQLQuery', query: 'SELECT count() FROM events' }
  const { results } = await pennon.api<{ results: [[number]] }>('POST', '/api/projects/@current/query/', { query })
  return results[0][0]
}

const recordsIn = (text: string): JsonObject[] =>
  text
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as JsonObject)

/** A proxy that records the batches and the job updates, in order. */
async function startWatcher(t: TestContext, target: string) {
  const asked: ('batch' | JsonObject)[] = []
  const url = await serve(t, async (request, response) => {
    const body = await buffer(request)
    if (request.url === '/batch/') asked.push('batch')
    if (request.method === 'PATCH') asked.push(JSON.parse(body.toString()) as JsonObject)
    const { host: _host, connection: _connection, 'content-length': _length, ...headers } = request.headers
    const answer = await fetch(`${target}${request.url}`, {
      method: request.method!,
      headers: headers as Record<string, string>,
      ...(body.length > 0 && { body: new Uint8Array(body) }),
    })
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' })
    response.end(await answer.text())
  })
  return { asked, url }
}

describe('an import into a running instance', () => {
  const pennon = startedForTests(startPennon)

  const approved = (t: TestContext, records: number, seed: number) => approvedOf(t, syntheticRecords(records, seed))

  async function approvedOf(t: TestContext, text: string, url = pennon.url) {
    const commands = new ImportCommands(tempDir(t), { PENNON_PERSONAL_KEY: testPersonalKey })
    const rules = commands.file('rules.json', JSON.stringify({ ...mapping, set: 'props' }))
    const options = ['--source', 'generic', '--mapping', rules, '--max-reject-share', '100%']
    const api: Pennon['api'] = (...args) => pennon.api(...args)
    const project = await commands.approved({ api, url }, [commands.file('raw.jsonl', text)], ...options)
    const run = async (...args: string[]) => {
      const ended = mustSucceed(await commands.call(...(args as [string])))
      return ended
    }
    return { commands, run, text, project }
  }

  async function retryAndVerify(
    commands: ImportCommands,
    run: (...args: string[]) => Promise<{ stdout: string }>,
    sentBefore: JsonObject,
  ): Promise<SentSummary> {
    const repaired = [
      { id: 'r-x', event: 'Repaired', user: 'u-x', at: '2024-01-05T00:00:00Z' },
      { id: 'r-y', user: 'u-x' },
      sentBefore,
    ]
    const fixed = commands.file('fixed.jsonl', repaired.map(record => `${JSON.stringify(record)}\n`).join(''))
    for (let time = 0; time < 2; time++) {
      const { exitCode, stdout, stderr } = await commands.call('retry', '--rejects', fixed)
      assert.match(
        stdout,
        /^3 records: 2 events sent, 1 record rejected.*\n {2}line 2: event_missing, event\. [^\n]*\n$/,
      )
      assert.match(
        stderr,
        /1 of them is still wrong\. Next: repair it in .*fixed\.jsonl, then pennon import retry .* --rejects \S*fixed\.jsonl \(/,
      )
      assert.equal(exitCode, 2)
    }
    const report = (JSON.parse((await run('run', '--json')).stdout) as ImportReport).sent!
    assert.ok(report.verification!.ok)
    assert.deepEqual(report.repaired, { read: 3, sent: 2, refused: 0, rejected: 1, skipped: 0 })
    return report
  }

  it('a job is sent and verified, is invisible until published, and leaves nothing when discarded', async t => {
    const { commands, run, text, project } = await approved(t, 3_000, 11)
    const report = (JSON.parse((await run('run', '--json', '--rate', '100000')).stdout) as ImportReport).sent!
    assert.deepEqual(
      report.verification!.checks.filter(({ state }) => state !== 'equal'),
      [],
    )
    assert.ok(report.balance.isBalanced && report.balance.sent > 2_000)
    assert.equal(report.verification!.stored_rows, report.verification!.expected_rows)
    assert.equal(await count(pennon), 0)
    const sentBefore = recordsIn(text).find(({ id, user }) => id !== undefined && user !== null)!
    const again = await retryAndVerify(commands, run, sentBefore)
    assert.equal(again.verification!.stored_rows, report.verification!.stored_rows + 1)
    const { stdout: status } = await run('status')
    assert.match(
      status,
      /\nSent to .*, import job \d+: \d,\d{3} of .*\nThe stored events match the sent ones: .*\nNext: pennon import publish/s,
    )
    assert.match(status, /^3 rejected records were retried, which sent 2 more events; 1 of them is still rejected\.$/m)
    assert.match(
      (await run('report')).stdout,
      /The stored events match the sent ones:.*Random events, all fields +equal/s,
    )
    const reportPath = join(commands.job, 'report.json')
    const written = readFileSync(reportPath, 'utf8')
    writeFileSync(reportPath, written.replace(/"toSend": \d+/, '"toSend": 1'))
    assert.match((await commands.call('publish', ...project)).stderr, /do not add up.*--unverified/)
    writeFileSync(reportPath, written)
    const folder = new JobFolder(commands.job)
    const verified = readVerification(folder)!
    storeVerification(folder, { ...verified, stored_rows: verified.stored_rows + 1 })
    assert.match((await commands.call('publish', ...project)).stderr, /restored to an earlier state.*import discard/)
    storeVerification(folder, verified)
    assert.match(
      (await run('publish', ...project)).stdout,
      /^Published.*\npublish: comparing persons.*\n50 persons at random: 50 match the import\./m,
    )
    assert.equal(await count(pennon), again.verification!.stored_rows)
    assert.match((await run('publish', ...project)).stdout, /is already published\.\nDone\./)
    writeJobState(folder, 'persons', null)
    assert.match(
      (await run('publish', ...project)).stdout,
      /is already published\.\npublish: comparing persons.*\n50 persons at random/,
      'a publish command that was interrupted compares persons when repeated',
    )
    await run('discard', ...project)
    assert.equal(await count(pennon), 0)
  })

  it('records repaired in two retries are counted once, and are shown as repaired among the rejects', async t => {
    const good = { id: 'r', event: 'Fixed', user: 'u-1', at: '2024-03-01T12:00:00Z' }
    const watcher = await startWatcher(t, pennon.url)
    const text = `${JSON.stringify(good)}\nbroken 1\nbroken 2\n`
    const { commands, run, project } = await approvedOf(t, text, watcher.url)
    await run('run', '--rate', '100000')
    const isVerified = (request: 'batch' | JsonObject) =>
      request !== 'batch' && 'verified_rows' in (request.progress as JsonObject)
    assert.ok(isVerified(watcher.asked.at(-1)!))
    watcher.asked.length = 0
    const fixed = join(dirname(commands.job), 'fixed.jsonl')
    const repair = async (count: number) => {
      const lines = (await run('rejects', '--json')).stdout.trimEnd().split('\n')
      const source = (line: number) => JSON.stringify({ ...good, id: `r-${line}`, at: `2024-03-0${line}T12:00:00Z` })
      const repaired = lines
        .map(line => JSON.parse(line) as { line: number })
        .map((reject, index) => (index < count ? { ...reject, source: source(reject.line) } : reject))
      writeFileSync(fixed, repaired.map(reject => `${JSON.stringify(reject)}\n`).join(''))
      return commands.call('retry', '--rejects', fixed)
    }
    const first = await repair(1)
    assert.equal(first.exitCode, 2)
    const [beforeBatch, batch] = watcher.asked
    assert.partialDeepStrictEqual(beforeBatch, { state: 'sending', progress: { sent: 1, rejected: 2 } })
    assert.ok(!isVerified(beforeBatch!), 'the earlier verification does not cover the job any more')
    assert.equal(batch, 'batch')
    assert.equal((first.stdout + first.stderr).match(/Next: /g)!.length, 1)
    assert.match((await run('rejects', '--group')).stdout, /^json_syntax: 2, of which 1 is repaired and sent$/m)
    const second = mustSucceed(await repair(2))
    const jobId = JSON.parse((await run('status', '--json')).stdout).service.id as string
    const jobPath = `/api/projects/@current/import_jobs/${jobId}/`
    const afterRetry = await pennon.api<{ progress: JsonObject; plan: JsonObject }>('GET', jobPath)
    assert.deepEqual([afterRetry.progress.sent, afterRetry.progress.rejected, afterRetry.progress.paused], [3, 0, true])
    assert.deepEqual(afterRetry.plan.range, { first: '2024-03-01T12:00:00.000Z', last: '2024-03-03T12:00:00.000Z' })
    assert.match(
      (await run('status')).stdout,
      /^Rehearsed: .* 2 records rejected, of which 2 are repaired and sent\.$/m,
    )
    assert.match(second.stdout, /^Next: pennon import run /m)
    const rejects = (await run('rejects')).stdout.trimEnd().split('\n')
    assert.deepEqual(
      rejects.map(line => line.includes(': repaired and sent; was json_syntax')),
      [true, true],
    )
    const runText = (await run('run')).stdout
    assert.match(
      runText,
      /^Sent to .*: 1 of 1 event, 0 refused, 0 charged\.\n2 rejected records were retried, which sent 2 more events\.\n/,
    )
    const { progress } = await pennon.api<{ progress: JsonObject }>(
      'GET',
      `/api/projects/@current/import_jobs/${jobId}/`,
    )
    assert.deepEqual([progress.sent, progress.rejected], [3, 0])
    assert.match(runText, /^The stored events match the sent ones: 3 unique events\.$/m)
    await run('discard', ...project)
  })

  it('verification accepts links and groups that keep the times of an earlier, wider import', async t => {
    const text = syntheticRecords(1_000, 14)
    const wide = await approvedOf(t, `${text}\n\n`)
    const { balance, serviceJobId } = (
      JSON.parse((await wide.run('run', '--json', '--rate', '100000')).stdout) as ImportReport
    ).sent!
    const listed = await pennon.api<{ progress: { records: number; sent: number } }>(
      'GET',
      `/api/projects/@current/import_jobs/${serviceJobId}/`,
    )
    const status = JSON.parse((await wide.run('status', '--json')).stdout)
    const recordCounts = [listed.progress.records, status.records, status.progress.recordsDone]
    assert.deepEqual(recordCounts, [balance.read, balance.read, balance.read])
    assert.deepEqual([listed.progress.sent, status.sent.balance.sent], [balance.sent, balance.sent])
    await wide.run('publish', ...wide.project)
    const narrow = await approvedOf(t, text.slice(text.indexOf('\n', text.length / 2) + 1))
    const report = (JSON.parse((await narrow.run('run', '--json', '--rate', '100000')).stdout) as ImportReport).sent!
    assert.ok(report.balance.generated > 10)
    assert.deepEqual(
      report.verification!.checks.flatMap(({ differences }) => differences),
      [],
    )
    await narrow.run('discard', ...narrow.project)
    await wide.run('discard', ...wide.project)
    assert.equal(await count(pennon), 0)
  })

  it('a rehearsal in another project is visible there, and does not change the target', async t => {
    const { run, commands } = await approved(t, 1_000, 13)
    const before = await count(pennon)
    const trying = await pennon.api<{ id: number; api_token: string }>('POST', '/api/projects/', { name: 'Trying' })
    const options = ['--rehearsal-project', trying.api_token, '--rate', '100000', '--json']
    await run('run', ...options)
    // Events of earlier rehearsals are no obstacle; events of others are.
    const { sent, share, name } = JSON.parse((await run('run', ...options)).stdout) as RehearsedInProject
    assert.ok(sent > 900 && share === 1 && name === 'Trying', String(sent))
    const query = { kind: 'HogQLQuery', query: 'SELECT count() FROM events' }
    const { results } = await pennon.api<{ results: [[number]] }>('POST', `/api/projects/${trying.id}/query/`, {
      query,
    })
    assert.deepEqual([results[0][0], await count(pennon)], [sent, before])
    await pennon.post('/capture/', { api_key: trying.api_token, event: 'live', distinct_id: 'someone' })
    await pennon.caughtUp()
    assert.match((await commands.call('run', ...options)).stderr, /Trying has events that do not come from a rehearsal/)
  })

  it('days with live events, or that the key cannot check, are refused unless --overlap-ok is given', async t => {
    const personUpdates = async () => {
      const commands = new ImportCommands(tempDir(t), { PENNON_PERSONAL_KEY: testPersonalKey })
      const options = ['--source', 'posthog', '--host', pennon.url, '--project-key', testProjectKey]
      const { stdout } = await commands.plan([commands.file('raw.jsonl', '{}')], ...options)
      const plan = JSON.parse(readFileSync(join(commands.job, 'plan.json'), 'utf8')) as { config: JsonObject }
      return [plan.config.strip_person_updates, stdout.includes('The project has live events, so $set')]
    }
    assert.deepEqual(await personUpdates(), [false, false])
    const atMs = Date.now() - 3_600_000
    const day = new Date(atMs).toISOString().slice(0, 10)
    await pennon.post('/capture/', {
      ...{ api_key: testProjectKey, event: 'live', distinct_id: 'someone' },
      timestamp: new Date(atMs).toISOString(),
    })
    await pennon.caughtUp()
    assert.deepEqual(await personUpdates(), [true, true])
    const record = { id: 'r', event: 'old', user: 'u', at: new Date(atMs).toISOString() }
    const { commands, project } = await approvedOf(t, `${JSON.stringify(record)}\n`)
    const refused = refusalOf(await commands.call('run'))
    assert.match(refused, new RegExp(`has live events on the same days \\(${day}\\).*--overlap-ok`))
    assert.match(
      (await commands.call('status')).stdout,
      /^Next: pennon import run .* --overlap-ok \(.*--hold-live-window/m,
    )

    const scopes = ['import_job:write', 'project:read', 'person:read']
    const { value } = await pennon.api<{ value: string }>('POST', '/api/personal_api_keys/', {
      label: 'narrow',
      scopes,
    })
    const narrow = new ImportCommands(dirname(commands.job), { PENNON_PERSONAL_KEY: value })
    const unseen = refusalOf(await narrow.call('run'))
    assert.match(unseen, /answered 403 to \/query\/\. The key in PENNON_PERSONAL_KEY lacks the scope query:read/)
    const unverified = await narrow.call('run', '--overlap-ok')
    assert.match(
      unverified.stderr,
      /WARNING: cannot check whether the project has live events .* lacks the scope query:read/,
    )
    assert.match(unverified.stderr, /lacks the scope 'query:read'.*needs the scopes/)
    const sent = mustSucceed(await commands.call('run', '--json'))
    const { checks } = (JSON.parse(sent.stdout) as ImportReport).sent!.verification!
    assert.equal(checks.find(check => check.name === 'live_data')!.state, 'not_checked')
    assert.equal((await commands.call('discard', ...project)).exitCode, 0)
  })

  it('verification accepts two records of one day with the same source id', async t => {
    const record = (at: string, event: string) => ({ id: 'same', event, user: 'u-same', at, props: { at } })
    const records = [
      ...['2023-05-01T12:00:00Z', '2023-05-01T12:01:00Z', '2023-05-02T12:00:00Z'].map(at => record(at, 'Paid')),
      record('2023-05-01T12:00:00Z', 'Refunded'),
    ]
    const { commands, project } = await approvedOf(t, records.map(each => `${JSON.stringify(each)}\n`).join(''))
    const ran = mustSucceed(await commands.call('run', '--json'))
    const verification = (JSON.parse(ran.stdout) as ImportReport).sent!.verification!
    assert.deepEqual([verification.ok, verification.stored_rows], [true, 3])
    assert.equal((await commands.call('discard', ...project)).exitCode, 0)
  })
})
