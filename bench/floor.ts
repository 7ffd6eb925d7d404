// Starts and controls the floor server of one scenario.

import { once } from 'node:events'
import { spawnPinned } from './processes.ts'

export interface Floor {
  readonly port: number
  readonly pid: number
  /** Sets the JSON value that each path answers with. */
  setAnswers(answers: Record<string, unknown>): Promise<void>
  /** From now on, a GET with this tag is answered with 304. */
  setEtag(etag: string): Promise<void>
  stop(): void
}

export async function startFloor(): Promise<Floor> {
  const child = spawnPinned('server', ['bench/floor-server.ts'])
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  const tell = async (message: object) => {
    child.send(message)
    await once(child, 'message')
  }
  return {
    port,
    pid: child.pid!,
    setAnswers: answers => tell({ answers }),
    setEtag: etag => tell({ etag }),
    stop: () => void child.kill('SIGKILL'),
  }
}
