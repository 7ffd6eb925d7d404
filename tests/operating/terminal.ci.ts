// The log output of an instance on a terminal, and elsewhere.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { it } from 'node:test'
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { tempDir } from '../support/temp-dir.ts'

const serve = `'${process.execPath}' --disable-warning=ExperimentalWarning src/main.ts serve`

it('logs are readable lines on a terminal, and JSON elsewhere', async t => {
  const folder = tempDir(t)
  for (const [name, program, args] of [
    // `script` runs the command on a separate terminal.
    ['terminal', 'script', ['-qefc', serve, '/dev/null']],
    ['pipe', 'sh', ['-c', `exec ${serve}`]],
  ] as const) {
    const child = spawn(program, args, {
      env: {
        ...process.env,
        ...{ NODE_TEST_CONTEXT: undefined, TERM: 'xterm', NO_COLOR: undefined, PORT: '0' },
        ...{ PENNON_DATA: join(folder, name), PENNON_LOG_LEVEL: 'debug' },
      },
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
    })
    const exited = new Promise(resolve => child.once('exit', resolve))
    t.after(async () => {
      if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL')
      await exited
    })
    const output = collectText(child.stdout)
    const url = await eventually(() => /serving on (http:\S+)/.exec(output())?.[1], { what: output() })
    await fetch(`${url}/_liveness`, { headers: { 'x-request-id': 'from-a-terminal' } })
    await eventually(() => output().includes('from-a-terminal'))
    process.kill(-child.pid!, 'SIGTERM')
    await exited
    const lines = output()
      .split(/\r?\n/)
      .filter(line => line.includes('from-a-terminal'))
    assert.equal(lines.length, 1)
    if (name === 'pipe') {
      const { level, process: who, requestId, status } = JSON.parse(lines[0]!)
      assert.deepEqual([level, who, requestId, status], ['debug', 'serve', 'from-a-terminal', 200])
    } else {
      const plain = lines[0]!.replaceAll(new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g'), '')
      assert.notEqual(plain, lines[0], 'colours are missing on a terminal')
      assert.match(
        plain,
        /^\d\d:\d\d:\d\d\.\d{3} {2}debug {2}serve {2}answered {2}requestId=from-a-terminal .*status=200/,
      )
    }
  }
})
