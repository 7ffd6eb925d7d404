// `pennon events` as people run it, against a real front.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { EventStore } from '#ports/events/event-store.ts'
import { collectText } from '../support/child-processes.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { eventually } from '../support/eventually.ts'
import { type ManagementApi, startManagement } from '../support/management-api.ts'
import { runCommand, startCommand } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aStoredEvent, imported } from '../support/values.ts'

const eventCount = 300
const dayMs = 86_400_000
const firstMs = Date.parse('2026-04-20T10:00:00Z')
const events = Array.from({ length: eventCount }, (_, index) =>
  aStoredEvent({
    event: index % 3 === 0 ? 'order placed' : '$pageview',
    distinctId: `user "${index}"`,
    timestampMs: firstMs + (index % 5) * dayMs + index,
    capturedAtMs: firstMs,
    propertiesJson: `{"n":${index}.0,"text":"a\\n,b","plan":"${index % 2 === 0 ? 'pro' : 'free'}","large":"${'x'.repeat(20_000)}"}`,
  }),
)

describe('pennon events', () => {
  const held = eventStoreForTests({
    exports: { windowRowsMin: 1, sliceRowsMax: 40, retryPausesMs: [1] },
    begin: () => held.insert({ events }),
  })

  /** A front whose exports fail after this many batches for as long as `isBroken`. */
  async function start(t: TestContext, broken: { after: number; isBroken: boolean } = { after: 0, isBroken: false }) {
    const openEventExport: EventStore['openEventExport'] = async (query, signal) => {
      const { batches, eventCountMax } = await held.store.openEventExport(query, signal)
      return {
        eventCountMax,
        batches: (async function* () {
          let count = 0
          for await (const batch of batches) {
            if (broken.isBroken && count++ >= broken.after) throw new Error('broken on purpose')
            yield batch
          }
        })(),
      }
    }
    const api = await startManagement(t, { events: { ...held.store, openEventExport } })
    const folder = tempDir(t)
    const file = (name: string) => join(folder, name)
    const settings = await settingsOf(api)
    const run = (...args: string[]) => runCommand(settings, 'events', ...args, '--host', api.url)
    return { api, file, run, settings }
  }

  it('counts events by name and day, as a table with a chart or as JSON', async t => {
    const { run } = await start(t)
    const range = ['--from', '2026-04-20', '--to', '2026-04-24']
    const table = await run('count', ...range)
    assert.equal(table.exitCode, 0, table.stderr)
    const lines = table.stdout.split('\n')
    assert.match(lines[0]!, /^EVENT +COUNT +PER DAY$/)
    assert.match(lines[1]!, /^\$pageview +200 +█{5}$/)
    assert.match(lines[2]!, /^order placed +100 +█{5}$/)
    assert.match(lines[3]!, /^all events +300 +█{5}$/)
    const json = JSON.parse((await run('count', ...range, '--event', 'order placed', '--json')).stdout)
    assert.deepEqual(json.results, [{ event: 'order placed', count: 100, data: [20, 20, 20, 20, 20] }])
    const named = await run('count', ...range, '--event', '$pageview', '--event', 'no such event')
    assert.match(named.stdout, /^\$pageview +200.*\nno such event +0\n/m)
    assert.doesNotMatch(named.stdout, /all events/)
    const before = await run('count', '--from', 'all', '--to', '2026-04-01')
    assert.deepEqual([before.exitCode, before.stderr], [0, ''])
    assert.match(before.stdout, /^all events +0$/m)
  })

  it('chooses longer bars for long ranges, and names the option if the given ones are too short', async t => {
    const { run } = await start(t)
    const bars = async (from: string) => {
      const { stdout, stderr } = await run(
        'count',
        '--from',
        from,
        '--to',
        '2026-04-24',
        '--event',
        '$pageview',
        '--json',
      )
      assert.equal(stderr, '')
      return JSON.parse(stdout)
    }
    assert.equal((await bars('2026-01-01')).interval, 'day')
    const long = await bars('1990-01-01')
    assert.deepEqual([long.interval, long.results[0].count], ['week', 200])
    assert.equal((await bars('1971-01-01')).interval, 'week')
    const refused = await run('count', '--from', '2000-01-01', '--interval', 'hour', '--event', 'x')
    assert.equal(refused.exitCode, 2)
    assert.match(refused.stderr, /^pennon: The range has too many bars of one hour: use --interval day, or /)
  })

  it('includes the events of a pending import job on request', async t => {
    const { api, run } = await start(t)
    const { number } = (await api.call('POST', '/api/projects/1/import_jobs/', { body: { source: 'csv' } })).body
    const pending = imported(aStoredEvent({ event: 'signed up', timestampMs: firstMs, capturedAtMs: firstMs }), number)
    await held.store.insert({ events: [], pendingEvents: [pending], overrides: [], recordings: [], rejected: [] })
    const range = ['--from', '2026-04-20', '--to', '2026-04-24', '--json']
    const count = async (...args: string[]) => {
      const { exitCode, stdout, stderr } = await run('count', ...range, ...args)
      assert.equal(exitCode, 0, stderr)
      return JSON.parse(stdout).results.map(({ event, count }: { event: string; count: number }) => [event, count])
    }
    const visible = [
      ['$pageview', 200],
      ['order placed', 100],
    ]
    assert.deepEqual(await count(), [...visible, [null, 300]])
    assert.deepEqual(await count('--import-job', String(number)), [...visible, ['signed up', 1], [null, 301]])
    const ofJob = async (...args: string[]) =>
      JSON.parse((await run('count', '--import-job', String(number), '--event', 'signed up', '--json', ...args)).stdout)
    const allTime = await ofJob()
    assert.deepEqual([allTime.days[0], allTime.results[0].count], ['2026-04-20', 1])
    const plan = { range: { first: '2026-04-19T23:00:00.000001Z', last: '2026-04-20T10:00:00.000Z' } }
    await api.call('PATCH', `/api/projects/1/import_jobs/${number}/`, { body: { plan } })
    assert.deepEqual((await ofJob()).days, ['2026-04-19', '2026-04-20'])
    assert.deepEqual((await ofJob('--from', '2026-04-20', '--to', '2026-04-20')).days, ['2026-04-20'])
    const unknown = await run('count', '--event', 'x', '--import-job', '99')
    assert.deepEqual(
      [unknown.exitCode, /no import job with this number/.test(unknown.stderr)],
      [2, true],
      unknown.stderr,
    )
    const bad = await run('count', '--event', 'x', '--import-job', 'seven')
    assert.match(bad.stderr, /^pennon: --import-job: /)
  })

  it('writes a file under its final name only when it is complete, and overwrites nothing', async t => {
    const { run, file } = await start(t)
    const target = file('events.jsonl')
    const done = await run('export', target, '--json', '--property', 'plan=pro', '--oldest-first')
    assert.equal(done.exitCode, 0, done.stderr)
    const { rows, bytes, limited } = JSON.parse(done.stdout)
    assert.deepEqual([rows, bytes, limited], [150, readFileSync(target).length, false])
    const lines = readFileSync(target, 'utf8').trimEnd().split('\n')
    const expected = events.filter((_, index) => index % 2 === 0).sort((a, b) => a.timestampMs - b.timestampMs)
    assert.deepEqual(
      lines.map(line => JSON.parse(line).uuid),
      expected.map(({ uuid }) => uuid),
    )
    for (const left of ['.part', '.part.json']) assert.equal(existsSync(target + left), false)
    const refused = await run('export', target)
    assert.deepEqual([refused.exitCode, readFileSync(target).length], [2, bytes])
    assert.match(refused.stderr, /already exists\. Use --force to overwrite it\.\n$/)
    assert.equal((await run('export', target, '--force', '--limit', '7')).exitCode, 0)
    assert.equal(readFileSync(target, 'utf8').split('\n').length, 8)
    const parquet = file('events.parquet')
    assert.equal((await run('export', parquet)).exitCode, 0)
    const signs = [readFileSync(parquet).subarray(0, 4), readFileSync(parquet).subarray(-4)].map(String)
    assert.deepEqual(signs, ['PAR1', 'PAR1'])
    const other = await run('export', file('events'))
    assert.deepEqual([other.exitCode, /or set --format/.test(other.stderr)], [2, true])
  })

  for (const format of ['jsonl', 'csv'])
    it(`resumes an interrupted ${format} file, and removes an incomplete last row`, async t => {
      const broken = { after: 2, isBroken: true }
      const { run, file } = await start(t, broken)
      const whole = file(`whole.${format}`)
      broken.isBroken = false
      assert.equal((await run('export', whole, '--from', '-3650d')).exitCode, 0)
      broken.isBroken = true
      const target = file(`events.${format}`)
      const first = await run('export', target, '--from', '-3650d')
      assert.equal(first.exitCode, 1, first.stderr)
      assert.match(
        first.stderr,
        /was interrupted .* rows are in .*\.part\. Continue with: pennon events export .* --resume\n$/s,
      )
      assert.equal(existsSync(target), false)
      assert.match((await run('export', target)).stderr, /was interrupted: .*Use --resume to continue/)
      truncateSync(`${target}.part`, statSync(`${target}.part`).size - 50)
      broken.isBroken = false
      const second = await run('export', target, '--resume')
      assert.equal(second.exitCode, 0, second.stderr)
      assert.ok(readFileSync(target).equals(readFileSync(whole)))
      const again = await run('export', target, '--resume')
      assert.match(again.stderr, /is complete: there is nothing to resume/)
    })

  it('stops at Ctrl-C, and prints how to resume', async t => {
    let goOn = () => {}
    const waiting = new Promise<void>(resolve => {
      goOn = resolve
    })
    const openEventExport: EventStore['openEventExport'] = async (query, signal) => {
      const { batches, eventCountMax } = await held.store.openEventExport(query, signal)
      return {
        eventCountMax,
        batches: (async function* () {
          let count = 0
          for await (const batch of batches) {
            if (query.after === undefined && count++ === 2) await waiting
            yield batch
          }
        })(),
      }
    }
    const api = await startManagement(t, { events: { ...held.store, openEventExport } })
    const settings = await settingsOf(api)
    const target = join(tempDir(t), 'events.jsonl')
    const { child, ended } = startCommand(settings, 'events', 'export', target, '--host', api.url)
    await eventually(() => existsSync(`${target}.part`) && readFileSync(`${target}.part`).length > 0, { what: 'rows' })
    child.kill('SIGINT')
    const { exitCode, stderr } = await ended
    goOn()
    assert.equal(exitCode, 130, stderr)
    assert.match(stderr, /stopped\. [\d,]+ rows are in .* Continue with: pennon events export .* --resume\n$/)
    const resumed = await runCommand(settings, 'events', 'export', target, '--resume', '--host', api.url)
    assert.equal(resumed.exitCode, 0, resumed.stderr)
    const uuids = readFileSync(target, 'utf8')
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line).uuid)
    assert.deepEqual(uuids.toSorted(), events.map(({ uuid }) => uuid).toSorted())
  })

  it('reports a full disk, the rows written, and how to resume', async t => {
    const { api, settings } = await start(t)
    const target = join(tempDir(t), 'events.jsonl')
    // A limit on the size of files fails a write as a full disk does, and needs no separate disk.
    const limited = `ulimit -f 200; trap '' XFSZ; exec "$0" --disable-warning=ExperimentalWarning src/main.ts "$@"`
    const { execFile } = await import('node:child_process')
    const args = ['-c', limited, process.execPath, 'events', 'export', target, '--host', api.url]
    const env = { PATH: process.env.PATH, ...settings }
    const child = execFile('sh', args, { env })
    const stderr = collectText(child.stderr!)
    const [exitCode] = await once(child, 'close')
    assert.equal(exitCode, 1, stderr())
    assert.match(stderr(), /The disk of .* is full.* rows are in .*\.part\. Continue with: .* --resume\n$/s)
    const resumed = await runCommand(settings, 'events', 'export', target, '--resume', '--host', api.url)
    assert.equal(resumed.exitCode, 0, resumed.stderr)
    assert.equal(readFileSync(target, 'utf8').trimEnd().split('\n').length, eventCount)
  })

  it('leaves no file when the instance sends nothing', async t => {
    const { api, file, settings } = await start(t, { after: 0, isBroken: true })
    const target = file('events.jsonl')
    for (const [args, exitCode] of [
      [['--from', 'yesterday'], 2],
      [['--host', 'http://127.0.0.1:1'], 2],
      [[], 1],
    ] as const) {
      const { stderr, ...left } = await runCommand(settings, 'events', 'export', target, '--host', api.url, ...args)
      assert.deepEqual([left.exitCode, stderr.split('\n').length], [exitCode, 2], stderr)
      assert.doesNotMatch(stderr, /--resume|rows are in/)
      assert.deepEqual(readdirSync(dirname(target)), [])
    }
  })

  it('reports a missing key or an unreachable instance in one line', async t => {
    const { file, api, settings } = await start(t)
    const keyless = await runCommand({}, 'events', 'export', file('a.jsonl'), '--host', api.url)
    assert.deepEqual([keyless.exitCode, /PENNON_PERSONAL_KEY/.test(keyless.stderr)], [2, true])
    const away = await runCommand(settings, 'events', 'count', '--host', 'http://127.0.0.1:1')
    assert.deepEqual([away.exitCode, away.stderr.split('\n').length], [2, 2])
    const empty = await runCommand(settings, 'events', 'export', file('a.jsonl'), '--host', api.url, '--event', '')
    assert.match(empty.stderr, /--event must not be empty/)
    assert.equal(existsSync(file('a.jsonl.part')), false)
  })
})

async function settingsOf(api: ManagementApi): Promise<{ PENNON_PERSONAL_KEY: string }> {
  const { body } = await api.call('POST', '/api/personal_api_keys/', { body: { label: 'command', scopes: ['*'] } })
  return { PENNON_PERSONAL_KEY: body.value }
}
