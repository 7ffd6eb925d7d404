import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { generic } from '#importer/sources/generic/generic.ts'
import { type ImportReport, readRehearsal, type Verification } from '#importer/stages/report/import-report.ts'
import { createReportSections } from '#importer/stages/report/report-sections.ts'
import { jobOf, type TestJob } from '../../../tests/support/import-job.ts'
import { JobState } from '../job/job-state.ts'
import { createCheckpoint, createPartProgress, putCheckpoint, type SendCounts } from '../send/checkpoint.ts'
import { type RetryOutcomes, storeRetryOutcomes } from '../send/retry-outcomes.ts'
import { storeEnding, storeServiceJob } from '../send/service-job.ts'
import { readSentSummary, storePersonsCheck, updateReport } from './sent-summary.ts'
import { storeVerification } from './verify-stage.ts'

const identity = { jobId: 'j', serviceJobId: '7', target: 'http://pennon', project: '1', mappingSha256: '' }
const verification: Verification = {
  ...{ v: 1, verified_at: '', ok: true, expected_rows: 3, stored_rows: 3, checks: [], notes: [] },
}
const target = { address: 'http://pennon', projectKey: 'phc', projectId: '1', projectName: 'Shop' }
const paid = (user: string) => `{"event":"Paid","user":"${user}","at":"2024-05-01T00:00:00Z"}`

async function rehearsedJob(t: TestContext, lines: readonly string[]): Promise<TestJob> {
  const config = { mapping: { event: 'event', distinct_id: 'user', timestamp: 'at' } }
  const job = jobOf(t, [lines.map(line => `${line}\n`).join('')], generic, { config })
  const report = await job.report()
  job.folder.writeJson('report.json', { ...report, target })
  storeServiceJob(job.folder, { id: '7', secretId: 's', target: '', project: '1' })
  return job
}

/** Stores the checkpoint of a job that has sent this much. */
function sendPart({ folder }: TestJob, state: 'sending' | 'sent', counts: Partial<SendCounts>): void {
  const progress = createPartProgress('2024-05-01/0', '')
  Object.assign(progress.counts, counts)
  using stored = new JobState(folder)
  putCheckpoint(stored, { ...createCheckpoint(identity, ''), isSent: state === 'sent', parts: [progress] })
}

const section = (report: ImportReport | null, wanted: string) =>
  createReportSections(report!).find(({ title }) => title === wanted)

const linesOf = (report: ImportReport | null, title: string) => section(report, title)!.lines.join('\n')

describe('the report on the sent events', () => {
  it('counts repaired records by their new outcome, and notes that stored events have not been compared', async t => {
    const job = await rehearsedJob(t, [paid('u'), 'broken', 'too', 'as well'])
    sendPart(job, 'sent', { read: 4, records: 1, sent: 1, rejected: 3 })
    const before = readSentSummary(job.folder)!.balance
    assert.deepEqual([before.rejected, before.isBalanced], [3, true])
    const retried: RetryOutcomes = new Map([
      ['raw.jsonl:2:0', { kind: 'sent', events: 2, refused: 0 }],
      ['raw.jsonl:3:0', { kind: 'rejected', events: 0, refused: 0 }],
      ['raw.jsonl:4:0', { kind: 'skipped', events: 0, refused: 0 }],
      ['of no reject', { kind: 'sent', events: 1, refused: 0 }],
    ])
    storeRetryOutcomes(job.folder, retried)
    const after = { ...before, givingEvents: 2, skipped: 1, rejected: 1, fromRecords: 4, sent: 4 }
    const report = updateReport(job.folder, job.plan)
    assert.deepEqual(report!.sent!.balance, after)
    assert.equal(after.read, after.givingEvents + after.skipped + after.rejected + after.collapsed)
    assert.match(
      linesOf(report, 'What was sent'),
      /: 1 of 1 event, .*\n4 rejected records were retried, which sent 3 more events; 1 of them is still rejected\.\nThe stored events have not been compared/,
    )
    assert.deepEqual(section(report, 'Balance')!.tables[0]!.rows.slice(0, 4), [
      ['Records read', '4', '4'],
      ['Records that produce events', '1', '2'],
      ['Skipped', '0', '1'],
      ['Rejected', '3', '1'],
    ])
  })

  it('shows how much has been sent while the rest is still to be sent', async t => {
    const job = await rehearsedJob(t, [paid('u'), paid('v'), paid('w')])
    assert.equal(readSentSummary(job.folder), null)
    sendPart(job, 'sending', { read: 2, records: 2, sent: 2 })
    const report = updateReport(job.folder, job.plan)
    assert.match(
      linesOf(report, 'What was sent'),
      /^Sent to Shop on http:\/\/pennon, import job 7: 2 of 3 events, 0 refused, 0 charged\. The others are still to be sent\./,
    )
    assert.match(linesOf(report, 'Balance'), /^Every record is accounted for/)
    assert.equal(section(report, 'Verification'), undefined)
  })

  it('is reported as a defect if records are missing once everything is sent', async t => {
    const job = await rehearsedJob(t, [paid('u'), paid('v'), paid('w')])
    sendPart(job, 'sent', { read: 2, records: 2, sent: 2 })
    assert.match(linesOf(updateReport(job.folder, job.plan), 'Balance'), /do NOT balance/)
    sendPart(job, 'sent', { read: 3, records: 3, sent: 3 })
    assert.match(linesOf(updateReport(job.folder, job.plan), 'Balance'), /^Every record is accounted for/)
  })

  it('shows the verification, the comparison of persons, and whether the import was published or discarded', async t => {
    const job = await rehearsedJob(t, [paid('u'), paid('v'), paid('w')])
    sendPart(job, 'sent', { read: 3, records: 3, sent: 3 })
    const check = { name: 'random_events', state: 'equal', compared: 3, differences: [] } as const
    storeVerification(job.folder, {
      ...verification,
      checks: [check],
      notes: [{ reason: 'recent', count: 2, samples: [] }],
    })
    const at = '2026-01-15T00:00:00.000Z'
    const published = { serviceJobId: '7', how: 'publish', isDone: true, at } as const
    storeEnding(job.folder, { ...published, isDone: false })
    const begun = linesOf(updateReport(job.folder, job.plan), 'What was sent')
    assert.match(begun, /^Sent .*\nThe stored events match the sent ones: 3 unique events\.\n/)
    storeEnding(job.folder, published)
    storePersonsCheck(job.folder, { compared: 2, equal: 1, newer: 0, differences: ['v: differs'] })
    const report = updateReport(job.folder, job.plan)
    assert.match(linesOf(report, 'What was sent'), /^The import was published at 2026-01-15T[^\n]*30 days[^\n]*\nSent /)
    assert.deepEqual(
      section(report, 'Verification')!.tables.map(({ rows }) => rows),
      [
        [
          ['Random events, all fields', 'equal', '3', ''],
          ['Random persons, properties and ids', 'DIFFERS', '2', 'v: differs'],
        ],
        [['recent', '2', '2 recent events from the last 48 hours, stored like all others and not charged (recent).']],
      ],
    )
    storeEnding(job.folder, { ...published, how: 'discard' })
    assert.match(linesOf(updateReport(job.folder, job.plan), 'What was sent'), /^The import was discarded at 2026/)
    const page = readFileSync(job.folder.file('report.html'), 'utf8')
    assert.match(page, /<h2>What was sent<\/h2>\n<p>The import was discarded at 2026.*<h2>Before and after<\/h2>/s)
  })
})

it('the report shows the current limits, even if they were changed after the rehearsal', async t => {
  const records = Array.from({ length: 50 }, (_, id) => (id < 8 ? '{"event":"Paid"}' : paid(`u${id}`)))
  const job = await rehearsedJob(t, records)
  const text = () => readFileSync(job.folder.file('report.json'), 'utf8')
  const before = text()
  updateReport(job.folder, job.plan)
  assert.equal(text(), before, 'not written again')
  const plan = { ...job.plan, limits: { ...job.plan.limits, maxRejectShare: 0.3, allowsDamagedFiles: true as const } }
  updateReport(job.folder, plan)
  const { maxRejectShare, choices } = readRehearsal(job.folder)!
  assert.deepEqual([maxRejectShare, choices.length], [0.3, 1])
  const html = readFileSync(job.folder.file('report.html'), 'utf8')
  assert.match(html, /the job pauses above 30(?:\.0)? %/)
  assert.match(html, /--allow-damaged-files/)
  const changed = text()
  updateReport(job.folder, { ...plan, source: 'segment', limits: job.plan.limits })
  assert.equal(text(), changed, 'with another mapping, the rehearsal is repeated instead')
})

it('the pages of a report show only the most frequent of very many event names', async t => {
  const job = await rehearsedJob(t, [paid('u')])
  const span = { first: '2024-05-01T00:00:00.000Z', last: '2024-05-01T00:00:00.000Z' }
  const events = Array.from({ length: 10_000 }, (_, index) => ({ event: `name ${index}`, count: index, ...span }))
  const [table] = section({ ...readRehearsal(job.folder)!, events, sent: null }, 'Events')!.tables
  assert.equal(table!.rows.length, 500)
  assert.match(table!.caption, /9,500 more are in report\.json/)
})
