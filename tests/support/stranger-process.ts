// Starts the process of stranger.ts, which waits for a port and keeps what it is sent there.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Stranger {
  /** Resolves when the port is its own. */
  readonly listening: Promise<void>
  /** Every request so far: method, path, headers and body. */
  received(): Promise<readonly string[]>
}

/** Ended after the test. */
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
