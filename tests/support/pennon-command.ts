// Runs a command of the program as a process, without this process's settings.

import assert from 'node:assert/strict'
import { type ChildProcess, execFile } from 'node:child_process'

export interface Ended {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface RunningCommand {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
}

/** As `bin/pennon` gives them. */
const nodeOptions = [
  ...['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8'],
  ...['--import', './bin/preload.js'],
]

export function startCommand(settings: Readonly<Record<string, string>>, ...args: readonly string[]): RunningCommand {
  let child!: ChildProcess
  const ended = new Promise<Ended>(resolve => {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...settings }
    child = execFile(process.execPath, [...nodeOptions, 'src/main.ts', ...args], { env }, (error, stdout, stderr) =>
      resolve({ exitCode: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
    )
  })
  return { child, ended }
}

export function runCommand(settings: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Ended> {
  return startCommand(settings, ...args).ended
}

export function mustSucceed({ exitCode, stdout, stderr }: Ended): void {
  assert.equal(exitCode, 0, stderr + stdout)
}
