// An import that is killed at any moment and started again leaves what a straight run leaves.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ImportCommands, syntheticRecords } from '../support/import-command.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { tempDir } from '../support/temp-dir.ts'

const recordCount = 20_000
const killCount = 10

it('an import that is killed again and again stages, scans and rehearses the same', async t => {
  const seed = testSeed()
  t.diagnostic(`SEED=${seed}`)
  const random = seededRandom(seed)
  const straight = new ImportCommands(tempDir(t))
  const files = Array.from({ length: 3 }, (_, index) =>
    straight.file(`${index}.jsonl`, syntheticRecords(Math.ceil(recordCount / 3), seed + index)),
  )
  await straight.plan(files)
  const startMs = performance.now()
  assert.equal((await straight.call('run')).exitCode, 0)
  const runMs = performance.now() - startMs

  const killed = new ImportCommands(tempDir(t))
  mkdirSync(killed.job)
  cpSync(join(straight.job, 'plan.json'), join(killed.job, 'plan.json'))
  let kills = 0
  for (let tries = 0; tries < killCount; tries++) {
    const { child, ended } = killed.start('run')
    await Promise.race([sleep(150 + random() * runMs), ended])
    if (child.exitCode === null && child.kill('SIGKILL')) kills++
    const { exitCode } = await ended
    if (exitCode === 0) for (const name of ['manifest.json', 'stats.json']) rmSync(join(killed.job, name))
  }
  t.diagnostic(`${kills} kills`)
  assert.ok(kills >= 3)
  const last = await killed.call('run')
  assert.equal(last.exitCode, 0, last.stderr)
  assert.deepEqual(filesOf(killed.job), filesOf(straight.job))
})

it('an import that is paused with Ctrl-C says how to go on, and goes on', async t => {
  const commands = new ImportCommands(tempDir(t))
  await commands.plan([commands.file('raw.jsonl', syntheticRecords(60_000, 1))])
  const { child, ended } = commands.start('run')
  const isStaging = () => readdirSync(commands.job).includes('spill')
  while (!isStaging() && child.exitCode === null) await sleep(5)
  child.kill('SIGINT')
  const { exitCode, stderr } = await ended
  assert.equal(exitCode, 130)
  assert.match(stderr, /paused\. What is done is kept; it goes on with: pennon import run/)
  assert.match((await commands.call('status')).stdout, /Last run: paused\./)
  assert.equal((await commands.call('run')).exitCode, 0)
})

it('an import whose disk is full says so, and goes on when there is room', { skip: cannotMount() }, async t => {
  const disk = mkdtempSync(join(tmpdir(), 'pennon-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk])
  t.after(() => {
    execFileSync('umount', ['-l', disk])
    rmSync(disk, { recursive: true })
  })
  const outside = new ImportCommands(tempDir(t))
  const raw = outside.file('raw.jsonl', syntheticRecords(20_000, 2))
  const commands = new ImportCommands(disk)
  await commands.plan([raw])
  writeFileSync(join(disk, 'ballast'), Buffer.alloc(6 * 2 ** 20))
  const { exitCode, stderr } = await commands.call('run')
  assert.equal(exitCode, 1)
  assert.match(stderr, /the disk of .* is full\. Nothing that is done is lost: make room/)
  rmSync(join(disk, 'ballast'))
  const again = await commands.call('run')
  assert.equal(again.exitCode, 0, again.stderr)
})

function filesOf(job: string): Record<string, string> {
  const names = readdirSync(job, { recursive: true }) as string[]
  const kept = names.filter(name =>
    /^(?:staged|scanned|rejects)\/.*\/|^(?:manifest|stats)\.json$|^rehearsal\/.*json/.test(name),
  )
  return Object.fromEntries(
    kept.toSorted().map(name => {
      const text = readFileSync(join(job, name)).toString('latin1')
      return [
        name,
        name === 'rehearsal/report.json' ? text.replaceAll(/"(?:seconds|recordsPerSecond)": [\d.]+,?/g, '') : text,
      ]
    }),
  )
}

function cannotMount(): string | false {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs Linux and root, to mount a small disk'
  const folder = mkdtempSync(join(tmpdir(), 'pennon-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', folder], { stdio: 'ignore' })
    execFileSync('umount', ['-l', folder])
    return false
  } catch {
    return 'mounting is not permitted here'
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
