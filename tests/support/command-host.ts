// Runs commands of the program one after another, with its modules loaded once: starting Node and loading the program
// take nine tenths of a short command. Forked by `pennon-command.ts`. Whatever ends a process ends only the command
// here: `process.exit` throws through it, so that its `finally` blocks release what the system would, and later output
// is dropped.

import { Console } from 'node:console'
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Ended } from './pennon-command.ts'

export interface CommandCall {
  readonly env: Readonly<Record<string, string>>
  readonly args: readonly string[]
}

export interface CalledCommand {
  readonly ended: Ended
  /** Whether the command has unwound. Otherwise it has left something open, and this process must not be used again. */
  readonly isUnwound: boolean
}

/** More than any command takes to unwind. */
const unwindMsMax = 2_000
const events = ['exit', 'SIGINT', 'SIGTERM', 'uncaughtException', 'unhandledRejection'] as const
const exit = process.exit
let callCount = 0

// Exits with the tests, whatever a command left open.
process.once('disconnect', () => exit(0))
process.on('message', async (call: CommandCall) => {
  process.send!(await run(call))
})

async function run({ env, args }: CommandCall): Promise<CalledCommand> {
  const listeners = events.map(event => [event, new Set(process.listeners(event as 'exit'))] as const)
  const output = { stdout: '', stderr: '' }
  process.env = { ...env }
  process.argv.splice(2, Infinity, ...args)
  const result = await new Promise<{ exitCode: number; isUnwound: boolean }>(resolve => {
    let exitCode: number | null = null
    for (const name of ['stdout', 'stderr'] as const)
      Object.defineProperty(process, name, {
        value: collecting(text => {
          if (exitCode === null) output[name] += text
        }),
      })
    globalThis.console = new Console(process.stdout, process.stderr)
    const end = (code: number) => {
      if (exitCode !== null) return
      exitCode = code
      process.emit('exit', code)
    }
    process.exit = (code = 0) => {
      end(Number(code))
      void sleep(unwindMsMax).then(() => resolve({ exitCode: exitCode!, isUnwound: false }))
      throw new Exit()
    }
    const fail = (error: unknown) => {
      if (!(error instanceof Exit)) process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
      end(1)
    }
    process.on('uncaughtException', fail).on('unhandledRejection', fail)
    // A new URL for each call, since a module is evaluated only once; its imports stay loaded.
    const called = import(`../../src/main.ts?call=${++callCount}`).then(() => end(0), fail)
    void called.then(() => resolve({ exitCode: exitCode!, isUnwound: true }))
  })
  process.exit = exit
  for (const [event, before] of listeners)
    for (const listener of process.listeners(event as 'exit'))
      if (!before.has(listener)) process.removeListener(event, listener)
  return { ended: { exitCode: result.exitCode, ...output }, isUnwound: result.isUnwound }
}

class Exit {}

function collecting(take: (text: string) => void): Writable {
  return new Writable({
    decodeStrings: false,
    write: (chunk, _encoding, done) => {
      take(String(chunk))
      done()
    },
  })
}
