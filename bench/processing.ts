// `node bench/processing.ts`: measures the CPU time per event of the worker's own steps, with the real state on SQLite
// but without log and engine. It measures thread CPU because a busy machine disturbs that less than wall-clock time.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openStateWriter } from '#adapters/sqlite/state-writer-client.ts'
import { listChunkSubjects, parseChunk } from '#core/processing/parse-chunk.ts'
import { processChunk } from '#core/processing/process-chunk.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { loadWhole } from '../tests/support/state.ts'
import { aChange, aNewProject, recordsAt } from '../tests/support/values.ts'
import { typicalEvents, typicalMix } from './typical-events.ts'

const eventCount = 40_000
const chunkSize = 1_000
const steps = ['parse', 'load', 'apply', 'commit'] as const

const dataFolder = mkdtempSync(join(tmpdir(), 'pennon-bench-'))
const management = await openStateWriter({ dataFolder, logger: createSilentLogger() })
await management.createProject(aNewProject(), aChange())
const store = openSqliteChunkStore({ dataFolder })
await store.claimPosition('main', 'bench')

for (const [name, visitorCount] of [
  ['events of 400 visitors', 400],
  ['events of 4,000 visitors', 4_000],
] as const) {
  const events = typicalEvents({ ...typicalMix, count: eventCount, visitorCount })
  for (const run of ['persons are new', 'persons are known', 'persons are known']) {
    const cpuUs = { parse: 0, load: 0, apply: 0, commit: 0 }
    let startedUs = 0
    const charge = (step: (typeof steps)[number]): void => {
      cpuUs[step] += threadUs() - startedUs
      startedUs = threadUs()
    }
    for (let first = 0; first < eventCount; first += chunkSize) {
      const records = recordsAt(
        events.slice(first, first + chunkSize).map(event => ({ kind: 'event', event })),
        first,
      )
      startedUs = threadUs()
      const chunk = parseChunk({ stream: 'main', traffic: 'live', records }, new Map())
      const subjects = listChunkSubjects(chunk)
      charge('parse')
      const loaded = await loadWhole(store, subjects)
      charge('load')
      const { changes } = processChunk(chunk, loaded, { logId: 'log', lookUpGeoip: () => null })
      charge('apply')
      const position = { stream: 'main', ownerId: 'bench', offset: first, committedAtMs: 0 }
      if ((await store.commitChunk(changes, position)) !== 'committed') throw new Error('not committed')
      charge('commit')
    }
    const figures = steps.map(step => `${step} ${(cpuUs[step] / eventCount).toFixed(1)}`)
    console.log(`${name}, ${run}: ${figures.join(', ')} µs per event`)
  }
}

await store.close()
await management.close()
rmSync(dataFolder, { recursive: true })

function threadUs(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}
