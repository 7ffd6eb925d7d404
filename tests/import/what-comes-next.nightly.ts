// Guidance printed during an import: its state, the messages of the service, and the next command.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import type { Rehearsal } from '#importer/stages/report/import-report.ts'
import { eventually } from '../support/eventually.ts'
import { ImportCommands } from '../support/import-command.ts'
import { type Pennon, startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { callCommand, mustSucceed, refusalOf } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

const keys = { PENNON_PERSONAL_KEY: testPersonalKey, PENNON_PROJECT_KEY: testProjectKey }

/** One event per day, of two persons. */
function linesOf(days: readonly string[], event = 'Paid'): string {
  return days
    .map(
      day => `${JSON.stringify({ id: `${event}-${day}`, event, user: `u-${day.at(-1)}`, at: `${day}T12:00:00Z` })}\n`,
    )
    .join('')
}

describe('guidance for the user of an import', () => {
  let pennon: Pennon
  let project: readonly string[]
  before(async () => {
    pennon = await startPennon()
    const { name } = await pennon.api<{ name: string }>('GET', '/api/projects/@current/')
    project = ['--project', name]
  })
  after(() => pennon.stop())

  async function planned(
    t: TestContext,
    text: string,
    settings: Readonly<Record<string, string>> = keys,
    options: readonly string[] = [],
  ) {
    const commands = new ImportCommands(tempDir(t), settings)
    const { stdout } = mustSucceed(
      await commands.plan(
        [commands.file('raw.jsonl', text)],
        ...['--host', pennon.url, '--project-key', testProjectKey, ...options],
      ),
    )
    const call = async (...args: [string, ...string[]]) => {
      const ended = await commands.call(...args)
      return ended.stdout + ended.stderr
    }
    const next = async () => /^Next: (.*)$/m.exec(await call('status'))?.[1] ?? ''
    return { commands, call, next, planText: stdout }
  }

  it('every step prints the next command and the job’s state in the service', async t => {
    const { commands, call, next, planText } = await planned(t, linesOf(['2024-05-01', '2024-05-02']))
    assert.match(planText, /^Next: pennon import run .*job \(rehearse it; nothing is sent\)$/m)
    assert.match(await next(), /^pennon import run .*\(rehearse it/)
    const asking =
      /^Next: (pennon import run .* --yes ([0-9a-f]{12})) \(.*after reading the report: pennon import report/m
    const [, command, hash] = asking.exec(await call('run'))!
    assert.ok((await next()).startsWith(`${command} (`))
    const sent = await call('run', '--yes', hash!)
    assert.match(sent, new RegExp(`^Approved as ${hash}\\.$.*^Next: pennon import publish `, 'ms'))
    const pending = await call('status')
    assert.match(pending, /^Import job \d+ in the service: pending; nothing is visible/m)
    assert.match(pending, /^Next: pennon import publish /m)
    const { stdout: alone } = await new ImportCommands(join(commands.job, '..'), {}).call('status')
    assert.match(alone, /^Import job \d+ in the service: state unknown: set PENNON_PERSONAL_KEY/m)
    assert.match(alone, /^Next: pennon import publish .*unless this was already done elsewhere/m)
    const published = await call('publish', ...project)
    assert.match(published, /^Published: .*^Done\. To undo it within 30 days: pennon import discard/ms)
    assert.match(published, /^No persons were compared, since the import has no person properties and no links\.$/m)
    const { stdout: silent } = await new ImportCommands(join(commands.job, '..'), {}).call('status')
    assert.match(silent, /^Done\. To undo it within 30 days: pennon import discard /m)
    assert.match(await call('status'), /in the service: published 20.*can be undone until 20\d\d-\d\d-\d\d\.$/m)
    assert.equal(await next(), '', 'discard is never suggested as the next step')
    const page = () => readFileSync(join(commands.job, 'report.html'), 'utf8')
    const publishedReport = await call('report')
    assert.match(publishedReport, /^As a web page: .*job\/report\.html\nDone\. /m)
    for (const each of [publishedReport, page()]) assert.match(each, /The import was published at 20\d\d-[^;]+;/)
    assert.match(publishedReport, new RegExp(`^Sent to ${project[1]} on http.*: 2 of 2 events, `, 'm'))
    const again = await call('run')
    assert.match(again, /is published, so nothing more is sent\. To undo it: pennon import discard /)
    const repaired = commands.file('repaired.jsonl', '{}\n')
    const retried = await call('retry', '--rejects', repaired)
    assert.match(
      retried,
      /is published, so nothing more is sent\. .*discard .*\. Repaired records can be imported separately/,
    )
    assert.ok(!existsSync(join(commands.job, 'retry')), 'rejects that are not sent are not stored')
    assert.match(
      await call('status'),
      /^Sent to .*: 2 of 2 events, .*\nThe stored events match the sent ones/m,
      'the result of the verification is kept',
    )
    assert.match(
      await call('run', '--max-reject-share', '7%'),
      /has been published since, so there is nothing to approve/,
    )
    assert.equal(
      JSON.parse((await commands.call('status', '--json')).stdout).next,
      null,
      'no next command, so that scripts do not discard the job',
    )
    const taken = await call('discard', ...project)
    assert.match(
      taken,
      /^Discarded import job \d+: its 2 events were removed\.\nEvents that were also sent by another import .* remain visible\.\nAll its changes .* are undone\.\nNext: /m,
    )
    for (const each of [await call('report'), page()]) assert.match(each, /The import was discarded at 20/)
    const discarded = await call('status')
    assert.match(discarded, /in the service: discarded 20.*\nNothing is running\.$/m)
    assert.doesNotMatch(discarded, /pennon import discard/, 'a discarded job cannot be discarded again')
    assert.match(await call('retry', '--rejects', repaired), /is discarded, so nothing more is sent\./)
    const late = refusalOf(await commands.call('publish', ...project))
    assert.match(late, /was discarded, so there is nothing to publish\. Next: /)
    const states = JSON.parse((await commands.call('status', '--json')).stdout) as {
      service: { state: string }
      next: { command: string }
    }
    assert.equal(states.service.state, 'discarded')
    assert.match(states.next.command, /^pennon import plan /)
  })

  it('publishing warns when persons were erased during the import, and --unverified publishes the rest', async t => {
    const { commands, call } = await planned(t, linesOf(['2024-09-01', '2024-09-02'], 'Borrowed'))
    await call('run')
    commands.approve()
    await call('run')
    await pennon.post('/capture/', { api_key: testProjectKey, event: 'Seen', distinct_id: 'u-1' })
    await pennon.caughtUp()
    const persons = '/api/projects/@current/persons'
    await pennon.api('POST', `${persons}/bulk_delete/`, { distinct_ids: ['u-1'], delete_events: true })
    await eventually(async () => {
      const { results } = await pennon.api<{ results: { status: string }[] }>('GET', `${persons}/deletion_status/`)
      return results[0]!.status === 'completed'
    })
    const refused = await call('publish', ...project)
    assert.match(refused, /has 1 event of the import, and had 2 when .*: persons may have been erased since/)
    const compared = refusalOf(await commands.call('run'))
    assert.match(
      compared,
      /differ .*: 2024-09-01, Borrowed: 1 expected, 0 stored\. 1 row gone: persons were erased .*publish .*--unverified publishes the rest/,
    )
    assert.match(await call('publish', ...project, '--unverified'), /^Published: /m)
    await call('discard', ...project)
  })

  it('the rehearsal shows what the project already has on the same days, and which event names are new', async t => {
    const first = await planned(t, linesOf(['2024-06-01', '2024-06-02'], 'Rented'))
    const untouched = await first.call('run')
    assert.doesNotMatch(untouched, /overlap|has no events yet with these names/)
    await first.call('run', ...(await first.commands.yes()))
    const waiting = await planned(t, linesOf(['2024-06-02', '2024-06-03', '2024-06-04'], 'Returned'))
    assert.match(
      await waiting.call('run'),
      /Other import jobs that are not yet published .*generic 2024-06-01 to 2024-06-02, pending/,
    )
    await first.call('publish', ...project)
    await pennon.post('/capture/', {
      ...{ api_key: testProjectKey, event: 'Seen live', distinct_id: 'ada', timestamp: '2024-06-03T01:00:00Z' },
    })
    await pennon.caughtUp()
    const rehearsalText = await waiting.call('run', '--rehearse-again')
    assert.match(rehearsalText, /already has 1 live event on 1 day of this import \(2024-06-03\)\./)
    assert.match(
      rehearsalText,
      /already has 1 imported event on 1 day of this import \(2024-06-02\), from the import job \d+\./,
    )
    assert.match(rehearsalText, /no events yet with these names: "Returned"/)
    const report = JSON.parse(await waiting.call('report', '--json')) as Rehearsal
    const answer = report.targetAnswer!
    assert.ok('overlap' in answer)
    assert.deepEqual(
      answer.overlap.map(({ day, live, imported }) => [day, live, imported]),
      [
        ['2024-06-02', 0, 1],
        ['2024-06-03', 1, 0],
      ],
    )
    assert.match(await waiting.call('report'), /^2024-06-02 +1 +0 +1 +\d+$/m)
    await first.call('discard', ...project)
  })

  it('a rehearsal stops before approval when the project would refuse events for their age, and names --accept-old', async t => {
    const settings = '/api/projects/@current/'
    const dropsOlder = (seconds: number) => pennon.api('PATCH', settings, { drop_events_older_than_seconds: seconds })
    const late = await planned(t, linesOf(['2024-08-01']))
    await late.call('run')
    late.commands.approve()
    await dropsOlder(864_000)
    t.after(() => dropsOlder(0))
    const refused = await late.call('run')
    assert.match(refused, /answers 409 .* Nothing was sent\. .*: pennon import plan .* … --accept-old; or set/)
    assert.match(await late.next(), /^pennon import plan .* … --accept-old /)
    const early = await planned(t, linesOf(['2024-08-01']))
    const stopped = await early.call('run')
    assert.match(stopped, /older than 10 days .* the service will refuse the import\. At least 1 event is older\./)
    assert.match(await early.call('report'), /the service will refuse the import/)
    assert.match(await early.call('status'), /^Not approved\.$/m)
    const accepting = await planned(t, linesOf(['2024-08-01']), keys, ['--accept-old'])
    await accepting.call('run')
    assert.match(
      await accepting.call('run', ...(await accepting.commands.yes())),
      /--accept-old: The project accepts events so old .*^Approved as .*^Next: pennon import publish /ms,
    )
    await accepting.call('discard', ...project)
  })

  it('without a personal key, the report says what could not be checked and how to check it', async t => {
    const { call, planText } = await planned(t, linesOf(['2024-07-01']), {})
    assert.match(planText, /PENNON_PERSONAL_KEY is not set\..*Sending requires a key with the scopes import_job:write/)
    await call('run')
    assert.match(await call('report'), /The target was not queried .* set PENNON_PERSONAL_KEY .*--rehearse-again/)
  })

  it('a key without the scope for sending is named, with advice to use another key', async t => {
    const { commands, call } = await planned(t, linesOf(['2024-09-01']))
    await call('run')
    commands.approve()
    const [name, scopes] = ['looks only', ['project:read', 'query:read', 'import_job:read', 'person:read']]
    const { value } = await pennon.api<{ value: string }>('POST', '/api/personal_api_keys/', { label: name, scopes })
    const looking = new ImportCommands(join(commands.job, '..'), { PENNON_PERSONAL_KEY: value })
    assert.match((await looking.call('run')).stderr, /answers 403 to .*needs the scopes import_job:write/)
    const { next } = JSON.parse((await looking.call('status', '--json')).stdout) as {
      next: { command: null; why: string }
    }
    assert.equal(next.command, null)
    assert.match(
      next.why,
      /^set PENNON_PERSONAL_KEY to a key with the scopes import_job:write.*, then pennon import run \S*job$/,
    )
    assert.match(await call('run'), /^Next: pennon import publish /m)
    await call('discard', ...project)
  })

  it('`import list` shows all import jobs of the project and the days that the jobs cover', async t => {
    const jobs = [
      { range: { first: '2023-01-01T00:00:00Z', last: '2023-01-31T23:00:00Z' } },
      { range: { first: '2023-01-30T00:00:00Z', last: '2023-02-10T23:00:00Z' } },
    ]
    const made: number[] = []
    for (const plan of jobs) {
      const body = { source: 'mixpanel', name: 'Two <b>winters', plan }
      made.push((await pennon.api<{ number: number }>('POST', '/api/projects/@current/import_jobs/', body)).number)
    }
    // Anyone with permission to write imports can store any text here.
    for (const range of [{ first: '2023-13-41', last: '2024-99-99' }, { first: '9999-12-31', last: '0001-01-01' }, 7]) {
      const body = { source: 'mixpanel', name: 'No days', plan: { range } }
      made.push((await pennon.api<{ number: number }>('POST', '/api/projects/@current/import_jobs/', body)).number)
    }
    const settings = { PENNON_PERSONAL_KEY: testPersonalKey }
    const { stdout, exitCode, stderr } = await callCommand(settings, 'import', 'list', '--host', pennon.url)
    assert.equal(exitCode, 0, stderr)
    const [first, second] = made
    assert.match(stdout, new RegExp(`^ *${second} +planned +mixpanel +2023-01-30 +2023-02-10 .*Two <b>winters$`, 'm'))
    assert.match(stdout, new RegExp(`^2023-01-01 +2023-01-29 +29 +job ${first} \\(planned\\)$`, 'm'))
    assert.match(
      stdout,
      new RegExp(`^2023-01-30 +2023-01-31 +2 +jobs ${first} \\(planned\\), ${second} \\(planned\\)$`, 'm'),
    )
    assert.match(refusalOf(await callCommand({}, 'import', 'list', '--host', pennon.url)), /scope import_job:read/)
    for (const id of made) await pennon.api('POST', `/api/projects/@current/import_jobs/${id}/discard/`)
    t.diagnostic(stdout)
  })

  it('a script is never asked for input', async t => {
    const commands = new ImportCommands(tempDir(t), keys)
    const raw = commands.file('raw.jsonl', linesOf(['2024-05-01']))
    const stderr = refusalOf(await callCommand(keys, 'import', 'plan', commands.job, raw))
    assert.match(stderr, /--source is one of .*mixpanel/)
  })
})
