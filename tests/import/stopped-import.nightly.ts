// A paused import continues where it stopped. Kills are tested in `kill-sources.ci.ts`.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ImportCommands, syntheticRecords } from '../support/import-command.ts'
import { tempDir } from '../support/temp-dir.ts'

it('Ctrl-C pauses an import and prints how to continue, and the next run continues it', async t => {
  const commands = new ImportCommands(tempDir(t))
  await commands.plan([commands.file('raw.jsonl', syntheticRecords(60_000, 1))])
  const { child, ended } = commands.start('run')
  const isStaging = () => readdirSync(commands.job).includes('staging.db')
  while (!isStaging() && child.exitCode === null) await sleep(5)
  child.kill('SIGINT')
  const { exitCode, stderr } = await ended
  assert.equal(exitCode, 130)
  assert.match(stderr, /paused\. Progress is kept\. To continue: pennon import run/)
  assert.match((await commands.call('status')).stdout, /Last run: paused\./)
  assert.equal((await commands.call('run')).exitCode, 0)
})
