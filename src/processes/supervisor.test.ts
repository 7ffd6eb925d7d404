import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createLogger, createSilentLogger } from '#telemetry/log.ts'
import { eventually } from '../../tests/support/eventually.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { SupervisedChild } from './supervisor.ts'

it('a child that cannot be started is retried until it starts', async t => {
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
    logger: createSilentLogger(),
    random: () => 0,
    onMessage: () => {
      isReady = true
    },
    onRestart: () => {
      restartCount++
    },
  })
  t.after(() => child.stop(1_000))
  process.execPath = `${mainPath}-gone` // as while dependencies are being reinstalled
  await child.start()
  await eventually(() => restartCount >= 2)
  assert.equal(child.pid, undefined)
  process.execPath = program
  await eventually(() => isReady)
})

it('a child whose arguments cannot be computed is retried after growing pauses, which is logged once a minute', async t => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const lines: string[] = []
  let attempts = 0
  const ended = Promise.withResolvers<void>()
  const child = new SupervisedChild({
    ...{ name: 'child', mainPath: '/none.mjs', env: process.env, random: () => 0, onExit: ended.resolve },
    logger: createLogger({ level: 'error', process: 'test' }, { write: line => void lines.push(line) }),
    args: () => {
      if (++attempts > 1) throw new Error('ENOSPC: no space left on device')
      return []
    },
  })
  t.after(() => child.stop(0))
  await child.start()
  await ended.promise // It has no program.
  for (let ms = 0; ms < 120_000; ms += 50) {
    t.mock.timers.tick(50)
    await setImmediate()
  }
  assert.ok(attempts > 20 && attempts < 40, `${attempts} attempts in two minutes`)
  assert.equal(lines.length, 2, lines.join(''))
})

it('a child may take longer for its first message than for later ones, and is replaced if it stays silent', async t => {
  const folder = tempDir(t)
  const slowPath = join(folder, 'slow.mjs')
  writeFileSync(
    slowPath,
    "setTimeout(() => setInterval(() => process.send({ type: 'alive' }), 20), 1_500)\nprocess.on('message', () => process.exit())\n",
  )
  const mutePath = join(folder, 'mute.mjs')
  writeFileSync(mutePath, 'setInterval(() => {}, 1e6)\n')
  const started = { slow: 0, mute: 0 }
  /** How often the slow child was started until its first message. */
  let startsUntilHeard: number | undefined
  const supervised = (name: 'slow' | 'mute', mainPath: string, startMsMax: number) =>
    new SupervisedChild({
      ...{ name, mainPath, args: () => [], env: process.env, logger: createSilentLogger(), random: () => 0 },
      ...{ silentAfterMs: 300, startMsMax },
      onStart: () => {
        started[name]++
      },
      onMessage: () => {
        if (name === 'slow') startsUntilHeard ??= started.slow
      },
    })
  const children = [supervised('slow', slowPath, 60_000), supervised('mute', mutePath, 400)]
  t.after(() => Promise.all(children.map(child => child.stop(0))))
  await Promise.all(children.map(child => child.start()))
  await eventually(() => startsUntilHeard !== undefined && started.mute >= 2)
  assert.equal(startsUntilHeard, 1)
})

it('a child that is expected to end is not restarted, and its end is not logged', async t => {
  const mainPath = join(tempDir(t), 'main.mjs')
  writeFileSync(mainPath, 'setInterval(() => {}, 1e6)\n')
  const lines: string[] = []
  let startCount = 0
  const ended = Promise.withResolvers<void>()
  const child = new SupervisedChild({
    ...{ name: 'child', mainPath, args: () => [], env: process.env, random: () => 0, onExit: ended.resolve },
    logger: createLogger({ level: 'info', process: 'test' }, { write: line => void lines.push(line) }),
    onStart: () => {
      startCount++
    },
    onRestart: () => assert.fail('it is started again'),
  })
  t.after(() => child.stop(0))
  await child.start()
  child.expectEnd()
  process.kill(child.pid!, 'SIGINT')
  await ended.promise
  await setImmediate()
  assert.deepEqual([startCount, child.pid, lines], [1, undefined, []])
})

it('a child ended by Ctrl-C causes no warning, since the supervisor may receive the same signal later', async t => {
  const mainPath = join(tempDir(t), 'main.mjs')
  writeFileSync(mainPath, 'setInterval(() => {}, 1e6)\n')
  for (const [signal, level] of [
    ['SIGINT', 'info'],
    ['SIGTERM', 'warn'],
  ] as const) {
    const lines: string[] = []
    const restarted = Promise.withResolvers<void>()
    const child = new SupervisedChild({
      ...{ name: 'child', mainPath, args: () => [], env: process.env, random: () => 0, onRestart: restarted.resolve },
      logger: createLogger({ level: 'info', process: 'test' }, { write: line => void lines.push(line) }),
    })
    t.after(() => child.stop(0))
    await child.start()
    process.kill(child.pid!, signal)
    await restarted.promise
    assert.deepEqual(
      lines.map(line => JSON.parse(line).level),
      [level],
    )
  }
})

it('a running child that stops sending messages is replaced', async t => {
  const mainPath = join(tempDir(t), 'main.mjs')
  writeFileSync(
    mainPath,
    "process.on('SIGTERM', () => undefined)\nprocess.send({ type: 'ready' })\nsetInterval(() => {}, 1e6)\n",
  )
  const pids: number[] = []
  const child = new SupervisedChild({
    ...{ name: 'child', mainPath, args: () => [], env: process.env, logger: createSilentLogger(), random: () => 0 },
    silentAfterMs: 200,
    onStart: pid => pids.push(pid),
  })
  t.after(() => child.stop(0))
  await child.start()
  await eventually(() => pids.length >= 2)
})
