// Runs `pennon events` without the command line: node engine-child.ts FOLDER PORT [RUNAWAY_MS], spawned by engine.ts with an IPC
// channel.

import { runEngineProcess } from '../../src/adapters/clickhouse-embedded/engine-process.ts'

const [, , folder, httpPort, runawayMs] = process.argv
runEngineProcess({
  folder: folder!,
  httpPort: Number(httpPort),
  ...(runawayMs !== undefined && { runawayMs: Number(runawayMs) }),
})
