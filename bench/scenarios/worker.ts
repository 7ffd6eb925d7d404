// Processing: events already in the log, until they are queryable rows; worker and engine share one core.

import { movePinned, startBenchServer } from '../bench-server.ts'
import { batchJson, eventBody, storedPersonProperties } from '../bodies.ts'
import { cpuSeconds, residentMiB } from '../processes.ts'
import { print } from '../report.ts'

const eventCount = 60_000
const batchSize = 500

export async function worker(): Promise<void> {
  const server = await startBenchServer()
  try {
    const children = server.childPids()
    for (const pid of Object.values(children)) movePinned(pid, 'server')
    await send(server.url, 0, 5_000) // compiled code, first parts
    await server.caughtUp()
    process.kill(children.work!, 'SIGSTOP')
    await send(server.url, 5_000, eventCount)
    const before = { work: cpuSeconds(children.work!), events: cpuSeconds(children.events!) }
    const startedAt = performance.now()
    process.kill(children.work!, 'SIGCONT')
    await server.caughtUp()
    const seconds = (performance.now() - startedAt) / 1000
    const cpu = { work: cpuSeconds(children.work!) - before.work, events: cpuSeconds(children.events!) - before.events }
    print({
      name: 'worker, log to queryable rows',
      value: `${Math.round(eventCount / seconds)} events/s`,
      aim: '≥ 20,000 events/s on one core',
    })
    print({ name: '  CPU per event, worker process', value: `${((cpu.work / eventCount) * 1e6).toFixed(1)} µs` })
    print({ name: '  CPU per event, engine', value: `${((cpu.events / eventCount) * 1e6).toFixed(1)} µs` })
    print({
      name: '  memory afterwards',
      value: `worker ${residentMiB(children.work!).toFixed(0)} MiB, events ${residentMiB(children.events!).toFixed(0)} MiB`,
    })
  } finally {
    await server.stop()
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
