// Measures processing: from events already in the log to rows that queries see, with persons. Worker and engine share
// one core, so their combined time is the cost of an event.

import { createClient } from '@clickhouse/client'
import { readEngineEndpoint } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { movePinned, startBenchServer } from '../bench-server.ts'
import { batchJson, eventBody, storedPersonProperties } from '../bodies.ts'
import { cpuSeconds, residentMiB } from '../processes.ts'
import { print } from '../report.ts'

const warmUpCount = 10_000
const eventCount = 120_000
const batchSize = 500
const timeoutMs = 240_000
/** For this long after the last event, the engine's background work (merging parts) still counts. */
const afterMs = 3_000

export async function worker(): Promise<void> {
  const server = await startBenchServer()
  try {
    const { work, events } = server.childPids() as { work: number; events: number }
    movePinned(work, 'server')
    movePinned(events, 'server')
    await send(server.url, 0, warmUpCount) // compiled code, known persons, first parts
    await server.caughtUp(timeoutMs)
    process.kill(work, 'SIGSTOP')
    await send(server.url, warmUpCount, eventCount)
    const cpuOf = () => ({ work: cpuSeconds(work), events: cpuSeconds(events) })
    const before = cpuOf()
    const residentBefore = { work: residentMiB(work), events: residentMiB(events) }
    const highest = { ...residentBefore }
    const watching = setInterval(() => {
      highest.work = Math.max(highest.work, residentMiB(work))
      highest.events = Math.max(highest.events, residentMiB(events))
    }, 100)
    const startedAt = performance.now()
    process.kill(work, 'SIGCONT')
    await server.caughtUp(timeoutMs)
    const seconds = (performance.now() - startedAt) / 1000
    const after = cpuOf()
    clearInterval(watching)
    const stored = await countRows(server.dataFolder)
    if (stored !== warmUpCount + eventCount) console.log(`  ${stored} rows where ${warmUpCount + eventCount} were sent`)
    await new Promise(resolve => setTimeout(resolve, afterMs))
    const later = cpuOf()

    const perEvent = (cpu: number) => (cpu / eventCount) * 1e6
    const workMicros = perEvent(after.work - before.work)
    const engineMicros = perEvent(after.events - before.events)
    const mergeMicros = perEvent(later.events - after.events)
    const micros = (value: number) => `${value.toFixed(1)} µs`
    const memory = (name: 'work' | 'events', pid: number) =>
      `${residentBefore[name].toFixed(0)}, at most ${highest[name].toFixed(0)}, then ${residentMiB(pid).toFixed(0)} MiB`
    print({
      name: 'worker, log to queryable rows',
      value: `${Math.round(eventCount / seconds)} events/s`,
      aim: '≥ 20,000 events/s on one core',
    })
    print({
      name: '  per second of that core in use',
      value: `${Math.round(1e6 / (workMicros + engineMicros))} events (what others on it do not disturb)`,
    })
    print({ name: '  CPU per event, worker process', value: micros(workMicros) })
    print({
      name: '  CPU per event, engine',
      value: `${micros(engineMicros)}, merging afterwards ${micros(mergeMicros)}`,
    })
    print({ name: '  memory, worker', value: memory('work', work) })
    print({ name: '  memory, engine', value: memory('events', events) })
  } finally {
    await server.stop()
  }
}

/** Counts rows as queries see them: each event once. */
async function countRows(dataFolder: string): Promise<number> {
  const { url, database, reader } = readEngineEndpoint(dataFolder)!
  const client = createClient({ url, ...reader })
  try {
    const result = await client.query({
      query: `SELECT count() FROM ${database}.events FINAL`,
      format: 'JSONCompactEachRow',
    })
    return Number((await result.json<[string]>())[0]![0])
  } finally {
    await client.close()
  }
}

/** 30 % of the events set a property, 5 % identify. */
function mixedEvent(index: number): object {
  if (index % 20 === 7)
    return {
      ...eventBody(index),
      event: '$identify',
      properties: { $anon_distinct_id: `anon-${index % 2000}`, $set: storedPersonProperties },
    }
  if (index % 10 < 3) return { ...eventBody(index), $set: { visits: index } }
  return eventBody(index)
}

async function send(url: string, first: number, count: number): Promise<void> {
  for (let index = first; index < first + count; index += batchSize) {
    const response = await fetch(`${url}/batch/`, { method: 'POST', body: batchJson(index, batchSize, mixedEvent) })
    if (response.status !== 200) throw new Error(`batch: ${response.status} ${await response.text()}`)
  }
}
