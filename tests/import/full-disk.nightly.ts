// An import whose disk fills up waits, reports it, and continues when there is space, while it stages and while it
// sends.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statfsSync, truncateSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { JobFolder } from '#importer/job/job-folder.ts'
import { readCheckpoint } from '#importer/send/checkpoint.ts'
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { ImportCommands, syntheticRecords } from '../support/import-command.ts'
import { serve } from '../support/local-server.ts'
import { startPennon, testPersonalKey } from '../support/pennon.ts'
import { mustSucceed, refusalOf } from '../support/pennon-command.ts'
import { fillDisk, mountSmallDisk, noSmallDisk } from '../support/small-disk.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

/** Without a reserve, an import fills the disk to its last byte, as other programs on it may. */
const noReserve = { PENNON_MIN_FREE_BYTES: '0' }
const words = /WARNING: the disk of .* is full\. No progress is lost: free disk space, and the command continues\./

describe('an import whose disk fills up', { skip: noSmallDisk() }, () => {
  const pennon = startedForTests(startPennon)

  it('staging waits for space, reports it, and continues by itself', async t => {
    const disk = aDisk(t, 8)
    const raw = new ImportCommands(tempDir(t)).file('raw.jsonl', syntheticRecords(20_000, 2))
    const commands = new ImportCommands(disk, noReserve)
    await commands.plan([raw])
    const freeDisk = fillDisk(disk)
    const run = commands.start('run')
    const stderrSoFar = collectText(run.child.stderr!)
    await eventually(() => words.test(stderrSoFar()), { what: 'the words' })
    assert.equal(existsSync(join(commands.job, 'manifest.json')), false)
    freeDisk()
    mustSucceed(await run.ended)
    assert.ok(existsSync(join(commands.job, 'report.json')))
  })

  it('sending waits for space, and in the end every event is stored once', async t => {
    const disk = aDisk(t, 64)
    const raw = new ImportCommands(tempDir(t)).file('raw.jsonl', syntheticRecords(20_000, 3))
    const commands = new ImportCommands(disk, { ...noReserve, PENNON_PERSONAL_KEY: testPersonalKey })
    await commands.approved(pennon, [raw], '--max-reject-share', '5%')
    const run = commands.start('run', '--rate', '4000')
    const stderrSoFar = collectText(run.child.stderr!)
    const checkpoint = () => readCheckpoint(new JobFolder(commands.job))
    await eventually(() => checkpoint() !== null, { what: 'something sent' })
    const freeDisk = fillDisk(disk)
    await eventually(() => words.test(stderrSoFar()), { what: 'the words' })
    assert.ok(!checkpoint()!.isSent)
    freeDisk()
    mustSucceed(await run.ended)
    const { balance, verification } = JSON.parse(readFileSync(join(commands.job, 'report.json'), 'utf8')).sent
    assert.deepEqual([balance.isBalanced, verification.ok], [true, true])
    assert.equal(verification.stored_rows, verification.expected_rows)
  })

  it('verifying waits for space, and known results are shown meanwhile', async t => {
    const disk = aDisk(t, 64)
    const raw = new ImportCommands(tempDir(t)).file('raw.jsonl', syntheticRecords(2_000, 4))
    const commands = new ImportCommands(disk, { ...noReserve, PENNON_PERSONAL_KEY: testPersonalKey })
    let freeDisk: (() => void) | undefined
    // Verifying begins with this question, which nothing else asks.
    const url = await serveThrough(t, pennon.url, path => {
      if (path.includes('/ingestion_status/')) freeDisk ??= fillDisk(disk)
    })
    const project = await commands.approved({ api: pennon.api, url }, [raw], '--max-reject-share', '5%')
    const run = commands.start('run')
    const stderrSoFar = collectText(run.child.stderr!)
    await eventually(() => words.test(stderrSoFar()), { what: 'the words' })
    run.child.kill('SIGINT')
    assert.equal((await run.ended).exitCode, 130)
    for (const command of ['status', 'report', 'rejects']) mustSucceed(await commands.call(command))
    assert.match(refusalOf(await commands.call('publish', ...project)), /have not been compared/)
    freeDisk!()
    mustSucceed(await commands.call('run'))
    const freeAgain = fillDisk(disk)
    const { exitCode, stderr } = await commands.call('publish', ...project)
    assert.equal(exitCode, 1, stderr)
    assert.match(stderr, /^pennon: the disk of .* is full\. .* then repeat the command\n$/)
    freeAgain()
    mustSucceed(await commands.call('publish', ...project))
  })

  it('on a read-only disk the status of an import is shown, and any change is refused', async t => {
    const disk = aDisk(t, 64)
    const raw = new ImportCommands(tempDir(t)).file('raw.jsonl', syntheticRecords(500, 5))
    const commands = new ImportCommands(disk, { PENNON_MIN_FREE_BYTES: '0', PENNON_PERSONAL_KEY: testPersonalKey })
    const project = await commands.approved(pennon, [raw], '--max-reject-share', '5%')
    const mount = (how: string) => execFileSync('mount', ['-o', `remount,${how}`, disk])
    const checkAll = async (changes: readonly (readonly [string, ...string[]])[]) => {
      mount('ro')
      for (const command of ['status', 'report', 'rejects']) mustSucceed(await commands.call(command))
      for (const change of changes) {
        const stderr = refusalOf(await commands.call(...change))
        assert.match(stderr, /^pennon: the files in .* cannot be written \([^\n]*\n$/m, change.join(' '))
      }
      mount('rw')
    }
    await checkAll([['run']])
    mustSucceed(await commands.call('run'))
    await checkAll([['run'], ['discard', ...project]])
  })

  it('an import leaves a reserve for a service on the same disk, and continues by itself when there is more space', async t => {
    const disk = aDisk(t, 64)
    const raw = new ImportCommands(tempDir(t)).file('raw.jsonl', largeRecords(3_500))
    const commands = new ImportCommands(disk, { PENNON_MIN_FREE_BYTES: '16MiB' })
    await commands.plan([raw])
    const freeDisk = fillDisk(disk)
    // Space for two writes of 16 MiB; the second one dips into the reserve.
    truncateSync(join(disk, 'ballast'), 26 * 2 ** 20)
    const run = commands.start('run')
    const stderrSoFar = collectText(run.child.stderr!)
    let freeBytesMin = Number.POSITIVE_INFINITY
    const isWaiting = () => {
      const { bavail, bsize } = statfsSync(disk)
      freeBytesMin = Math.min(freeBytesMin, bavail * bsize)
      return /is full except for a reserve: .*free disk space, and the command continues\./.test(stderrSoFar())
    }
    await eventually(isWaiting, { what: 'the words' })
    assert.ok(freeBytesMin > 2 ** 20, String(freeBytesMin))
    freeDisk()
    const { stderr } = mustSucceed(await run.ended)
    assert.doesNotMatch(stderr, words)
  })

  it('on a disk smaller than the reserve, the message names how much space is missing and a remedy', async t => {
    const disk = aDisk(t, 8)
    const commands = new ImportCommands(disk, { PENNON_MIN_FREE_BYTES: '8MiB' })
    await commands.plan([new ImportCommands(tempDir(t)).file('raw.jsonl', syntheticRecords(100, 6))])
    const stderr = refusalOf(await commands.call('run'))
    assert.match(stderr, /the disk of .* has 8\.0 MiB in total, .* 10\.0 MiB .* lower PENNON_MIN_FREE_BYTES/)
  })

  it('an import stopped while it waits for space ends as paused', async t => {
    const disk = aDisk(t, 8)
    const raw = new ImportCommands(tempDir(t)).file('raw.jsonl', syntheticRecords(20_000, 4))
    const commands = new ImportCommands(disk, noReserve)
    await commands.plan([raw])
    fillDisk(disk)
    const run = commands.start('run')
    const stderrSoFar = collectText(run.child.stderr!)
    await eventually(() => words.test(stderrSoFar()), { what: 'the words' })
    run.child.kill('SIGINT')
    const { exitCode, stderr } = await run.ended
    assert.equal(exitCode, 130)
    assert.match(stderr, /paused\. Progress is kept/)
  })
})

/** Records of 10 kB, each on many days: sorting them in separate runs would take twice their space. */
function largeRecords(count: number): string {
  const props = { text: 'x'.repeat(10_000) }
  const lines = Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      id: `r-${index}`,
      event: 'e',
      user: 'u',
      at: new Date(Date.UTC(2024, 0, 1 + (index % 28))),
      props,
    }),
  )
  return `${lines.join('\n')}\n`
}

/** A server that passes every request on to `target`. @param beforeEach called first, with the request's path. */
function serveThrough(t: TestContext, target: string, beforeEach: (path: string) => void): Promise<string> {
  return serve(t, (request, response) => {
    beforeEach(request.url!)
    const passed = httpRequest(new URL(request.url!, target), { method: request.method, headers: request.headers })
    passed.on('response', answer => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    request.pipe(passed)
  })
}

function aDisk(t: TestContext, mebibytes: number): string {
  const disk = mountSmallDisk(mebibytes * 2 ** 20)
  t.after(disk.remove)
  return disk.path
}
