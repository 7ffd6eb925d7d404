import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { generic } from '#importer/sources/generic/generic.ts'
import { TestJob } from '../../../tests/support/import-job.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { createCheckpoint, createProgress } from '../send/checkpoint.ts'
import type { RetryOutcomes } from '../send/retry-outcomes.ts'
import type { Ending } from '../send/service-job.ts'
import type { ExpectedEvents } from './expected-events.ts'
import { createFinalSections, createSentSoFarSection, writeFinalReport } from './final-pages.ts'
import { createFinalReport, type FinalReport, updateRepairedReport } from './final-report.ts'
import type { Verification } from './verify-stage.ts'

const identity = {
  ...{ jobId: 'j', serviceJobId: '7', target: 'http://pennon', project: '1' },
  ...{ approvalSha256: '', mappingSha256: '' },
}
const verification: Verification = {
  ...{ v: 1, verified_at: '', ok: true, expected_rows: 0, stored_rows: 0, checks: [], notes: [] },
}

const nothing: ExpectedEvents = {
  ...{ rows: 0, counts: new Map(), otherCounts: new Map(), idBuckets: [], names: new Map(), samples: [] },
  ...{ links: 0, groups: 0 },
}

async function rehearsedJob(t: TestContext, lines: readonly string[]) {
  const config = { mapping: { event: 'event', distinct_id: 'user', timestamp: 'at' } }
  const raw = join(tempDir(t), 'raw.jsonl')
  writeFileSync(raw, lines.map(line => `${line}\n`).join(''))
  const job = new TestJob(tempDir(t), generic, [raw], { config })
  await job.stage()
  await job.scan()
  return { job, rehearsal: await job.rehearse() }
}

const paid = (user: string) => `{"event":"Paid","user":"${user}","at":"2024-05-01T00:00:00Z"}`

describe('the balance of a final report', () => {
  const balanceOf = (report: FinalReport) =>
    createFinalSections(report)
      .find(({ title }) => title === 'Balance')!
      .lines.join('\n')

  async function sentReport(t: TestContext, phase: 'send' | 'sent', given: number, read = given): Promise<FinalReport> {
    const { job, rehearsal } = await rehearsedJob(t, [paid('u'), paid('v'), paid('w')])
    const checkpoint = { ...createCheckpoint(identity, 0, ''), phase }
    const progress = createProgress('2024-05-01/0', '')
    progress.counts = { ...progress.counts, read, records: given, sent: given }
    checkpoint.parts.push(progress)
    return createFinalReport({ folder: job.folder, checkpoint, rehearsal, verification, expected: nothing })
  }

  it('counts repaired records by their new outcome, both at once and after the next comparison', async t => {
    const { job, rehearsal } = await rehearsedJob(t, [paid('u'), 'broken', 'too', 'as well'])
    const checkpoint = { ...createCheckpoint(identity, 0, ''), phase: 'sent' as const }
    const progress = createProgress('2024-05-01/0', '')
    progress.counts = { ...progress.counts, read: 4, records: 1, sent: 1, rejected: 3 }
    checkpoint.parts.push(progress)
    const parts = { folder: job.folder, checkpoint, rehearsal, verification, expected: nothing }
    const { balance: before } = writeFinalReport(parts)
    const retried: RetryOutcomes = new Map([
      ['raw.jsonl:2:0', { kind: 'sent', events: 2, refused: 0 }],
      ['raw.jsonl:3:0', { kind: 'rejected', events: 0, refused: 0 }],
      ['raw.jsonl:4:0', { kind: 'skipped', events: 0, refused: 0 }],
      ['of no reject', { kind: 'sent', events: 1, refused: 0 }],
    ])
    const after = { ...before, givingEvents: 2, skipped: 1, rejected: 1, fromRecords: 4, sent: 4, isBalanced: true }
    assert.deepEqual([before.rejected, before.isBalanced], [3, true])
    const repaired = updateRepairedReport(job.folder, checkpoint, retried)!
    const compared = createFinalReport({ ...parts, retried })
    for (const report of [repaired, compared]) assert.deepEqual(report.balance, after)
    const lines = (report: FinalReport) => createFinalSections(report).flatMap(({ lines }) => lines)
    const upToDate = 'The stored events match the sent ones.'
    assert.deepEqual([lines(repaired).includes(upToDate), lines(compared).includes(upToDate)], [false, true])
    assert.ok(lines(repaired).includes('The stored events have not been compared since then.'))
    assert.equal(after.read, after.givingEvents + after.skipped + after.rejected + after.collapsed)
  })

  it('covers the records sent so far while the rest is still to be sent', async t => {
    const report = await sentReport(t, 'send', 2)
    assert.equal(report.balance.isBalanced, false)
    assert.match(balanceOf(report), /^2 of 3 events are sent so far, of 2 of 3 records\. .*accounted for; the others/)
  })

  it('is reported as a defect if records are missing from the part sent so far, or from the whole', async t => {
    for (const report of [await sentReport(t, 'send', 1, 2), await sentReport(t, 'sent', 2)])
      assert.match(balanceOf(report), /do NOT balance/)
  })

  it('is complete once everything is sent', async t => {
    const report = await sentReport(t, 'sent', 3)
    assert.equal(report.balance.isBalanced, true)
    assert.match(balanceOf(report), /^Every record and every event is accounted for\.$/)
  })
})

it('the pages of a report say whether the import was published or discarded, and how much of it was sent', async t => {
  const { job, rehearsal } = await rehearsedJob(t, [paid('u'), paid('v')])
  const target = { address: 'http://pennon', projectId: '1', projectName: 'Shop' }
  const checkpoint = { ...createCheckpoint(identity, 0, ''), phase: 'sent' as const }
  const report = createFinalReport({
    ...{ folder: job.folder, checkpoint, verification, expected: nothing },
    rehearsal: { ...rehearsal, target },
  })
  const linesWith = (ending: Ending | null) => createFinalSections(report, ending)[0]!.lines.join('\n')
  const at = '2026-01-15T00:00:00.000Z'
  const published = { serviceJobId: '7', how: 'publish', isDone: true, at } as const
  const discarded = { ...published, how: 'discard' } as const
  assert.match(linesWith(null), /^0 events were sent to Shop on http:\/\/pennon, import job 7\./)
  assert.equal(linesWith({ ...published, isDone: false }), linesWith(null))
  assert.match(linesWith(published), /^The import was published at 2026-01-15T[^\n]*30 days[^\n]*\n0 events were sent/)
  assert.match(linesWith(discarded), /^The import was discarded at 2026.*The stored events matched the sent ones\./s)
  const soFar = (ending: Ending | null) =>
    createSentSoFarSection({ events: 1, isAll: false }, rehearsal, ending).flatMap(({ lines }) => lines)
  assert.match(soFar(null).join(), /^1 of 2 events were sent so far; the others are still to be sent\./)
  assert.match(soFar(discarded).join(), /^The import was discarded .*1 of 2 events were sent so far\. Below/)
  assert.deepEqual(createSentSoFarSection(null, rehearsal, null), [])
})

it('the pages of a final report show only the most frequent of very many event names', async t => {
  const { job, rehearsal } = await rehearsedJob(t, [paid('u')])
  const span = { first: '2024-05-01T00:00:00.000Z', last: '2024-05-01T00:00:00.000Z' }
  const names = Array.from({ length: 10_000 }, (_, index) => [`name ${index}`, { count: index, ...span }] as const)
  const expected: ExpectedEvents = { ...nothing, names: new Map(names) }
  const checkpoint = createCheckpoint(identity, 0, '')
  const report = createFinalReport({ folder: job.folder, checkpoint, rehearsal, verification, expected })
  assert.equal(report.events.length, 10_000)
  const [table] = createFinalSections(report).find(({ title }) => title === 'Events')!.tables
  assert.equal(table!.rows.length, 500)
  assert.deepEqual(table!.rows[0]!.slice(0, 3), ['name 9999', '', '9,999'])
  assert.match(table!.caption, /9,500 more are in report\.json/)
})
