// The floor server, started for one scenario.

import { once } from 'node:events'
import { spawnPinned } from './processes.ts'

export interface Floor {
  readonly port: number
  readonly pid: number
  /** The JSON value that a path answers with. */
  setAnswers(answers: Record<string, unknown>): Promise<void>
  stop(): void
}

export async function startFloor(): Promise<Floor> {
  const child = spawnPinned('server', ['bench/floor-server.ts'])
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return {
    port,
    pid: child.pid!,
    setAnswers: async answers => {
      child.send({ answers })
      await once(child, 'message')
    },
    stop: () => void child.kill('SIGKILL'),
  }
}
