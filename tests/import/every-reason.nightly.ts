// For every reason in docs/wire/import.md §2.6, a record provokes it through the commands. It ends up in the reject
// file with its line, byte, field, text and fix, or is counted as skipped. The import continues, and every record is
// counted.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { RejectReason, SkipReason } from '#importer/records/imported-event.ts'
import type { RejectLine } from '#importer/stages/reject-files.ts'
import { findFix } from '#importer/stages/reject-fixes.ts'
import type { ImportReport, Rehearsal } from '#importer/stages/report/import-report.ts'
import { ImportCommands } from '../support/import-command.ts'
import { type Pennon, startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { mustSucceed } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

/** A record of a source file and its expected outcome. */
type Case = readonly [source: string | Buffer, outcome: Refused | Skipped | 'sent']
interface Refused {
  readonly reason: RejectReason | `server_refused:${string}`
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
const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString()

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
  let pennon: Pennon
  before(async () => {
    pennon = await startPennon()
  })
  after(() => pennon.stop())

  it('rejects of every kind are kept with their position and a fix, and all other records are sent', async t => {
    const { commands, rejects, report } = await rehearsed(t, 'raw.jsonl', genericCases, [
      ...['--source', 'generic', '--mapping', 'mapping', '--host', pennon.url, '--project-key', testProjectKey],
      ...['--hold-live-window', '--retention-days', '19000', '--max-reject-share', '100%', '--allow-damaged-files'],
    ])
    const sent = mustSucceed(await commands.call('run', '--json', ...(await commands.yes())))
    const final = (JSON.parse(sent.stdout) as ImportReport).sent!
    const { read, givingEvents, skipped, rejected, collapsed } = final.balance
    assert.equal(read, givingEvents + skipped + rejected + collapsed)
    assert.ok(final.balance.isBalanced && final.verification?.ok === true)
    assert.equal(read, genericCases.length)
    assert.equal(givingEvents, 2)
    assert.equal(rejected, report.balance.rejected)
    assertRejects(genericCases, rejects)
  })

  for (const [source, cases] of Object.entries(jsonCases))
    it(`rejects and skips that only ${source} has are kept or counted`, async t => {
      const { rejects } = await rehearsed(t, 'raw.jsonl', cases, ['--source', source, '--max-reject-share', '100%'])
      assertRejects(cases, rejects)
    })

  it('a CSV reject has the line in which its row begins', async t => {
    const { rejects } = await rehearsed(t, 'raw.csv', csvCases, [
      ...['--source', 'generic', '--mapping', 'mapping', '--max-reject-share', '100%'],
    ])
    assertRejects(csvCases, rejects)
  })

  it('every known reason is covered', () => {
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

async function rehearsed(t: TestContext, name: string, cases: readonly Case[], options: readonly string[]) {
  const folder = tempDir(t)
  const commands = new ImportCommands(folder, { PENNON_PERSONAL_KEY: testPersonalKey })
  const raw = join(folder, name)
  writeFileSync(raw, bytesOf(cases))
  const rules = commands.file(
    'mapping.json',
    JSON.stringify(name.endsWith('.csv') ? { ...mapping, properties: [] } : mapping),
  )
  mustSucceed(await commands.plan([raw], ...options.map(option => (option === 'mapping' ? rules : option))))
  const ran = await commands.call('run', '--json')
  // Some files give no events at all, so their jobs stop.
  assert.ok(ran.exitCode === 0 || ran.exitCode === 2, ran.stderr)
  const report = JSON.parse(ran.stdout) as Rehearsal
  const { read, givingEvents, skipped, rejected, collapsed } = report.balance
  assert.equal(read, givingEvents + skipped + rejected + collapsed)
  assert.ok(report.balance.isBalanced)
  assertSkips(cases, report)
  return { commands, report, rejects: linesOf(commands.job, 'rejects/**/*.jsonl') }
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

function assertSkips(cases: readonly Case[], { skips }: Rehearsal): void {
  const expected: Record<string, number> = {}
  for (const [, outcome] of cases)
    if (typeof outcome === 'object' && 'skipped' in outcome)
      expected[outcome.skipped] = (expected[outcome.skipped] ?? 0) + 1
  assert.deepEqual(Object.fromEntries(skips.map(({ reason, count }) => [reason, count])), expected)
  for (const reason of Object.keys(expected)) seen.add(reason)
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
      assert.equal(fix, findFix(outcome.reason, adapter))
      assert.equal(source_sha256, createHash('sha256').update(bytes).digest('hex'), reason)
      if (detail instanceof RegExp) assert.match(reject.detail ?? '', detail, reason)
      else assert.equal(reject.detail, detail, reason)
      assert.equal(reject.source, bytes.toString().slice(0, 65_536))
      assert.ok(object !== '' && adapter !== '' && part !== '')
      seen.add(reason)
    }
    at += bytes.length + 1
    lines += 1 + bytes.toString('latin1').split('\n').length - 1
  }
  assert.equal(rejects.length, count)
}

function linesOf(folder: string, pattern: string): RejectLine[] {
  return globSync(pattern, { cwd: folder }).flatMap(name =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter(text => text !== '')
      .map(text => JSON.parse(text) as RejectLine),
  )
}
