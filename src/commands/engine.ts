// `pennon engine`: the process of the embedded event store, started by `serve`, and titled `pennon events`.

import { dirname } from 'node:path'
import { runEngineProcess } from '#compose/instance/engine-process.ts'
import { shareDataLock } from '#processes/data-lock.ts'

export function engine({ folder, httpPort }: { folder: string; httpPort: string }): void {
  shareDataLock(dirname(folder))
  runEngineProcess({ folder, httpPort: Number(httpPort) })
}
