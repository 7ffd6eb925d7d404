import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { mustSucceed, refusalOf, startCommand } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

const now = ['--now', '2026-01-15T00:00:00Z']
const mapping = { event_constant: 'Paid', distinct_id: 'uid', timestamp: 'ts' }
const line = (fields: object) =>
  `${JSON.stringify({ type: 'track', event: 'Tap', timestamp: '2024-05-01T12:00:00Z', ...fields })}\n`

describe('pennon import convert', () => {
  it('each record gives one line: its events, its reject reason, or its skip reason', async () => {
    const uuid = '022bb90c-bbac-41e4-8dfc-aa07a5b09302'
    const records = [
      line({ userId: 'ada', messageId: uuid }),
      '\r\n',
      line({ messageId: 'm' }),
      '{"type":',
      '\n[1]\n',
      Buffer.from([0x7b, 0xff, 0x7d, 0x0a]),
    ]
    const { exitCode, stdout, stderr } = await convert(['--source', 'segment', ...now], ...records)
    assert.deepEqual({ exitCode, stderr }, { exitCode: 0, stderr: '' })
    const event = { uuid, event: 'Tap', distinct_id: 'ada', timestamp: '2024-05-01T12:00:00.000Z' }
    assert.deepEqual(answers(stdout), [
      { events: [{ ...event, properties: { $segment_message_id: uuid } }] },
      { skipped: 'blank_line' },
      { rejected: { reason: 'distinct_id_missing', field: 'distinct_id' } },
      { rejected: { reason: 'json_syntax', field: null } },
      { rejected: { reason: 'json_not_object', field: null } },
      { rejected: { reason: 'encoding_invalid_utf8', field: null } },
    ])
  })

  it('all records share one ledger, so that a device is linked only once', async () => {
    const pair = line({ userId: 'ada', anonymousId: 'an-1', messageId: 'm' })
    const { stdout } = await convert(['--source', 'rudderstack', ...now], pair, pair)
    assert.deepEqual(
      answers(stdout).map(answer => (answer.events as { event: string }[]).map(({ event }) => event)),
      [['$identify', 'Tap'], ['Tap']],
    )
  })

  it('CSV rows are read by their header, and the configuration from a file', async t => {
    const config = configFile(t, { mapping, source_timezone: 'Europe/Berlin' })
    const rows = 'uid,ts,note\nada,2024-05-01 12:00:00,"two\nlines"\n\nada,2024-05-01 12:00:00\neve,"2024'
    const { stdout } = mustSucceed(
      await convert(['--source', 'generic', '--format', 'csv', '--config', config, ...now], rows),
    )
    const [event, ...others] = answers(stdout)
    assert.partialDeepStrictEqual(event, {
      events: [{ event: 'Paid', timestamp: '2024-05-01T10:00:00.000Z', properties: { note: 'two\nlines' } }],
    })
    assert.deepEqual(others, [
      { skipped: 'blank_line' },
      { rejected: { reason: 'csv_column_count', field: null } },
      { rejected: { reason: 'truncated_record', field: null } },
    ])
  })

  it('the "sep=" line that Excel writes above the header is ignored', async t => {
    const options = ['--source', 'generic', '--format', 'csv', '--config', configFile(t, { mapping }), ...now]
    const { stdout } = await convert(options, 'sep=;\r\nuid;ts\r\nada;2024-05-01T12:00:00Z\r\n')
    const [event, ...others] = answers(stdout)
    assert.partialDeepStrictEqual(event, { events: [{ event: 'Paid', distinct_id: 'ada' }] })
    assert.deepEqual(others, [])
  })

  it('an input whose first line is not a JSON record is refused, suggesting CSV, gzip or a JSON list', async t => {
    const options = ['--source', 'generic', '--config', configFile(t, { mapping }), ...now]
    const rows = 'uid;ts;price\nada;2024-05-01T12:00:00Z;1,5\n'
    assert.match((await convert(options, rows)).stderr, /not JSON\. For CSV with a header line, add: --format csv/)
    assert.match((await convert(options, gzipSync(rows))).stderr, /is compressed\. .*gunzip -c FILE/)
    assert.match((await convert(options, '[{"uid":"ada"},\n{"uid":"eve"}]')).stderr, /is a JSON list/)
    const { stdout, stderr } = await convert([...options, '--format', 'csv'], rows)
    assert.equal(stderr, '')
    assert.partialDeepStrictEqual(answers(stdout)[0], { events: [{ properties: { price: '1,5' } }] })
  })

  it('--mapping and --source-timezone work as in `plan`', async t => {
    const path = join(tempDir(t), 'mapping.json')
    writeFileSync(path, JSON.stringify(mapping))
    const options = ['--source', 'generic', '--format', 'csv', '--mapping', path, '--source-timezone', 'Europe/Berlin']
    const { exitCode, stdout, stderr } = await convert([...options, ...now], 'uid,ts\nada,2024-05-01 12:00:00\n')
    assert.equal(exitCode, 0, stderr)
    assert.partialDeepStrictEqual(answers(stdout)[0], { events: [{ timestamp: '2024-05-01T10:00:00.000Z' }] })
    const broken = refusalOf(await convert(['--source', 'generic', '--mapping', `${path}.gone`, ...now], ''))
    assert.match(broken, /--mapping .*mapping\.json\.gone cannot be read/)
  })

  it('events in the live window are rejected only when the configuration sets hold_live_window', async t => {
    const recent = line({ userId: 'ada', timestamp: '2026-01-14T00:00:00Z' })
    const config = configFile(t, { hold_live_window: true })
    const { stdout } = await convert(['--source', 'segment', '--config', config, ...now], recent)
    assert.deepEqual(answers(stdout), [{ rejected: { reason: 'within_live_window', field: 'timestamp' } }])
    const sent = await convert(['--source', 'segment', ...now], recent)
    assert.equal(answers(sent.stdout)[0]!.events?.constructor, Array)
  })

  it('numbers keep their original digits, and compressed input is rejected', async () => {
    const long =
      '{"type":"track","event":"Tap","userId":8123456789012345678,"timestamp":"2024-05-01T12:00:00Z","properties":{"n":1.10}}\n'
    const { stdout } = await convert(['--source', 'segment', ...now], long, Buffer.from('1f8b08000000', 'hex'))
    assert.match(stdout, /"distinct_id":"8123456789012345678".*"n":1\.10/)
    assert.deepEqual(answers(stdout)[1], { rejected: { reason: 'compressed_input', field: null } })
  })

  it('an unknown source, an invalid time or an unusable configuration is refused with a one-line error', async t => {
    const refusals: [string[], RegExp][] = [
      [['--source', 'mixpannel', ...now], /there is no source "mixpannel"; --source is one of amplitude, .*segment/],
      [['--source', 'segment', '--now', 'today'], /--now must be a time such as 2026-01-15T00:00:00Z, not "today"/],
      [['--source', 'segment', ...now, '--config', join(tempDir(t), 'none')], /--config .* cannot be read/],
      [['--source', 'segment', ...now, '--config', configFile(t, [])], /--config .* does not contain a JSON object/],
      [
        ['--source', 'segment', ...now, '--config', configFile(t, { segment_grouptype: 'team' })],
        /configuration of segment has no key "segment_grouptype": did you mean segment_group_type\?/,
      ],
    ]
    for (const [options, message] of refusals) {
      const { exitCode, stdout, stderr } = await convert(options, line({ userId: 'ada' }))
      assert.deepEqual([exitCode, stdout], [2, ''])
      assert.match(stderr, message)
      assert.equal(stderr.trimEnd().split('\n').length, 1)
    }
  })

  it('the help names every source', async () => {
    const { stdout } = await convert(['--help'])
    for (const source of 'amplitude ga4 heap matomo mixpanel plausible posthog segment generic'.split(' '))
      assert.match(stdout, new RegExp(`^  ${source} +\\S`, 'm'))
  })
})

async function convert(options: readonly string[], ...input: readonly (string | Buffer)[]) {
  const { child, ended } = startCommand({}, 'import', 'convert', ...options)
  // A command that refuses before it reads closes its input; only its answer counts.
  child.stdin!.on('error', () => undefined)
  child.stdin!.end(Buffer.concat(input.map(part => Buffer.from(part as Buffer))))
  return await ended
}

function answers(stdout: string): Record<string, unknown>[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map(text => JSON.parse(text))
}

function configFile(t: TestContext, config: object): string {
  const path = join(tempDir(t), 'config.json')
  writeFileSync(path, JSON.stringify(config))
  return path
}
