import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { collectText, isAlive } from './child-processes.ts'
import { eventually } from './eventually.ts'
import { tempDir } from './temp-dir.ts'

/** Runs the test runner on one test file in a separate process, and returns its output. */
async function runFile(
  folder: string,
  source: string,
  environment: Record<string, string> = {},
): Promise<{ exitCode: number | null; output: string }> {
  const file = join(folder, 'a.test.mjs')
  writeFileSync(file, source)
  const env: NodeJS.ProcessEnv = { ...process.env, TESTS_GRACE_MS: '300', CI: '', ...environment }
  for (const name of ['NODE_TEST_CONTEXT', 'TESTS_PROCESS', 'TESTS_FILE'] as const) Reflect.deleteProperty(env, name)
  const runner = spawn(process.execPath, ['scripts/run-tests.ts', 'unit', file], { env })
  const output = collectText(runner.stdout, runner.stderr)
  const exitCode = await new Promise<number | null>(resolve => runner.once('close', resolve))
  return { exitCode, output: output() }
}

const imports = `
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
`

describe('the test runner', { concurrency: false }, () => {
  it('a failing test, and a file that cannot be loaded, fail the run', async t => {
    const folder = tempDir(t)
    const failing = await runFile(folder, `${imports}\ntest('fails', () => { throw new Error('on purpose') })`)
    assert.equal(failing.exitCode, 1, failing.output)
    assert.match(failing.output, /on purpose/)
    assert.equal((await runFile(folder, `${imports}\nimport './nowhere.mjs'`)).exitCode, 1)
    assert.equal((await runFile(folder, `${imports}\ntest('passes', () => {})`)).exitCode, 0)
  })

  it('an error outside any awaited code fails the run', async t => {
    const folder = tempDir(t)
    for (const failure of ['void wait(1).then(fail)', 'setTimeout(fail, 1)']) {
      const source = `${imports}
import { setTimeout as wait } from 'node:timers/promises'
const fail = () => { throw new Error('on purpose') }
test('passes', async () => { await wait(1)
  ${failure}
  await wait(50)
})`
      const { exitCode, output } = await runFile(folder, source)
      assert.equal(exitCode, 1, output)
      assert.match(output, /on purpose/)
    }
  })

  it('a failed file runs again, and is reported as flaky if it passes then', async t => {
    const folder = tempDir(t)
    const source = `import { existsSync } from 'node:fs'
${imports}
test('fails at first', () => { const isFirst = !existsSync('${folder}/ran')
  writeFileSync('${folder}/ran', '')
  if (isFirst) throw new Error('on purpose')
})`
    assert.equal((await runFile(folder, source)).exitCode, 1, 'a named file without CI runs once')
    rmSync(join(folder, 'ran'))
    const { exitCode, output } = await runFile(folder, source, { CI: '1' })
    assert.equal(exitCode, 0, output)
    assert.match(output, /on purpose/)
    assert.match(output, /flaky: .*a\.test\.mjs\n1 flaky/)
    writeFileSync(
      join(folder, 'contract.mjs'),
      `${imports}\nexport const contract = () => test('fails', () => { throw new Error('on purpose') })`,
    )
    const twice = await runFile(folder, `import { contract } from './contract.mjs'\ncontract()`, { CI: '1' })
    assert.equal(twice.exitCode, 1, twice.output)
    assert.doesNotMatch(twice.output, /flaky/)
  })

  it('a skipped test fails the run under CI, but not elsewhere', async t => {
    const folder = tempDir(t)
    const source = `${imports}\ntest('passes, with skipped 0 in its name', () => {})\ntest.skip('is skipped', () => {})`
    assert.equal((await runFile(folder, source)).exitCode, 0)
    const { exitCode, output } = await runFile(folder, source, { CI: '1', FORCE_COLOR: '1' })
    assert.equal(exitCode, 1, output)
    assert.match(output, /1 skipped tests: under CI a skip is a failure/)
  })

  it('a test that never ends, and a file that never yields, are stopped', async t => {
    const folder = tempDir(t)
    const waiting = await runFile(
      folder,
      `${imports}\ntest('waits for ever', () => new Promise(() => setInterval(() => {}, 100)))`,
      { TESTS_TIMEOUT_MS: '500' },
    )
    assert.equal(waiting.exitCode, 1, waiting.output)
    assert.match(waiting.output, /test timed out after 500ms/)
    const busy = await runFile(folder, `${imports}\ntest('never yields', () => { for (;;); })`, {
      TESTS_TIMEOUT_MS: '500',
    })
    assert.equal(busy.exitCode, 1, busy.output)
    assert.match(busy.output, /a\.test\.mjs: killed, since no test has ended for too long/)
  })

  it('stopping the runner stops all child processes', async t => {
    const folder = tempDir(t)
    const source = `${imports}
test('waits for ever', () => new Promise(() => { const child = spawn('sleep', ['602'], { detached: true })
  writeFileSync('${folder}/pid', String(child.pid))
  process.kill(process.ppid, 'SIGTERM')
  setInterval(() => {}, 100)
}))`
    const { exitCode, output } = await runFile(folder, source)
    assert.notEqual(exitCode, 0, output)
    await eventually(() => !isAlive(Number(readFileSync(join(folder, 'pid'), 'utf8'))))
  })

  it('a child that outlives a test that threw is stopped, and the file is named', async t => {
    const folder = tempDir(t)
    const { exitCode, output } = await runFile(
      folder,
      `${imports}
test('throws in the middle', () => { const child = spawn('sleep', ['600'])
  writeFileSync('${folder}/pid', String(child.pid))
  throw new Error('in the middle')
})`,
    )
    assert.equal(exitCode, 1, output)
    assert.match(
      output,
      /a\.test\.mjs: its tests have ended, but something that they started keeps its process alive: .*Process/,
    )
    assert.match(output, /sleep 600/)
    await eventually(() => !isAlive(Number(readFileSync(join(folder, 'pid'), 'utf8'))))
  })

  it('a child that outlives passing tests is killed even if it holds the output, and the run fails', async t => {
    const folder = tempDir(t)
    const { exitCode, output } = await runFile(
      folder,
      `${imports}
test('passes', () => { const child = spawn('sleep', ['601'], { detached: true, stdio: 'inherit' })
  child.unref()
  writeFileSync('${folder}/pid', String(child.pid))
})`,
    )
    assert.equal(exitCode, 1, output)
    assert.match(
      output,
      /a\.test\.mjs: its tests have ended, but process \d+ that they started kept running .*: sleep 601/,
    )
    await eventually(() => !isAlive(Number(readFileSync(join(folder, 'pid'), 'utf8'))))
  })

  it('an instance is stopped before its folder is removed, even if the test has thrown an error', async t => {
    const folder = tempDir(t)
    const support = new URL('.', import.meta.url).href
    const { exitCode, output } = await runFile(
      folder,
      `${imports}
import { tempDir } from '${support}temp-dir.ts'
import { registerProcess } from '${support}processes-in-folders.ts'
test('throws in the middle', t => { const mine = tempDir(t)
  const child = spawn('sh', ['-c', 'trap "echo ended > ' + mine + '/at-the-end && cp ' + mine + '/at-the-end ${folder}/end; exit" TERM; echo ready; while :; do sleep 0.05; done'])
  registerProcess(mine, child)
  return new Promise((_, reject) => child.stdout.once('data', () => reject(new Error('in the middle'))))
})`,
    )
    assert.equal(exitCode, 1, output)
    assert.equal(readFileSync(join(folder, 'end'), 'utf8'), 'ended\n', output)
    assert.doesNotMatch(output, /its tests have ended/)
  })
})
