// Runs a start that must be refused with one line on stderr and exit code 2.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { collectText } from './child-processes.ts'

export interface RefusedStartOptions {
  /** `['serve']` by default. */
  readonly arguments?: readonly string[]
  /** The command that runs Node, for example `['setpriv', '--reuid=nobody']`. */
  readonly launcher?: readonly string[]
  /** Root of the source tree to run; this one by default. */
  readonly tree?: string
}

/** @returns the line on stderr. A process that serves instead is ended, and this call fails. */
export async function refusedStart(
  dataFolder: string,
  settings: Readonly<Record<string, string>> = {},
  options: RefusedStartOptions = {},
): Promise<string> {
  const command = [
    ...(options.launcher ?? []),
    ...[process.execPath, '--disable-warning=ExperimentalWarning', 'src/main.ts'],
    ...(options.arguments ?? ['serve']),
  ]
  const child = spawn(command[0]!, command.slice(1), {
    cwd: options.tree,
    env: {
      ...process.env,
      NODE_TEST_CONTEXT: undefined,
      PORT: '0',
      PENNON_DATA: dataFolder,
      PENNON_LOG_LEVEL: 'error',
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = collectText(child.stdout, child.stderr)
  child.stdout.on('data', () => output().includes('serving on') && child.kill())
  const code = await new Promise(resolve => child.once('close', resolve))
  assert.equal(code, 2, output())
  assert.match(output(), /^pennon: [^\n]+\n$/)
  return output()
}
