import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { JobDatabase } from '#importer/job/job-database.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { ProgressTracker, type StageProgress } from '#importer/job/progress.ts'
import { unlimitedSpace } from '#importer/read/disk-space.ts'
import { createRecordReader } from '#importer/read/read-files.ts'
import { generic } from '#importer/sources/generic/generic.ts'
import { jobOf, resultsOf, StopSwitch, type TestJob, type TestJobOptions } from '../../../tests/support/import-job.ts'
import { runs } from '../../../tests/support/nightly.ts'
import { seededRandom, testSeed } from '../../../tests/support/seeded-random.ts'
import { silentProgress } from '../../../tests/support/silent-progress.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { createJobConverter } from './job-conversion.ts'
import { openFullyStagedRecords } from './scan.ts'
import { type StageOptions, stageRecords } from './stage.ts'

function bytesBelow(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
}

const mapping = { event: 'event', distinct_id: 'user', timestamp: 'at', uuid: 'id' }
const config = { mapping }

describe('staging', () => {
  it('sorts records, even rejected ones, into parts by event day, oldest day first and in the order of time', async t => {
    const job = jobOver(t, [
      '{"id":"c","event":"e","user":"u","at":"2024-05-02T10:00:00Z"}\n{"id":"b","event":"e","user":"u","at":"2024-05-01T23:59:59.999Z"}\n',
      '{"id":"a","event":"e","user":"u","at":"2024-05-01T00:00:00Z"}\n\nnot json\n{"id":"d","event":"e","user":"u"}\n{"id":"f","event":"e","at":"2024-05-01T12:00:00Z"}',
    ])
    const manifest = await job.stageAndScan()
    assert.deepEqual(
      manifest.parts.map(({ id, records }) => [id, records]),
      [
        ['2024-05-01/0', 3],
        ['2024-05-02/0', 1],
        ['unknown-day/0', 2],
      ],
    )
    assert.deepEqual(
      (await resultsOf(job)).outcomes.map(({ raw, result }) => [raw.object, raw.line, raw.byte, result.kind]),
      [
        ['1.jsonl', 1, 0, 'events'],
        ['1.jsonl', 5, 106, 'rejected'],
        ['0.jsonl', 2, 62, 'events'],
        ['0.jsonl', 1, 0, 'events'],
        ['1.jsonl', 3, 63, 'rejected'],
        ['1.jsonl', 4, 72, 'rejected'],
      ],
    )
    assert.deepEqual(manifest.totals.records, 6)
    assert.deepEqual(manifest.sourceRange, { first: '2024-05-01T00:00:00.000Z', last: '2024-05-02T10:00:00.000Z' })
  })

  it('counts blank lines, however many, without staging them', async t => {
    const good = '{"event":"e","user":"u","at":"2024-05-01T00:00:00Z"}\n'
    const job = jobOver(t, ['\n'.repeat(20_000), `\n${good} \t\r\n${'\n'.repeat(10_000)}`])
    const manifest = await job.stageAndScan()
    assert.deepEqual(manifest.objects, [
      { object: '0.jsonl', table: '0', blank: { count: 20_000, firstLine: 1 } },
      { object: '1.jsonl', table: '1', blank: { count: 10_002, firstLine: 1 } },
    ])
    assert.deepEqual(
      manifest.parts.map(({ id, records }) => [id, records]),
      [['2024-05-01/0', 1]],
    )
    const { balance, skips } = await job.rehearse()
    assert.deepEqual(
      [balance.read, balance.givingEvents, balance.skipped, balance.isBalanced],
      [30_003, 1, 30_002, true],
    )
    assert.deepEqual(
      skips.map(({ reason, count, files }) => [reason, count, files]),
      [['blank_line', 30_002, ['0.jsonl', '1.jsonl']]],
    )
  })

  it('reports the first few damaged files and their total number', async t => {
    const job = jobOver(
      t,
      Array.from({ length: 30 }, () => gzipSync('{}\n').subarray(0, -9)),
    )
    const said: string[] = []
    await staged(job, { progress: { ...silentProgress, say: (line: string) => said.push(line) } })
    assert.equal(said.length, 21)
    assert.match(said[19]!, /^19\.jsonl is damaged in line 2 /)
    assert.equal(said[20], '30 files are damaged in total.')
  })

  it('refuses more files than a manifest can list, with a remedy', async t => {
    const job = jobOver(t, [])
    const long = 'x'.repeat(10_000)
    const files = Array.from({ length: 3_500 }, () => ({ path: long, object: long }))
    await assert.rejects(
      staged(job, { plan: { ...job.plan, files } }),
      (error: Error) => error instanceof JobStopped && /Plan several imports/.test(error.message),
    )
  })

  it('reports progress by bytes read from files, compressed or not', async t => {
    const lines = Array.from({ length: 5_000 }, (_, index) => recordAt(index, index))
    const job = jobOver(t, [gzipSync(lines.slice(0, 4_000).join('')), lines.slice(4_000).join('')])
    const tracker = new ProgressTracker({ nowMs: () => 0, say: () => {} })
    const shares: number[] = []
    const progress: StageProgress = {
      begin: (stage, totals) => tracker.begin(stage, totals),
      ...{ day: () => {}, waiting: () => {}, say: () => {} },
      add: done => {
        tracker.add(done)
        const { bytesDone, bytesTotal } = tracker.figures()
        shares.push(bytesDone / bytesTotal!)
      },
    }
    const spool = { folder: job.folder.file('spool') }
    await staged(job, { progress, read: createRecordReader({ spool, chunkBytes: 1_024 }) })
    assert.equal(tracker.figures().recordsDone, 5_000)
    assert.ok(new Set(shares).size > 10, 'it grows gradually')
    assert.equal(Math.max(...shares), 1, 'it ends at the end, and is never further')
  })

  it('resumes within JSON pages and within records on one line as if it had not been stopped', async t => {
    const folder = tempDir(t)
    const read = createRecordReader({ spool: { folder }, chunkBytes: 1_000, recordBytesMax: 2_000 })
    const lines = Array.from({ length: 600 }, (_, index) => recordAt(index, (index * 7919) % 86_400).trim())
    const pages = [lines.slice(0, 200), lines.slice(200, 300)].map(page => `[${page}]`).join('\n')
    const texts = [pages, lines.slice(300, 450).join(''), `${lines.slice(450, 500).join('')}\n[${lines.slice(500)}]\n`]
    const straight = jobOver(t, texts, { read })
    const manifest = await straight.stageAndScan()
    assert.equal(manifest.totals.records, 600)
    for (const records of [1, 250, 301, 599]) {
      const stop = new StopSwitch()
      stop.left = records
      const job = jobOver(t, texts, { read, onRecord: stop.onRecord })
      await assert.rejects(job.stage(), /stopped here/)
      const { parts } = await job.stageAndScan()
      assert.deepEqual(parts, manifest.parts)
    }
  })

  it('divides a day into parts of limited size, in order', async t => {
    const lines = Array.from({ length: 500 }, (_, index) => recordAt(index, (index * 7919) % 86_400))
    const job = jobOver(t, [lines.join('')], { sizes: { committedBytes: 4_000, partBytes: 10_000 } })
    const { parts } = await job.stageAndScan()
    assert.ok(parts.length > 4, `${parts.length}`)
    const database = new JobDatabase(job.folder)
    t.after(() => database.close())
    for (const part of parts) assert.ok(database.readLines(part).length < 11_000, 'one record more than a part holds')
    const times = parts.flatMap(({ firstUs, lastUs }) => [firstUs!, lastUs!])
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    )
    assert.equal(
      parts.reduce((sum, { records }) => sum + records, 0),
      500,
    )
  })

  it('waits for disk space before each write, and removes nothing while it waits', async t => {
    const lines = Array.from({ length: 500 }, (_, index) => recordAt(index, (index * 7919) % 86_400))
    let askedLast = 0
    const grown: number[] = []
    const disk = { fullAt: Number.POSITIVE_INFINITY, asked: 0 }
    const waitForSpace = async () => {
      if (++disk.asked > disk.fullAt) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
      const bytes = bytesBelow(job.folder.path)
      grown.push(bytes - askedLast)
      askedLast = bytes
    }
    const sizes = { committedBytes: 5_000, partBytes: 10_000 }
    const job = jobOver(t, [lines.join('')], { sizes, waitForSpace })
    disk.fullAt = 3
    await assert.rejects(job.stage(), /no space/)
    const halfDone = bytesBelow(job.folder.path)
    assert.ok(halfDone > 10_000, `${halfDone}`)
    disk.fullAt = disk.asked
    await assert.rejects(job.stage(), /no space/)
    assert.equal(bytesBelow(job.folder.path), halfDone)
    disk.fullAt = Number.POSITIVE_INFINITY
    await job.stageAndScan()
    assert.ok(Math.max(...grown) < 400_000, grown.join(' '))
  })

  it('gives the same bytes wherever it was stopped and whatever its buffer sizes', async t => {
    const seed = testSeed()
    t.diagnostic(`SEED=${seed}`)
    const random = seededRandom(seed)
    const files = Array.from({ length: 4 }, (_, file) =>
      Array.from({ length: 200 }, (_, index) =>
        recordAt(file * 200 + index, Math.floor(random() * 5 * 86_400), index % 50 === 0),
      ).join(''),
    )
    const straight = jobOver(t, files)
    const expected = await straight.stageAndScan()
    for (let round = 0; round < runs(3, 12); round++) {
      const stop = new StopSwitch()
      const sizes = { committedBytes: 1 + Math.floor(random() * 20_000) }
      const stopped = jobOver(t, files, { sizes, onRecord: stop.onRecord })
      for (const stage of ['stage', 'scan'] as const)
        await stop.runUntilDone(
          () => stopped[stage](),
          () => Math.floor(random() * 900),
        )
      assert.deepEqual([stopped.manifest.parts, stopped.manifest.scan], [expected.parts, expected.scan])
    }
  })

  it('starts again if a source file changes before staging has finished', async t => {
    const stop = new StopSwitch()
    stop.left = 0
    const job = jobOver(t, [recordAt(1, 0), recordAt(2, 0)], { onRecord: stop.onRecord })
    await assert.rejects(job.stage(), /stopped here/)
    writeFileSync(job.plan.files[0]!.path, recordAt(3, 0))
    await job.stageAndScan()
    assert.deepEqual(
      (await resultsOf(job)).outcomes.map(({ source }) => JSON.parse(source().text).id),
      ['3', '2'],
    )
  })

  it('starts again if the description of its records is damaged', async t => {
    const job = jobOver(t, [recordAt(1, 0)])
    const undamaged = await job.stageAndScan()
    await job.stage()
    changeRecords(job, "UPDATE staging SET described = '{'")
    assert.equal(openFullyStagedRecords(job.folder, job.plan), null)
    assert.deepEqual(await job.stageAndScan(), undamaged)
  })

  for (const [what, damage] of Object.entries<(job: TestJob) => void>({
    'a page': job => {
      const path = recordsFile(job)
      const bytes = readFileSync(path)
      writeFileSync(path, bytes.fill(0xa5, bytes.length / 2, bytes.length / 2 + 4_096))
    },
    'a list of files': job => changeRecords(job, "UPDATE raw_file SET described = '{'"),
  }))
    it(`can be repeated after the scan has found ${what} of its file damaged and has named the file`, async t => {
      const text = Array.from({ length: 2_000 }, (_, id) => recordAt(id, id)).join('')
      const job = jobOver(t, [text])
      await job.stage()
      damage(job)
      await assert.rejects(job.scan(), job.folder.damaged('staging.db'))
      rmSync(recordsFile(job))
      assert.equal((await job.stageAndScan()).totals.records, 2_000)
    })
})

function recordsFile({ folder }: TestJob): string {
  return folder.file('staging.db')
}

function changeRecords(job: TestJob, sql: string): void {
  const database = new Database(recordsFile(job))
  database.exec(sql)
  database.close()
}

function recordAt(id: number, seconds: number, isBroken = false): string {
  const at = new Date(Date.UTC(2024, 4, 1) + seconds * 1_000).toISOString()
  return `${JSON.stringify({ id: String(id), event: 'e', user: isBroken ? null : `u-${id % 17}`, at })}\n`
}

function jobOver(t: TestContext, texts: readonly (string | Buffer)[], options: TestJobOptions = {}): TestJob {
  return jobOf(t, texts, generic, { config, ...options })
}

/** Stages without a scan. */
async function staged(job: TestJob, given: Partial<StageOptions>): Promise<void> {
  const { folder, plan, source, signal, progress } = job
  const { converter } = createJobConverter(plan, source, () => null)
  const read = createRecordReader({ spool: { folder: folder.file('spool') } })
  const waitForSpace = unlimitedSpace
  using _records = await stageRecords({ folder, plan, read, converter, progress, signal, waitForSpace, ...given })
}
