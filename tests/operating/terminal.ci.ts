// What people see when they start an instance at a terminal, and what machines get instead.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { it } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { tempDir } from '../support/temp-dir.ts'

const serve = `'${process.execPath}' --disable-warning=ExperimentalWarning src/main.ts serve`

it('logs readable lines on a terminal, and JSON everywhere else', async t => {
  const folder = tempDir(t)
  for (const [name, program, args] of [
    // A terminal of its own for the command.
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
    let output = ''
    child.stdout.on('data', text => {
      output += text
    })
    const url = await eventually(() => /serving on (http:\S+)/.exec(output)?.[1], { what: output })
    await fetch(`${url}/_liveness`, { headers: { 'x-request-id': 'from-a-terminal' } })
    await eventually(() => output.includes('from-a-terminal'))
    process.kill(-child.pid!, 'SIGTERM')
    await exited
    const lines = output.split(/\r?\n/).filter(line => line.includes('from-a-terminal'))
    assert.equal(lines.length, 1)
    if (name === 'pipe') {
      const { level, process: who, requestId, status } = JSON.parse(lines[0]!)
      assert.deepEqual([level, who, requestId, status], ['debug', 'serve', 'from-a-terminal', 200])
    } else {
      const plain = lines[0]!.replaceAll(new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g'), '')
      assert.notEqual(plain, lines[0], 'no colours on a terminal')
      assert.match(
        plain,
        /^\d\d:\d\d:\d\d\.\d{3} {2}debug {2}serve {2}answered {2}requestId=from-a-terminal .*status=200/,
      )
    }
  }
})
