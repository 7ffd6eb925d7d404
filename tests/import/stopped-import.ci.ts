// An import that is paused, or has no room left, goes on where it stopped. What kills leave is in `kill-sources.ci.ts`.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ImportCommands, syntheticRecords } from '../support/import-command.ts'
import { tempDir } from '../support/temp-dir.ts'

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
