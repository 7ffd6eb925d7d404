// `pennon engine`: the process of the embedded event store, started by `serve`, and titled `pennon events`.

import { dirname } from 'node:path'
import { runEngineProcess } from '#compose/instance/engine-process.ts'
import { acquireSharedDataLock } from '#processes/data-lock.ts'

export function runEngineCommand({ folder, httpPort }: { folder: string; httpPort: string }): void {
  acquireSharedDataLock(dirname(folder))
  runEngineProcess({ folder, httpPort: Number(httpPort) })
}
