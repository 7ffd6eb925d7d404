// For every reason in docs/wire/import.md §2.6, a record provokes it in a rehearsal. It ends up in the reject file with its
// line, byte, field, text and fix, or is counted as skipped. The import continues, and every record is counted.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { sha256Hex } from '#importer/job/sha256.ts'
import type { RecordRejectReason, SkipReason } from '#importer/records/imported-event.ts'
import { findSource } from '#importer/sources/sources.ts'
import type { RejectLine } from '#importer/stages/reject-files.ts'
import { findRejectFix } from '#importer/stages/reject-fixes.ts'
import type { Rehearsal } from '#importer/stages/report/import-report.ts'
import { jobOf, rejectsOf, type TestJobOptions } from '../support/import-job.ts'

/** A record of a source file and its expected outcome. */
type Case = readonly [source: string | Buffer, outcome: Refused | Skipped | 'sent']
interface Refused {
  readonly reason: RecordRejectReason | `server_refused:${string}`
  readonly field: string | null
  readonly detail?: string | RegExp
}
interface Skipped {
  readonly skipped: SkipReason
}

const refused = (reason: Refused['reason'], field: string | null, detail?: string | RegExp): Refused => ({
  reason,
  field,
  ...(detail !== undefined && { detail }),
})
const seen = new Set<string>()
const good = { id: 'r', event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z' }
let nextId = 0
/** A valid record of the generic source, changed by the given fields. */
const line = (fields: object) => JSON.stringify({ ...good, id: `r-${nextId++}`, ...fields })
/** Before the job was planned. */
const hoursAgo = (hours: number) => new Date(Date.UTC(2026, 0, 15, -hours)).toISOString()

const mapping = {
  event: 'event',
  event_names: { Began: { skip: 'session_marker' } },
  distinct_id: 'user',
  timestamp: 'at',
  uuid: 'id',
  properties: 'props',
  filters: [{ field: 'of', op: 'ne', value: 'somebody else' }],
}
const genericCases: readonly Case[] = [
  [line({}), 'sent'],
  [gzipSync('{}', { level: 0 }).subarray(0, 9), refused('compressed_input', null, 'these are bytes of gzip')],
  [Buffer.from(line({ event: 'Größe' }), 'latin1'), refused('encoding_invalid_utf8', null)],
  [line({ props: { text: 'x'.repeat(1_000_001) } }), refused('record_too_large', null, /^an event of 10\d{5} bytes$/)],
  [line({ props: { text: 'y'.repeat(999_900) } }), refused('record_too_large', null, /^an event of 10\d{5} bytes$/)],
  ['{"event": "Paid",}', refused('json_syntax', null, /JSON/)],
  ['["Paid"]', refused('json_not_object', null)],
  [line({ props: 'none' }), refused('properties_not_object', 'props')],
  [line({ event: undefined }), refused('event_missing', 'event')],
  [line({ event: 5 }), refused('event_not_string', 'event')],
  [line({ event: 'x'.repeat(201) }), refused('event_name_too_long', 'event')],
  [line({ user: null }), refused('distinct_id_missing', 'user')],
  [line({ user: 'Undefined' }), refused('distinct_id_illegal', 'user')],
  [line({ user: 'x'.repeat(201) }), refused('distinct_id_too_long', 'distinct_id')],
  [line({ at: '' }), refused('timestamp_missing', 'at')],
  [line({ at: '2024-02-30T00:00:00Z' }), refused('timestamp_invalid', 'at')],
  [line({ at: '2024-05-01 12:00:00' }), refused('timestamp_zone_unknown', 'at')],
  [line({ at: 5 }), refused('timestamp_out_of_range', 'at')],
  [line({ at: hoursAgo(-2) }), refused('timestamp_future', 'at')],
  [line({ at: hoursAgo(47) }), refused('within_live_window', 'at')],
  [line({ at: '1971-06-01T00:00:00Z' }), refused('older_than_retention', 'timestamp', 'the target keeps 19,000 days')],
  [line({ props: { $cookieless_mode: 5 } }), refused('server_refused:invalid_cookieless_mode', '$cookieless_mode')],
  [
    line({ props: { $cookieless_mode: true }, user: '$posthog_cookieless' }),
    refused('server_refused:cookieless_timestamp_out_of_range', 'distinct_id'),
  ],
  [line({ event: '$$heatmap' }), refused('server_refused:heatmap', 'event')],
  [line({ event: '$performance_event' }), refused('server_refused:dropped_performance_event', 'event')],
  [
    line({ event: '$identify', props: { $anon_distinct_id: 5 } }),
    refused('server_refused:invalid_anon_distinct_id', '$anon_distinct_id'),
  ],
  [
    line({ event: '$group_identify', props: { $group_type: 'org', $group_key: 'x'.repeat(401) } }),
    refused('server_refused:group_key_too_long', '$group_key'),
  ],
  ['', { skipped: 'blank_line' }],
  ['  \t', { skipped: 'blank_line' }],
  [line({ event: 'Began' }), { skipped: 'session_marker' }],
  [line({ of: 'somebody else' }), { skipped: 'filtered' }],
  [line({ event: 'Grüße' }), 'sent'],
  ['{"id": "cut', refused('truncated_record', null)],
]

const segmentLine = (fields: object) =>
  JSON.stringify({
    type: 'track',
    event: 'Paid',
    userId: 'u',
    messageId: `m-${nextId++}`,
    timestamp: '2024-05-01T12:00:00Z',
    ...fields,
  })
const groupCall = (groupType: string, minute: number) =>
  segmentLine({
    type: 'group',
    groupId: 'g',
    traits: { groupType, size: 5 },
    timestamp: `2024-05-01T12:0${minute}:00Z`,
  })
const sixthType = 'a project can have 5 group types, and that many others come before "six"'
const repeated = segmentLine({})
const changed = JSON.stringify({ ...JSON.parse(repeated), properties: { price: 5 } })

const jsonCases: Readonly<Record<string, readonly Case[]>> = {
  segment: [
    [groupCall('six', 6), refused('group_type_limit', '$group_type', sixthType)],
    ...['one', 'two', 'three', 'four', 'five'].map((type, minute): Case => [groupCall(type, minute), 'sent']),
    [segmentLine({ integrations: { PostHog: false } }), { skipped: 'destination_disabled' }],
    [segmentLine({ type: 'poll' }), refused('unsupported_event', 'type', /"poll"/)],
    [repeated, 'sent'],
    [repeated, { skipped: 'duplicate_in_source' }],
    [changed, { skipped: 'differs_in_source' }],
  ],
  mixpanel: [
    [
      JSON.stringify({
        event: '$merge',
        properties: { time: 1714564800, $distinct_ids: ['a-1', 'b-1'], $insert_id: 'i' },
      }),
      refused('merge_needs_approval', 'properties.$distinct_ids'),
    ],
  ],
  matomo: [
    [
      JSON.stringify({
        idSite: 1,
        idVisit: 1,
        visitorId: 'a1',
        firstActionTimestamp: 1714557600,
        actionDetails: [{ type: 'goal', timestamp: 1714557600 }],
      }),
      { skipped: 'goal_conversion_duplicate' },
    ],
    [
      JSON.stringify({ idSite: 1, idVisit: 2, visitorId: 'a1', firstActionTimestamp: 1714557600, actionDetails: [] }),
      { skipped: 'visit_without_actions' },
    ],
  ],
}
const csvCases: readonly Case[] = [
  ['id,event,user,at', 'sent'],
  ['c-1,"Paid, at ""last""\nin full",u-1,2024-05-01T12:00:00Z', 'sent'],
  ['c-2,Paid,u-1', refused('csv_column_count', null, 'the header names 4 columns, and the row has 3')],
  ['c-3,"Paid\nagain",,2024-05-01T12:00:00Z', refused('distinct_id_missing', 'user')],
]

describe('a bad record', () => {
  it('of any kind is stored with its position and a suggested fix, and all other records give events', async t => {
    const limits = { holdLiveWindow: true, retentionDays: 19_000 }
    const { balance } = await rehearse(t, 'generic', 'raw.jsonl', genericCases, { config: { mapping }, limits })
    assert.equal(balance.read, genericCases.length)
    assert.equal(balance.givingEvents, 2)
  })

  for (const [source, cases] of Object.entries(jsonCases))
    it(`that can occur only in ${source} is stored or counted`, async t => {
      await rehearse(t, source, 'raw.jsonl', cases)
    })

  it('in CSV has the number of the line in which its row begins', async t => {
    await rehearse(t, 'generic', 'raw.csv', csvCases, { config: { mapping: { ...mapping, properties: [] } } })
  })

  it('is tested for every known reject reason', () => {
    // No type lists the reasons, so they are read from the texts of the fixes, of which each reason needs one.
    const [words = ''] = readFileSync('src/importer/stages/reject-fixes.ts', 'utf8').split('const ownSkips')
    const reasons = [...words.matchAll(/^ {2}([a-z_0-9]+):/gm)].map(([, reason]) => reason!)
    assert.ok(reasons.length > 30, String(reasons.length))
    assert.deepEqual(
      reasons.filter(reason => !seen.has(reason)),
      [],
    )
    assert.ok(seen.has('server_refused:invalid_cookieless_mode'))
  })
})

async function rehearse(
  t: TestContext,
  source: string,
  name: string,
  cases: readonly Case[],
  options: TestJobOptions = {},
): Promise<Rehearsal> {
  const job = jobOf(t, { [name]: bytesOf(cases) }, findSource(source)!, options)
  const report = await job.report()
  assert.ok(report.balance.isBalanced)
  assertCounts(cases, report)
  assertRejects(cases, rejectsOf(job))
  return report
}

function bytesOf(cases: readonly Case[]): Buffer {
  const last = cases.length - 1
  return Buffer.concat(
    cases.flatMap(([source], index) => [Buffer.from(source), Buffer.from(index === last ? '' : '\n')]),
  )
}

function isRefused(outcome: Case[1]): outcome is Refused {
  return typeof outcome === 'object' && 'reason' in outcome
}

function assertCounts(cases: readonly Case[], { skips, rejects }: Rehearsal): void {
  const reasons = cases.flatMap(([, outcome]) =>
    outcome === 'sent' ? [] : [isRefused(outcome) ? outcome.reason : outcome.skipped],
  )
  const expected = [...Map.groupBy(reasons, reason => reason)].map(([reason, all]) => [reason, all.length])
  const found = [...skips, ...rejects].map(({ reason, count }) => [reason, count])
  assert.deepEqual(found.toSorted(), expected.toSorted())
  for (const reason of reasons) seen.add(reason)
}

function assertRejects(cases: readonly Case[], rejects: readonly RejectLine[]): void {
  const byLine = new Map(rejects.map(reject => [reject.line, reject]))
  let [at, lines, count] = [0, 1, 0]
  for (const [source, outcome] of cases) {
    const bytes = Buffer.from(source)
    if (isRefused(outcome)) {
      count++
      const reject = byLine.get(lines)
      const { detail = null, ...expected } = outcome
      assert.ok(reject !== undefined, `line ${lines}: ${outcome.reason}`)
      const { reason, field, byte, fix, source_sha256, object, adapter, part } = reject
      assert.deepEqual({ reason, field }, expected)
      assert.equal(byte, at, reason)
      assert.equal(fix, findRejectFix(outcome.reason, adapter))
      assert.equal(source_sha256, sha256Hex(bytes), reason)
      if (detail instanceof RegExp) assert.match(reject.detail ?? '', detail, reason)
      else assert.equal(reject.detail, detail, reason)
      assert.equal(reject.source, bytes.toString().slice(0, 65_536))
      assert.ok(object !== '' && adapter !== '' && part !== '')
    }
    at += bytes.length + 1
    lines += 1 + bytes.toString('latin1').split('\n').length - 1
  }
  assert.equal(rejects.length, count)
}
