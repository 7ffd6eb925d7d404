// `pennon events` without the command line: node engine-child.ts FOLDER PORT, spawned by engine.ts with an IPC channel.

import { runEngineProcess } from '../../src/adapters/clickhouse-embedded/engine-process.ts'

const [, , folder, httpPort] = process.argv
runEngineProcess({ folder: folder!, httpPort: Number(httpPort) })
