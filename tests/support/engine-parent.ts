// A parent process that tests kill: starts an engine, reports its pid, and waits.

import { startEngine } from './engine.ts'

const engine = await startEngine()
process.send!({ pid: engine.child.pid, dataFolder: engine.dataFolder })
setInterval(() => {}, 1000)
