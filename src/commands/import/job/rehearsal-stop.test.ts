import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { explainSkip, findRejectFix } from '#importer/stages/reject-fixes.ts'
import type { Rehearsal } from '#importer/stages/report/import-report.ts'
import { limits } from '../../../../tests/support/import-job.ts'
import { findRehearsalStop, formatRehearsalStop } from './rehearsal-stop.ts'

const plan = { source: 'mixpanel', config: {}, limits: { ...limits, maxRejectShare: 0.05 } }
const damaged = { object: 'day.jsonl.gz', records: 1_234, line: 1_235, why: 'the gzip data is cut off' }
interface Given extends Partial<Rehearsal> {
  readonly read?: number
  readonly rejected: number
  readonly toSend?: number
  readonly isBalanced?: boolean
}
const textOf = (report: Given, given = plan) => {
  const { read = 100, rejected, toSend = read - rejected, isBalanced = true, ...more } = report
  const balance = { read, rejected, toSend, isBalanced }
  const none = { rejects: [], skips: [], damagedFiles: [], looksLike: null, targetAnswer: { notAsked: 'no target' } }
  const stop = findRehearsalStop({ balance, ...none, ...more } as unknown as Rehearsal, given, 'job')
  return stop && formatRehearsalStop(stop)
}

describe('a rehearsed job', () => {
  it('may be approved with a handful of rejects, or as many as its limit allows', () => {
    assert.equal(textOf({ rejected: 5 }, { ...plan, limits }), null)
    assert.match(textOf({ rejected: 6 }, { ...plan, limits })!, /^6\.0 % of the records are rejected; .* above 1\.0 %/)
    assert.equal(textOf({ rejected: 6 }, { ...plan, limits: { ...limits, maxRejectShare: 0.06 } }), null)
  })

  it('stops for a single reject if it is as long as many records', () => {
    const text = textOf({ rejected: 1, heldByRejects: 99 })!
    assert.match(text, /^The unreadable parts are as long as about 99 records, so 50 % of the records are rejected; /)
    assert.match(text, /--max-reject-share 50%$/)
  })

  it('names the share of rejects that would have to be allowed, and the likely cause', () => {
    const text = textOf({ rejected: 33 })!
    assert.match(
      text,
      /Fix the records, the mapping or the --source, and plan again, or allow more: .* --max-reject-share 33%$/,
    )
    assert.match(
      textOf({ rejected: 33, looksLike: 'segment' })!,
      /source segment\. .* Plan it with --source segment, or/,
    )
  })

  it('stops when it has no records, and does not suggest a mapping', () => {
    assert.equal(
      textOf({ read: 0, rejected: 0 }),
      'No event comes from the 0 records (0 are rejected), so there is nothing to send. Plan again with other files: pennon import plan job …',
    )
  })

  it('stops if it has no events, whatever its limit allows', () => {
    const all = { ...plan, limits: { ...limits, maxRejectShare: 1 } }
    assert.match(textOf({ rejected: 100 }, all)!, /^No event comes from the 100 records \(100 are rejected\)/)
    assert.match(textOf({ read: 1, rejected: 1 }, all)!, /^No event comes from the 1 record \(1 is rejected\)/)
  })

  it('names the most frequent reason of rejects, with the option that mends it', () => {
    const reasons = (['timestamp_zone_unknown', 'json_syntax'] as const).map((reason, index) => {
      const fix = findRejectFix(reason, 'mixpanel')
      return { reason, count: 90 - index * 80, fix, fields: [], files: [], examples: [] }
    })
    const mended =
      / 90 are rejected as timestamp_zone_unknown: The time has no zone\. .*--source-timezone Europe\/Berlin/
    assert.match(textOf({ rejected: 100, rejects: reasons })!, mended)
    const some = textOf({ read: 200, rejected: 100, rejects: reasons })!
    assert.match(some, mended)
    assert.doesNotMatch(some, /json_syntax/)
  })

  it('explains why recent rows of Google Analytics are skipped', () => {
    const fix = explainSkip('filtered', 'ga4')
    const skips = [{ reason: 'filtered', count: 20, fix, fields: [], files: [], examples: [] }]
    assert.equal(
      textOf({ read: 20, rejected: 0, toSend: 0, skips }),
      'No event comes from the 20 records (0 are rejected), so there is nothing to send. ' +
        '20 are skipped as filtered: from a day that began less than settle_days ago (default 4), whose table still changes; import them when they are older, or set settle_days. ' +
        'See what is wrong: pennon import report job. ' +
        'Plan again with other files: pennon import plan job …',
    )
  })

  it('stops if its counts do not add up to the number of records', () => {
    assert.match(
      textOf({ rejected: 0, isBalanced: false })!,
      /^The counts of the rehearsal do not add up, .* report job\. Please/,
    )
  })

  it('stops for even a few damaged files, unless they are allowed', () => {
    const files = [damaged, ...Array.from({ length: 4 }, () => damaged)]
    const text = textOf({ rejected: 1, damagedFiles: [damaged] })!
    assert.match(text, /^day\.jsonl\.gz is damaged in line 1,235 \(the gzip data is cut off\): 1,234 records were/)
    assert.match(text, /Download it again and plan again: .*; or .*: pennon import run job --allow-damaged-files$/)
    assert.match(textOf({ rejected: 5, damagedFiles: files })!, / and 2 more Download them again/)
    const allowed = { ...plan, limits: { ...limits, allowsDamagedFiles: true as const } }
    assert.equal(textOf({ rejected: 1, damagedFiles: [damaged] }, allowed), null)
  })

  it('stops if the project refuses old events, unless the plan accepts them', () => {
    const targetAnswer = { askedAt: '2026-01-15T00:00:00Z', dropsLiveOlderThanSeconds: 7_200 }
    const days = [{ day: '2024-05-01', count: 2, events: {} }]
    const report = { rejected: 0, days, targetAnswer } as unknown as Given
    assert.equal(
      textOf(report),
      'The project drops events that are older than 2 hours (drop_events_older_than_seconds), and the plan does not accept them, so the service will refuse the import. At least 2 events are older. ' +
        'To import them anyway, plan again: pennon import plan job … --accept-old; or set drop_events_older_than_seconds of the project to 0 and run: pennon import run job --rehearse-again',
    )
    assert.equal(textOf(report, { ...plan, limits: { ...plan.limits, acceptsOld: true } }), null)
  })
})
