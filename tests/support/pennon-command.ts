// Runs a command of the program, without this process's settings.

import assert from 'node:assert/strict'
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { CalledCommand, CommandCall } from './command-host.ts'

export interface Ended {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface RunningCommand {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
}

/** With the options that `bin/pennon` gives to Node. */
const nodeOptions = [
  ...['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8'],
  ...['--import', './bin/preload.js'],
]
const hostPath = fileURLToPath(new URL('./command-host.ts', import.meta.url))

let host: ChildProcess | null = null
let isHostBusy = false

/** Starts a command as a separate process. */
export function startCommand(settings: Readonly<Record<string, string>>, ...args: readonly string[]): RunningCommand {
  let child!: ChildProcess
  const ended = new Promise<Ended>(resolve => {
    const env = environment(settings)
    child = execFile(process.execPath, [...nodeOptions, 'src/main.ts', ...args], { env }, (error, stdout, stderr) =>
      resolve({ exitCode: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
    )
  })
  return { child, ended }
}

export function runCommand(settings: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Ended> {
  return startCommand(settings, ...args).ended
}

/**
 * Runs a command in a process that has run others, which is ten times as fast; while one is running there, others get a
 * process each. For commands that start no process and write no log. That a command also works as a process is shown by
 * the guides, whose commands run as printed, and by tests with `runCommand`.
 */
export async function callCommand(
  settings: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<Ended> {
  if (isHostBusy) return runCommand(settings, ...args)
  isHostBusy = true
  try {
    return await callInHost(settings, args)
  } finally {
    isHostBusy = false
  }
}

/** The host exits when its channel closes; the channel keeps this process alive only while a command runs. */
async function callInHost(settings: Readonly<Record<string, string>>, args: readonly string[]): Promise<Ended> {
  if (host === null || !host.connected) {
    host = fork(hostPath, {
      execArgv: nodeOptions,
      env: environment({}),
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    host.unref()
  }
  const { channel } = host
  channel?.ref()
  const broken = new AbortController()
  const onExit = () => broken.abort(new Error('the process that runs commands has ended'))
  host.once('exit', onExit)
  host.send({ env: environment(settings), args } satisfies CommandCall)
  try {
    const [{ ended, isUnwound }] = (await once(host, 'message', { signal: broken.signal })) as [CalledCommand]
    if (!isUnwound) host.disconnect()
    return ended
  } finally {
    host.removeListener('exit', onExit)
    channel?.unref()
  }
}

/** @returns what ended. */
export function mustSucceed(ended: Ended): Ended {
  assert.equal(ended.exitCode, 0, ended.stderr + ended.stdout)
  return ended
}

/** @returns the message of a command that must refuse. */
export function refusalOf({ exitCode, stdout, stderr }: Ended): string {
  assert.equal(exitCode, 2, stderr + stdout)
  return stderr
}

function environment(settings: Readonly<Record<string, string>>): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...settings }
}
