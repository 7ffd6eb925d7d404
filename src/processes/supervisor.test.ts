import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { silentLogger } from '#telemetry/log.ts'
import { eventually } from '../../tests/support/eventually.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { SupervisedChild } from './supervisor.ts'

it('tries again when a child could not be started, until it can', async t => {
  const mainPath = join(tempDir(t), 'main.mjs')
  writeFileSync(mainPath, "process.on('message', () => process.exit())\nprocess.send({ type: 'ready' })\n")
  const program = process.execPath
  t.after(() => {
    process.execPath = program
  })
  let restartCount = 0
  let isReady = false
  const child = new SupervisedChild({
    name: 'child',
    mainPath,
    args: () => [],
    env: process.env,
    logger: silentLogger(),
    random: () => 0,
    onMessage: () => {
      isReady = true
    },
    onRestart: () => {
      restartCount++
    },
  })
  t.after(() => child.stop(1_000))
  process.execPath = `${mainPath}-gone` // as while dependencies are installed anew
  await child.start()
  await eventually(() => restartCount >= 2)
  assert.equal(child.pid, undefined)
  process.execPath = program
  await eventually(() => isReady)
})

it('replaces a child that lives and says nothing any more', async t => {
  const mainPath = join(tempDir(t), 'main.mjs')
  writeFileSync(
    mainPath,
    "process.on('SIGTERM', () => undefined)\nprocess.send({ type: 'ready' })\nsetInterval(() => {}, 1e6)\n",
  )
  const pids: number[] = []
  const child = new SupervisedChild({
    ...{ name: 'child', mainPath, args: () => [], env: process.env, logger: silentLogger(), random: () => 0 },
    silentAfterMs: 200,
    onStart: pid => pids.push(pid),
  })
  t.after(() => child.stop(0))
  await child.start()
  await eventually(() => pids.length >= 2)
})
