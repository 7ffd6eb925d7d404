// An export of one day with millions of events, which are generated inside the engine, from an instance that has had a
// burst of large batches. Measures the rows per second at the beginning, middle and end of the export, and the memory
// of the front.

import { once } from 'node:events'
import { request } from 'node:http'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { readEngineEndpoint } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { processCpuMs } from '../support/cpu-time.ts'
import { startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { startLiveTraffic } from './live-traffic.ts'
import { residentMiB } from './process-figures.ts'
import { numberOf } from './settings.ts'
import { clientsOf } from './soak-store.ts'

const perInsert = 200_000
/** Limit for the growth of the front's memory during an export. */
const growthMax = 1.3
const burstMs = 15_000
const batchSize = 1_000

/**
 * @returns whether the export was complete, its last tenth took less than three times its first, and memory stayed
 * bounded.
 */
export async function runExports(): Promise<boolean> {
  const eventCount = numberOf('EVENTS', 10_000_000)
  const pennon = await startPennon()
  try {
    const clients = clientsOf(() => readEngineEndpoint(pennon.dataFolder)!)
    for (let from = 0; from < eventCount; from += perInsert) {
      const query_params = { from, count: Math.min(perInsert, eventCount - from) }
      await clients.write((client, database) => client.command({ query: insertOf(database), query_params }))
    }
    await clients.close()
    // A front just started uses less memory than a busy one, and after a burst it collects garbage less often.
    const traffic = startLiveTraffic(pennon, 500)
    await sleep(burstMs)
    await sendBatches(pennon.url, burstMs)
    await sleep(burstMs)
    const mebibytesBefore = residentMiB(pennon.pid)!
    console.log(`${eventCount} events on one day; the front takes ${mebibytesBefore} MiB`)
    const [startMs, cpuBefore] = [performance.now(), processCpuMs(pennon.pid)]
    const sent = request(`${pennon.url}/api/projects/@current/events/export/?format=jsonl&before=2026-04-02`, {
      headers: { authorization: `Bearer ${testPersonalKey}` },
    }).end()
    const [answer] = await once(sent, 'response')
    const tenth = Math.ceil(eventCount / 10)
    const tenthsMs: number[] = []
    let [rowCount, lastMs, mebibytesMax, numbers] = [0, startMs, mebibytesBefore, 0]
    for await (const line of createInterface({ input: answer })) {
      rowCount++
      numbers += Number(/"n":(\d+)/.exec(line)![1])
      if (rowCount % 1_000 === 0) mebibytesMax = Math.max(mebibytesMax, residentMiB(pennon.pid)!)
      if (rowCount < tenth * (tenthsMs.length + 1)) continue
      const nowMs = performance.now()
      const rate = Math.round((tenth * 1_000) / (nowMs - lastMs))
      console.log(`${rowCount} rows: ${rate} rows/s, the front takes ${residentMiB(pennon.pid)} MiB`)
      tenthsMs.push(nowMs - lastMs)
      lastMs = nowMs
    }
    const microsPerRow = ((processCpuMs(pennon.pid) - cpuBefore) * 1_000) / rowCount
    console.log(
      `${rowCount} rows in ${((performance.now() - startMs) / 1_000).toFixed(1)} s, ${microsPerRow.toFixed(1)} µs of the front's CPU a row; it took ${mebibytesMax} MiB at most, ${(mebibytesMax / mebibytesBefore).toFixed(2)} times what it had`,
    )
    for (const latencies of await traffic.end()) console.log(latencies)
    // Each event has a number, so that a wrong row would be noticed.
    const isWhole = rowCount === eventCount && numbers === (eventCount * (eventCount - 1)) / 2
    return isWhole && tenthsMs.at(-1)! < 3 * tenthsMs[0]! && mebibytesMax < growthMax * mebibytesBefore
  } finally {
    await pennon.stop()
  }
}

/** Sends as fast as requests are answered, four at a time. */
async function sendBatches(url: string, durationMs: number): Promise<void> {
  const event = { event: 'burst', distinct_id: 'burst', properties: { text: 'x'.repeat(600) } }
  const body = JSON.stringify({ api_key: testProjectKey, batch: Array.from({ length: batchSize }, () => event) })
  const endMs = performance.now() + durationMs
  const sendOn = async () => {
    while (performance.now() < endMs) await (await fetch(`${url}/batch/`, { method: 'POST', body })).text()
  }
  await Promise.all([sendOn(), sendOn(), sendOn(), sendOn()])
}

function insertOf(database: string): string {
  return `INSERT INTO ${database}.events (project_id, uuid, event, distinct_id, timestamp, captured_at, created_at, lane,
      row_version, properties, person_id, person_properties, person_mode)
    SELECT 1, generateUUIDv4(), ['$pageview', 'paid', '$feature_flag_called'][1 + number % 3],
      concat('user ', toString(cityHash64(number) % 1000003)),
      toDateTime64('2026-04-01 00:00:00', 6, 'UTC') + toIntervalMillisecond(cityHash64(number) % 86400000),
      now64(3), now64(3), 'main', 1,
      concat('{"n":', toString(number), ',"text":"', repeat(hex(cityHash64(number, 1)), 40), '"}'),
      generateUUIDv4(), '{"plan":"pro"}', 'full'
    FROM numbers({from:UInt64}, {count:UInt64})`
}
