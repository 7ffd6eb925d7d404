import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { JsonObject } from '#core/json.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { JobState, writeJobState } from '#importer/job/job-state.ts'
import { createCheckpoint, createPartProgress, putCheckpoint } from '#importer/send/checkpoint.ts'
import type { Rehearsal } from '#importer/stages/report/import-report.ts'
import { tryFileLock } from '#processes/data-lock.ts'
import { ImportCommands, mapping, plannedJob } from '../support/import-command.ts'
import { mustSucceed, refusalOf } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

const good = { id: 'r', event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z' }
const sha = (id: number) => createHash('sha256').update(String(id)).digest('hex')
const goodLine = `${JSON.stringify(good)}\n`

/** As if sending had begun. */
function storeSendingOf(job: string): void {
  const identity = { jobId: 'job', serviceJobId: '7', target: '', project: '1', mappingSha256: 'mapping' }
  using state = new JobState(new JobFolder(job))
  putCheckpoint(state, { ...createCheckpoint(identity, ''), parts: [createPartProgress('links/0', '')] })
}

describe('an import from the command line', () => {
  it('status, report and rejects describe the job at every stage, and rejects are grouped by reason', async t => {
    const commands = new ImportCommands(tempDir(t))
    const raw = commands.file('raw.jsonl', `${goodLine}broken\u2028line\n\n`)
    await commands.plan([raw])
    assert.match((await commands.call('status')).stdout, /Not staged yet\..*Not run yet\.\nNext: pennon import run/s)
    assert.equal((await commands.call('report')).exitCode, 2)
    await commands.call('run')
    assert.match(
      (await commands.call('status')).stdout,
      /Staged: 3 records of 1 day.*Rehearsed: 1 event to send, 1 record rejected\./s,
    )
    const status = JSON.parse((await commands.call('status', '--json')).stdout)
    assert.deepEqual([status.records, status.progress.recordsDone, status.progress.recordsTotal], [3, 3, 3])
    const grouped = (await commands.call('rejects', '--group')).stdout
    assert.ok(grouped.startsWith('json_syntax: 1\n  Repair the JSON of the record'), grouped)
    assert.ok(grouped.includes(`${raw}, line 2: json_syntax`), grouped)
    assert.match((await commands.call('report')).stdout, /Records read +3\n/)
    const samples = (await commands.call('report', '--samples', '--of', 'Paid', '--day', '2024-05-01')).stdout
    assert.ok(samples.startsWith(`Paid: ${raw}, line 1\n${goodLine}  → {"uuid":`), samples)
    assert.equal(
      (await commands.call('report', '--samples', '--day', '2024-05-02')).stdout,
      'There are no samples of the day 2024-05-02: only a few records are sampled. There are samples of: 2024-05-01.\n',
    )
    const typo = await commands.call('report', '--samples', '--json', '--of', 'Piad')
    assert.deepEqual([typo.stdout, /^There are no samples of Piad: /.test(typo.stderr)], ['', true])
    assert.equal((await commands.call('rejects', '--reason', 'typo')).stdout, 'No records are rejected for typo.\n')
    const [reject] = (await commands.call('rejects', '--json')).stdout.split('\n')
    const refused = { ...JSON.parse(reject!), part: 'links/0', reason: 'server_refused:bad', uuid: 'u' }
    storeSendingOf(commands.job)
    writeJobState(new JobFolder(commands.job), 'refused/links/0/0', refused)
    const withSent = await commands.call('rejects', '--group', '--json')
    const reasons = (JSON.parse(withSent.stdout) as { reason: string }[]).map(({ reason }) => reason)
    assert.deepEqual(reasons.toSorted(), ['json_syntax', 'server_refused:bad'])
  })

  it('an import folder that was sent is not planned again, and the user learns this before any question', async t => {
    const commands = new ImportCommands(tempDir(t))
    const raw = commands.file('raw.jsonl', goodLine)
    await commands.plan([raw])
    storeSendingOf(commands.job)
    const { exitCode, stderr } = await commands.plan([raw], '--host', 'http://127.0.0.1:9', '--project-key', 'phc_x')
    assert.equal(exitCode, 2)
    assert.match(stderr, /has already been sent, at least in part\. Plan the next import in another folder/)
  })

  it('control characters in the source never reach the terminal', async t => {
    const commands = new ImportCommands(tempDir(t))
    const odd = 'a\u001b[31m\u009b2J\u202eb'
    const record = { ...good, event: odd, user: odd, props: { [odd]: odd } }
    const records = [record, { ...record, id: 's', user: odd.repeat(30) }]
    await commands.plan([commands.file('raw.jsonl', records.map(each => `${JSON.stringify(each)}\n`).join(''))])
    for (const text of [
      ...['run --max-reject-share 100%', 'run --json', 'status --json', 'report', 'report --json', 'report --samples'],
      ...['report --samples --json', 'rejects', 'rejects --json', 'rejects --group', 'rejects --group --json'],
    ]) {
      const [command, ...options] = text.split(' ') as [string, ...string[]]
      const { stdout, stderr } = mustSucceed(await commands.call(command, ...options))
      assert.doesNotMatch(`${stdout}${stderr}`.replaceAll('\n', ''), /[\p{Cc}\p{Cf}]/u, text)
      if (options.includes('--json')) for (const line of jsonTexts(stdout)) JSON.parse(line)
      if (command === 'report') assert.match(stdout, /\\u001b/, text)
    }
  })

  it('status suggests the next step after a source file was changed or removed', async t => {
    const commands = new ImportCommands(tempDir(t))
    const raw = commands.file('raw.jsonl', goodLine)
    await commands.plan([raw])
    const ran = await commands.call('run')
    assert.match(ran.stdout, /^1 record: 1 produces events, 0 are skipped.*\n1 event would be sent/)
    assert.equal((await commands.call('rejects')).stdout, 'No records are rejected.\n')
    const next = async () => /^Next: .*$/m.exec((await commands.call('status')).stdout)?.[0] ?? ''
    const before = await next()
    writeFileSync(raw, goodLine.repeat(2))
    assert.match(await next(), /^Next: restore .*raw\.jsonl as it was staged, then pennon import run .*ANOTHER-FOLDER$/)
    assert.match(refusalOf(await commands.call('run')), /raw\.jsonl has changed since it was staged/)
    writeFileSync(raw, goodLine)
    assert.equal(await next(), before)
    rmSync(raw)
    assert.equal(await next(), before)
    assert.equal((await commands.call('run')).exitCode, 0)
  })

  it('an unknown option points to the help of the command', async t => {
    const commands = new ImportCommands(tempDir(t))
    const { exitCode, stderr } = await commands.call('publish', '--quickly')
    assert.equal(exitCode, 2)
    assert.match(stderr, /^error: unknown option '--quickly'\nRun `pennon import publish --help` for its options\.\n/)
    assert.equal((await commands.call('publish', '--help')).exitCode, 0)
  })

  it('finished stages are not repeated unless the plan changes', async t => {
    const commands = new ImportCommands(tempDir(t))
    const raw = commands.file('raw.jsonl', `${JSON.stringify({ ...good, at: '2024-05-01 23:30:00' })}\n`)
    await commands.plan([raw])
    const first = JSON.parse((await commands.call('run', '--json')).stdout) as Rehearsal
    assert.deepEqual(
      first.rejects.map(({ reason }) => reason),
      ['timestamp_zone_unknown'],
    )
    const manifest = readFileSync(join(commands.job, 'manifest.json'), 'utf8')
    await commands.call('run')
    assert.equal(readFileSync(join(commands.job, 'manifest.json'), 'utf8'), manifest)
    const zoned = await commands.call('run', '--json', '--source-timezone', 'Europe/Berlin')
    assert.deepEqual((JSON.parse(zoned.stdout) as Rehearsal).range, {
      first: '2024-05-01T21:30:00.000Z',
      last: '2024-05-01T21:30:00.000Z',
    })
  })

  it('another version of Pennon repeats staging, unless part of the job was sent', async t => {
    const commands = await plannedJob(t, goodLine)
    await commands.call('run')
    const mappingHash = () =>
      /"mapping_sha256": "(\w+)"/.exec(readFileSync(join(commands.job, 'manifest.json'), 'utf8'))?.[1]
    const first = mappingHash()
    const planPath = join(commands.job, 'plan.json')
    const older = readFileSync(planPath, 'utf8').replace(/"toolVersion": "[^"]+"/, '"toolVersion": "0.0.1"')
    writeFileSync(planPath, older)
    rmSync(join(commands.job, 'manifest.json'))
    assert.equal((await commands.call('run')).exitCode, 0)
    assert.equal(mappingHash(), first)
    writeFileSync(planPath, older)
    storeSendingOf(commands.job)
    assert.match((await commands.call('run')).stderr, /it was started with Pennon 0\.0\.1/)
  })

  it('a run stops when local times were read as UTC, and continues with --source-timezone', async t => {
    const commands = new ImportCommands(tempDir(t))
    const records = Array.from({ length: 20 }, (_, index) => {
      const seconds = 1_714_564_800 + index
      const properties = {
        time: seconds + 7_200,
        distinct_id: `u-${index}`,
        $insert_id: `i-${index}`,
        mp_processing_time_ms: seconds * 1_000,
      }
      return `${JSON.stringify({ event: 'e', properties })}\n`
    })
    await commands.plan([commands.file('raw.jsonl', records.join(''))], '--source', 'mixpanel')
    for (let time = 0; time < 2; time++) {
      assert.match(refusalOf(await commands.call('run')), /100 % of the records are \+02:00 away.*--source-timezone/)
    }
    const { next } = JSON.parse((await commands.call('status', '--json')).stdout) as { next: { command: string } }
    assert.equal(next.command, `pennon import run ${commands.job} --source-timezone ZONE`)
    const zoned = await commands.call('run', '--json', '--source-timezone', 'Europe/Berlin')
    assert.equal((JSON.parse(zoned.stdout) as Rehearsal).range?.first, '2024-05-01T12:00:00.000Z')
    assert.doesNotMatch((await commands.call('status')).stdout, /--source-timezone/)
  })

  it('files of import jobs inside the export folder are not read as records', async t => {
    const folder = tempDir(t)
    const commands = new ImportCommands(folder)
    const other = new ImportCommands(join(folder, 'other'))
    await other.plan([other.file('day.jsonl', goodLine)])
    await other.call('run')
    const day = commands.file('day.jsonl', goodLine)
    const mappingFile = commands.file('.mapping.json', JSON.stringify(mapping))
    const again = ['--source', 'generic', '--mapping', mappingFile]
    for (const what of ['a folder that holds a rehearsed job', 'one that holds a rehearsed job']) {
      const planned = await commands.plan([folder], '--json', ...again)
      const { files, notes } = JSON.parse(planned.stdout) as { files: { path: string }[]; notes: string[] }
      assert.deepEqual(
        files.map(({ path }) => path).toSorted(),
        [day, other.file('day.jsonl', goodLine), other.file('mapping.json', JSON.stringify(mapping))].toSorted(),
        what,
      )
      assert.match(notes[0]!, /^Skipped, since .* of (an )?imports?: .*other\/job/)
      await commands.call('run')
    }
    const onItself = refusalOf(await commands.plan([commands.job], ...again))
    assert.match(onItself, /both the folder of the import and the export.*needs its own folder/)
    const onOther = await commands.plan([other.job], ...again)
    assert.match(onOther.stderr, /is the folder of an import, not an export\. Pass the files/)
  })

  it('a run is refused while another process works on the folder', async t => {
    const commands = await plannedJob(t, goodLine)
    const unlock = tryFileLock(join(commands.job, 'lock.db'))!
    const { exitCode, stderr } = await commands.call('run')
    assert.equal(exitCode, 2)
    assert.match(stderr, /another pennon import is using/)
    assert.match((await commands.call('status')).stdout, /Another process is working on it/)
    unlock()
    assert.equal((await commands.call('run')).exitCode, 0)
  })

  it('a run stops when too large a share of the records is rejected, until a larger share is allowed', async t => {
    const commands = new ImportCommands(tempDir(t))
    const lines = Array.from({ length: 1_100 }, (_, index) =>
      index % 50 === 0 ? 'broken' : JSON.stringify({ ...good, id: index }),
    )
    await commands.plan([commands.file('raw.jsonl', lines.join('\n'))])
    const paused = refusalOf(await commands.call('run'))
    assert.match(paused, /2\.0 % of the records are rejected.*--group\. Fix the records, the mapping or/)
    const [allowed] = /--max-reject-share \d+%$/.exec(paused.trim())!
    assert.equal((await commands.call('run', ...allowed.split(' '))).exitCode, 0)
  })

  it('a run in which no record gives an event stops, whatever share of rejects is allowed, and suggests a source', async t => {
    const commands = new ImportCommands(tempDir(t))
    const rows = Array.from({ length: 51 }, (_, index) => {
      const properties = { time: 1_714_564_800 + index, distinct_id: `u-${index}`, $insert_id: `i-${index}` }
      return `${JSON.stringify({ event: 'Paid', properties })}\n`
    })
    const raw = commands.file('raw.jsonl', rows.join(''))
    await commands.plan([raw], '--source', 'amplitude', '--max-reject-share', '100%')
    const stopped = refusalOf(await commands.call('run'))
    assert.match(stopped, /No event comes from the 51 records \(51 are rejected\).* --source mixpanel/)
    assert.match((await commands.call('report')).stdout, /look like records of another source: --source mixpanel/)
  })

  it('a truncated source file stops the run, until --allow-damaged-files is given', async t => {
    const commands = new ImportCommands(tempDir(t))
    const lines = Array.from(
      { length: 4_000 },
      (_, id) => `${JSON.stringify({ ...good, id, props: { r: sha(id) } })}\n`,
    )
    const packed = gzipSync(lines.join(''))
    const raw = commands.file('day.jsonl.gz', '')
    writeFileSync(raw, packed.subarray(0, packed.length / 2))
    await commands.plan([raw])
    const stopped = await commands.call('run')
    assert.equal(stopped.exitCode, 2)
    const named =
      /day\.jsonl\.gz is damaged in line [\d,]+ \(the (?:gzip|deflate) data is cut off\): 1,\d{3} records were read/
    assert.match(stopped.stderr, named)
    assert.match(stopped.stderr, /Download it again and plan again: .*; or .* run \S+ --allow-damaged-files\n$/)
    assert.match((await commands.call('status')).stdout, named)
    assert.match((await commands.call('report')).stdout, /Damaged files\n/)
    const status = JSON.parse((await commands.call('status', '--json')).stdout) as JsonObject
    assert.partialDeepStrictEqual(status, { damagedFiles: [{ object: raw }], stop: { code: 'damaged_files' } })
    mustSucceed(await commands.call('run', '--allow-damaged-files'))
  })

  it('a run option that the source does not support is refused, and leaves the plan unchanged', async t => {
    const record = { event_type: 'e', user_id: 'u-1', event_time: '2024-05-01 12:00:00' }
    const commands = await plannedJob(t, JSON.stringify(record), '--source', 'amplitude')
    const refused = refusalOf(await commands.call('run', '--source-timezone', 'Europe/Berlin'))
    assert.match(refused, /the configuration of amplitude has no key "source_timezone"/)
    mustSucceed(await commands.call('run'))
  })

  it('an invalid plan is refused at once with one line that names the problem', async t => {
    const commands = new ImportCommands(tempDir(t))
    const raw = commands.file('raw.jsonl', goodLine)
    const cases: readonly (readonly [options: readonly string[], message: RegExp])[] = [
      [['--source', 'nothing'], /there is no source "nothing"/],
      [['--source', 'mixpanel', '--source-timezone', 'Berlin'], /IANA zone/],
      [['--source', 'mixpanel', '--promote-groups'], /has no key "promote_groups"/],
      [['--max-reject-share', 'half'], /share such as 1%/],
      [['--keep-person-data'], /only for the source posthog; other sources keep all/],
      [
        ['--source', 'amplitude', '--config', commands.file('config.json', '{"hold_live_window": "true"}')],
        /^pennon: hold_live_window in the configuration must be true or false$/m,
      ],
      [['--project-key', 'phc_x', '--host', 'http://127.0.0.1:9'], /no instance answers at http:\/\/127\.0\.0\.1:9/],
    ]
    for (const [options, message] of cases) {
      const stderr = refusalOf(await commands.plan([raw], ...options))
      assert.match(stderr, message)
      assert.equal(stderr.split('\n').length, 2, stderr)
    }
    assert.ok(!existsSync(join(commands.job, 'plan.json')))
  })
})

/** @param output one indented object, or one object per line. */
function jsonTexts(output: string): readonly string[] {
  return output.startsWith('{\n') ? [output] : output.split('\n').slice(0, -1)
}
