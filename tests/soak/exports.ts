// An export of one day with millions of events, which are made inside the engine: how many rows a second it has at its
// beginning, in its middle and at its end, and how much memory its reader takes.

import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import { createClickHouseClients } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import { startEngine } from '../support/engine.ts'

const perInsert = 200_000

/** @returns whether the export had every event, and its last tenth took less than thrice its first. */
export async function runExports({
  eventCount,
  log,
}: {
  eventCount: number
  log: (line: string) => void
}): Promise<boolean> {
  const engine = await startEngine()
  const store = createClickHouseEventStore({ endpoint: () => engine.endpoint(), clock: { nowMs: Date.now } })
  const clients = createClickHouseClients({ endpoint: () => engine.endpoint(), queryTimeoutSeconds: 8 })
  try {
    await store.migrate()
    for (let from = 0; from < eventCount; from += perInsert) {
      const query_params = { from, count: Math.min(perInsert, eventCount - from) }
      await clients.write((client, database) => client.command({ query: insertOf(database), query_params }))
    }
    log(`${eventCount} events on one day`)
    const [startMs, cpuBefore] = [performance.now(), process.cpuUsage()]
    const { batches } = await store.openEventExport({ projectId: 1, descending: true }, new AbortController().signal)
    const tenth = Math.ceil(eventCount / 10)
    const tenthsMs: number[] = []
    let [rowCount, lastMs, rssMax, numbers] = [0, startMs, 0, 0]
    for await (const batch of batches) {
      rowCount += batch.length
      for (const { event } of batch) numbers += Number(/\d+/.exec(event.propertiesJson)![0])
      rssMax = Math.max(rssMax, process.memoryUsage.rss())
      if (rowCount < tenth * (tenthsMs.length + 1)) continue
      const nowMs = performance.now()
      log(
        `${rowCount} rows: ${Math.round((tenth * 1_000) / (nowMs - lastMs))} rows/s, RSS ${mebibytes(process.memoryUsage.rss())}`,
      )
      tenthsMs.push(nowMs - lastMs)
      lastMs = nowMs
    }
    const cpu = process.cpuUsage(cpuBefore)
    const seconds = (performance.now() - startMs) / 1_000
    log(
      `${rowCount} rows in ${seconds.toFixed(1)} s, ${((cpu.user + cpu.system) / rowCount).toFixed(1)} µs of CPU a row here, RSS at most ${mebibytes(rssMax)}`,
    )
    // Each has its number, so that a row in place of another would show.
    const isWhole = rowCount === eventCount && numbers === (eventCount * (eventCount - 1)) / 2
    return isWhole && tenthsMs.at(-1)! < 3 * tenthsMs[0]!
  } finally {
    await clients.close()
    await store.close()
    await engine.stop()
  }
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

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`
}
