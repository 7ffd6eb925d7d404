// Starts the process of stranger.ts, which waits for a port and records what is sent there.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Stranger {
  /** Resolves when it listens on the port. */
  readonly listening: Promise<void>
  /** Every request so far: method, path, headers and body. */
  received(): Promise<readonly string[]>
}

/** Starts the process, and ends it after the test. */
export function startStranger(t: { after(done: () => unknown): void }, port: number): Stranger {
  const script = fileURLToPath(new URL('./stranger.ts', import.meta.url))
  const child = fork(script, [String(port)], { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  t.after(() => child.kill('SIGKILL'))
  return {
    listening: once(child, 'message').then(() => undefined),
    received: async () => {
      const answered = once(child, 'message')
      child.send('what did you get?')
      const [message] = (await answered) as [{ received: readonly string[] }]
      return message.received
    },
  }
}
