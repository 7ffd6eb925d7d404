import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { amplitude } from '#importer/sources/amplitude/amplitude.ts'
import { generic } from '#importer/sources/generic/generic.ts'
import { readSamples } from '#importer/stages/report/samples.ts'
import { jobOf, rejectsOf, type TestJob, type TestJobOptions } from '../../../tests/support/import-job.ts'
import { posthog } from '../sources/posthog/posthog.ts'
import { segment } from '../sources/segment/segment.ts'
import type { ImportReport } from './report/import-report.ts'
import { createReportSections } from './report/report-sections.ts'

const mapping = {
  event: 'event',
  distinct_id: 'user',
  timestamp: 'at',
  uuid: 'id',
  properties: 'props',
  anon_id: 'device',
}
const good = { id: 'r', event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z' }

describe('a rehearsal', () => {
  it('warns of files with bytes but no records, but not of empty files', async t => {
    const files = { 'a.csv': 'event,user,at\nPaid,u,2024-05-01T12:00:00Z\n', 'b.csv': 'event,user,at\n', 'c.csv': '' }
    const job = jobOf(t, files, generic, {
      config: { mapping: { event: 'event', distinct_id: 'user', timestamp: 'at' } },
    })
    const warnings = (await job.report()).warnings.filter(({ code }) => code === 'no_record_in_file')
    assert.deepEqual(warnings, [{ code: 'no_record_in_file', text: 'b.csv holds no records.' }])
  })

  it('accounts for every record and every event', async t => {
    const report = await reportOf(t, [
      ...Array.from({ length: 40 }, (_, index) => line({ ...good, id: `r-${index}`, user: `u-${index % 7}` })),
      line({ ...good, id: 'linked', device: 'd-1' }),
      line({ ...good, id: 'r-3', user: 'u-3' }),
      line({ event: 'bare', user: 'u', at: good.at }),
      line({ event: 'bare', user: 'u', at: good.at }),
      '',
      'not json',
    ])
    assert.deepEqual(report.balance, {
      read: 46,
      blankLines: 1,
      givingEvents: 42,
      skipped: 2,
      rejected: 1,
      collapsed: 1,
      fromRecords: 42,
      generated: 1,
      toSend: 43,
      isBalanced: true,
    })
    assert.deepEqual(
      report.events.map(({ event, count }) => [event, count]),
      [
        ['Paid', 41],
        ['$identify', 1],
        ['bare', 1],
      ],
    )
    assert.deepEqual(report.days, [{ day: '2024-05-01', count: 43, events: { $identify: 1, Paid: 41, bare: 1 } }])
    assert.deepEqual(report.distinctIds, { count: 9, error: 0 })
    assert.equal(report.predicted.charged, 0)
    assert.equal(report.predicted.merges, 1)
  })

  it('warns of suspicious findings', async t => {
    const at = (day: number, minute = 0) => new Date(Date.UTC(2024, 4, day, 0, minute)).toISOString()
    const records = [
      ...Array.from({ length: 900 }, (_, index) => ({
        ...good,
        id: `a-${index}`,
        at: at(1, index),
        user: `u${index}`,
      })),
      ...Array.from({ length: 120 }, (_, index) => ({ ...good, id: `b-${index}`, at: at(3), user: 'everybody' })),
      { ...good, id: 'c', event: 'Page View', at: at(4), props: { groups: { org: 'a' } } },
      { ...good, id: 'c', event: 'Other', at: at(4) },
      { ...good, id: 'd', at: '1970-01-20T00:00:00Z' },
      { ...good, id: 'e', at: at(4), device: 'dev' },
      { ...good, id: 'f', at: at(5), device: 'dev', user: 'somebody else' },
    ]
    const { warnings } = await reportOf(t, records.map(line))
    assert.deepEqual(
      warnings.map(({ code }) => code),
      [
        'similar_event_name',
        'day_gap',
        'seconds_as_ms',
        'source_id_reused',
        'shared_devices',
        'property_without_dollar',
        'frequent_distinct_id',
        'frequent_timestamp',
      ],
    )
    assert.equal(
      warnings[0]!.text,
      '1 event is called "Page View"; the service knows $pageview. To send them under that name, plan again with --config FILE, where FILE holds {"event_names":{"Page View":"$pageview"}}.',
    )
    const { warnings: none } = await reportOf(t, [line({ ...good, props: {}, device: null })])
    assert.deepEqual(none, [], 'a single event has a single id')
  })

  it('counts shared devices, not how often their users alternate', async t => {
    const at = (minute: number) => new Date(Date.UTC(2024, 4, 1, 0, minute)).toISOString()
    const records = Array.from({ length: 40 }, (_, index) => ({
      ...{ ...good, id: `r-${index}`, at: at(index), user: `u-${index % 2}` },
      device: index < 36 ? 'shared' : `own-${index % 2}`,
    }))
    const { warnings, identity } = await reportOf(t, records.map(line))
    assert.deepEqual(identity.devices, { all: 3, shared: 1 })
    const [warning] = warnings.filter(({ code }) => code === 'shared_devices')
    assert.match(warning!.text, /^1 of 3 devices \(33 %\) was used by more than one user, with 18 changes/)
  })

  it('counts PostHog events that lose person data, by property', async t => {
    const events = [{ $set: { plan: 'pro' } }, { $set: { plan: 'free' }, $unset: ['old'] }, {}].map(
      (properties, index) => ({
        ...{ event: 'Opened', uuid: `018f3a10-0000-7000-8000-00000000070${index}`, distinct_id: 'u', properties },
        timestamp: good.at,
      }),
    )
    const config = { strip_person_updates: true }
    const { warnings, dropped } = await reportOf(t, events.map(line), { config }, posthog)
    assert.deepEqual(
      warnings.map(({ code, text }) => [code, text.slice(0, 28)]),
      [['person_data_left_out', '2 records (67 %): changes of']],
    )
    assert.deepEqual(dropped, [
      { field: 'properties.$set.plan', count: 2 },
      { field: 'properties.$unset.old', count: 1 },
    ])
  })

  it('predicts persons, merges and groups even if records are themselves links or groups', async t => {
    const at = '2024-05-01T12:00:00Z'
    const records = [
      { type: 'identify', userId: 's-1', anonymousId: 'an-1', messageId: 'm1', timestamp: at, traits: { plan: 'pro' } },
      {
        type: 'identify',
        userId: 's-1',
        anonymousId: 'an-1',
        messageId: 'm2',
        timestamp: at,
        traits: { plan: 'free' },
      },
      { type: 'track', event: 'Tap', userId: 's-2', anonymousId: 'an-2', messageId: 'm3', timestamp: at },
      { type: 'identify', userId: 's-3', anonymousId: 'an-2', messageId: 'm4', timestamp: '2024-05-01T14:00:00Z' },
      { type: 'alias', userId: 's-4', previousId: 'old-4', messageId: 'm5', timestamp: at },
      { type: 'group', userId: 's-4', groupId: 'g-1', messageId: 'm6', timestamp: at },
      { type: 'group', userId: 's-4', groupId: 'g-2', messageId: 'm7', timestamp: at },
    ]
    const { predicted, identity, groups } = await reportOf(t, records.map(line), { config: {} }, segment)
    // s-1 with an-1, s-2 with an-2, s-3 alone, s-4 with old-4.
    assert.partialDeepStrictEqual(predicted, { persons: 4, merges: 3, groups: 2 })
    assert.deepEqual([identity.links, identity.sharedDevices, groups.events], [3, 1, 2])
  })

  it('explains generated events, shared devices and groups in its report', async t => {
    const opened = {
      ...{ event_type: 'Opened', user_id: 'u', device_id: 'd', event_time: '2024-05-01 12:00:00.000000' },
      groups: { org: ['acme'] },
    }
    const told = { ...opened, event_type: '$groupidentify' }
    const records = [told, told, opened].map((record, index) => ({ ...record, uuid: `7a8b-${index}` }))
    const report = await reportOf(t, records.map(line), { config: {} }, amplitude)
    const { givingEvents, givingOnlyGenerated = 0, fromRecords } = report.balance
    assert.deepEqual([givingEvents, givingOnlyGenerated, fromRecords], [3, 2, 1])
    const sections = new Map(createReportSections(report).map(section => [section.title, section]))
    assert.deepEqual(sections.get('Balance')!.tables[0]!.rows.slice(1, 3), [
      ['Records that produce events', '3'],
      ['Of these, only links or groups, whose events are generated', '2'],
    ])
    assert.deepEqual(sections.get('Persons and groups')!.lines.slice(2), [
      'No device was used by more than one user.',
      'Group types: org. 1 event describes groups.',
    ])
    const shared = { ...report, identity: { links: 1, sharedDevices: 2, devices: { all: 20, shared: 1 } } }
    assert.equal(
      createReportSections(shared).find(({ title }) => title === 'Persons and groups')!.lines[2],
      '1 of 20 devices (5.0 %) was used by more than one user, with 2 changes to a user other than the first; a device is linked only to its first user.',
    )
  })

  it('counts events in the live window as recent, with their days', async t => {
    const records = [
      good,
      { ...good, id: 'x', at: '2026-01-13T00:00:01Z' },
      { ...good, id: 'y', at: '2026-01-14T10:00:00Z' },
    ]
    const { predicted } = await reportOf(t, records.map(line))
    assert.deepEqual(predicted.recent, { events: 2, days: ['2026-01-13', '2026-01-14'] })
  })

  it('stores samples of each event name and each reject reason, with the record and its events', async t => {
    const records = [
      ...Array.from({ length: 50 }, (_, index) => line({ ...good, id: `r-${index}` })),
      line({ ...good, id: 'rare', event: 'Rare' }),
      line({ ...good, user: null }),
    ]
    const job = await staged(t, records)
    await job.rehearse()
    const samples = readSamples(job.folder)
    const kinds = new Map<string, number>()
    for (const { of } of samples) kinds.set(of, (kinds.get(of) ?? 0) + 1)
    assert.deepEqual(Object.fromEntries(kinds), { Paid: 5, Rare: 1, 'reject:distinct_id_missing': 1 })
    const rare = samples.find(({ of }) => of === 'Rare')!
    assert.equal(rare.source, records[50])
    assert.equal((rare.events![0] as { timestamp: string }).timestamp, '2024-05-01T12:00:00.000Z')
  })

  it('writes a report whose markup and text direction no record can change', async t => {
    const evil = '</pre><script>alert(1)</script>\u001b]0;title\u0007\u009b31m\u202e\u2066👩\u200d🚀'
    const html = await pageOf(t, [line({ ...good, event: evil })])
    assert.ok(!html.includes('<script'), 'no script')
    assert.match(
      html,
      /&lt;\/pre&gt;&lt;script&gt;alert\(1\)&lt;\/script&gt;\\u001b\]0;title\\u0007\\u009b31m\\u202e\\u2066👩\u200d🚀/,
    )
    assert.doesNotMatch(html, /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/u)
  })

  it('writes a page whose tables all have captions, column headings and row headings', async t => {
    const html = await pageOf(t, [line(good), line({ ...good, user: null })])
    const tables = html.split(/<table[^>]*>/).slice(1)
    assert.ok(tables.length >= 4)
    for (const table of tables) {
      assert.match(table, /^\s*<caption>[^<]+<\/caption>/)
      assert.match(table, /<th scope="col"/)
      assert.match(table, /<th scope="row"/)
    }
    assert.match(html, /<svg[^>]* role="img" aria-label="Events by day/)
    assert.equal(html.match(/<h1>/g)?.length, 1)
    assert.ok(!/(?:src|href)=/.test(html), 'nothing is loaded')
    assert.match(html, /Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/)
    assert.equal(html.match(/<div class="wide" role="region" tabindex="0" aria-label="/g)?.length, tables.length)
  })

  it('counts records with the same id but different content separately from repeats, and names one of them', async t => {
    const lines = [line(good), line(good), line({ ...good, props: { price: 5 } })]
    const { skips, warnings } = await reportOf(t, lines)
    assert.deepEqual(
      skips.map(({ reason, count }) => [reason, count]),
      [
        ['differs_in_source', 1],
        ['duplicate_in_source', 1],
      ],
    )
    const [warning] = warnings.filter(({ code }) => code === 'differs_in_source')
    assert.match(warning!.text, /^1 record has the id, .* but other fields; .* line 3 of .*raw\.jsonl\.$/)
  })

  it('estimates how many records an unreadable stretch of a file contains', async t => {
    const rows = Array.from({ length: 3_000 }, (_, id) => [`row-${id}`, 'e', 'u', '2024-05-01T00:00:00Z'])
    // The row joined by a quote ends up with the right number of cells, or with another one.
    for (const column of [1, 2]) {
      rows[10] = ['r-10', '"open', 'u', '2024-05-01T00:00:00Z']
      rows[2_010] = ['r-2010', 'e', 'u', '2024-05-01T00:00:00Z'].with(column, '"open"')
      const csv = `id,event,user,at\n${rows.map(cells => `${cells}\n`).join('')}`
      const { balance, heldByRejects, rejectShare } = await reportOfCsv(t, csv)
      assert.ok(balance.isBalanced)
      assert.equal(balance.rejected, 1)
      assert.ok(heldByRejects! > 1_900 && heldByRejects! < 2_100, `${heldByRejects}`)
      assert.ok(rejectShare > 0.6)
    }
  })

  it('warns of CSV rows that can be read in two ways', async t => {
    // Nothing in the first MiB shows that backslashes are escapes.
    const at = '2024-05-01T00:00:00Z'
    const plain = Array.from({ length: 6 }, (_, id) => `${id},"bye",u,${at},${'x'.repeat(200_000)}\n`)
    const spoken = String.raw`8,"say \"hi\"",u,${at},x`
    const csv = `id,event,user,at,more\n${plain.join('')}${spoken}\n9,"bye",u,${at},x\n`
    const { balance, warnings } = await reportOfCsv(t, csv)
    assert.deepEqual([balance.read, balance.givingEvents], [7, 7])
    assert.match(
      warnings.find(({ code }) => code === 'csv_quotes')!.text,
      /^1 record \(14 %\): a row of CSV that can be/,
    )
  })

  it('counts a line as one record, however long it is, even a row with long texts', async t => {
    const props = { x: 'y'.repeat(200) }
    const lines = Array.from({ length: 100 }, (_, id) => line({ ...good, id: `r-${id}`, props }))
    const ofLines = await reportOf(t, [...lines, `{"x":"${'y'.repeat(3_000)}`])
    assert.deepEqual([ofLines.heldByRejects, ofLines.rejectShare], [undefined, 1 / 101])
    const rows = Array.from({ length: 100 }, (_, id) => `r-${id},e,u,2024-05-01T00:00:00Z\n`)
    const csv = `id,event,user,at\n${rows.join('')}r,"${'two\nlines '.repeat(300)}",u,yesterday\n`
    const { balance, heldByRejects } = await reportOfCsv(t, csv)
    assert.deepEqual([balance.rejected, heldByRejects], [1, undefined])
  })

  it('identifies the job at the top of its report, and leaves out empty tables if there are no events', async t => {
    const job = await staged(t, [line({ ...good, user: null, props: {}, device: null })])
    await job.rehearse()
    const html = readFileSync(job.folder.file('report.html'), 'utf8')
    const about = `Job ${basename(job.folder.path)} in ${job.folder.path}, planned 2026-01-15 00:00 UTC.`
    assert.ok(html.includes(`</h1>\n<p>${about}</p>`))
    const captions = [...html.matchAll(/<caption>(.*?)<\/caption>/g)].map(([, caption]) => caption)
    assert.deepEqual(captions, ['Outcome of every record', 'Rejected records by reason'])
    assert.match(html, /<h2>Warnings<\/h2>\n<p>There are no events to warn about\.<\/p>/)
    assert.match(html, /<h2>Events<\/h2>\n<p>None\.<\/p>/)
  })

  it('writes the same files when it is repeated', async t => {
    const job = await staged(t, [line(good), 'broken'])
    await job.rehearse()
    const first = readFileSync(job.folder.file('report.json'), 'utf8')
    await job.rehearse()
    assert.equal(readFileSync(job.folder.file('report.json'), 'utf8'), first)
    assert.equal(rejectsOf(job).length, 1)
    assert.ok(!existsSync(job.folder.file('rehearsal', 'ids')))
    const html = readFileSync(job.folder.file('report.html'), 'utf8')
    assert.match(html, /<p>1 event would be sent, of about 1 person and 0 groups, with 0 merges of two ids/m)
  })

  it('makes no links for a project without persons, and rejects merge records', async t => {
    const linked = { ...good, device: 'd-1' }
    const merge = { ...good, id: 'm', event: '$identify', props: { $anon_distinct_id: 'd-2' } }
    const counts = async (isPersonless: boolean) => {
      const config = { mapping: { ...mapping, anon_id: 'device' } }
      const { balance, rejects } = await reportOf(t, [line(linked), line(merge)], { config, limits: { isPersonless } })
      assert.ok(balance.isBalanced)
      return [balance.generated, balance.fromRecords, rejects.map(({ reason }) => reason)]
    }
    assert.deepEqual(await counts(false), [1, 2, []])
    const reason = 'server_refused:invalid_event_when_process_person_profile_is_false'
    assert.deepEqual(await counts(true), [0, 1, [reason]])
  })
})

function line(record: object): string {
  return JSON.stringify(record)
}

/** A job over these lines, staged and scanned. */
async function staged(
  t: TestContext,
  lines: readonly (string | Buffer)[],
  options: TestJobOptions = {},
  source = generic,
): Promise<TestJob> {
  const text = Buffer.concat(lines.flatMap(each => [Buffer.from(each), Buffer.from('\n')]))
  const job = jobOf(t, { 'raw.jsonl': text }, source, { config: { mapping }, ...options })
  await job.stageAndScan()
  return job
}

async function reportOf(...given: Parameters<typeof staged>): Promise<ImportReport> {
  return (await staged(...given)).rehearse()
}

function reportOfCsv(t: TestContext, text: string): Promise<ImportReport> {
  const ofRows = { event: 'event', distinct_id: 'user', timestamp: 'at', uuid: 'id', properties: [] }
  return jobOf(t, { 'raw.csv': text }, generic, { config: { mapping: ofRows } }).report()
}

async function pageOf(...given: Parameters<typeof staged>): Promise<string> {
  const job = await staged(...given)
  await job.rehearse()
  return readFileSync(job.folder.file('report.html'), 'utf8')
}
