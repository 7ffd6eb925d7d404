// An event store for soaks, filled with millions of rows generated inside the engine.

import { setTimeout as sleep } from 'node:timers/promises'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import { type ClickHouseClients, createClickHouseClients } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import type { EngineLimits } from '#adapters/clickhouse-embedded/engine-config.ts'
import type { EngineEndpoint } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { type Buckets, createBuckets } from '#core/insights/buckets.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { processCpuMs } from '../support/cpu-time.ts'
import { startEngine } from '../support/engine.ts'

export const dayMs = 86_400_000
/** The time just after the last event. */
export const endMs = Date.UTC(2026, 4, 1)

export interface Timed<T> {
  readonly result: T
  readonly ms: number
  /** CPU time used by the engine. */
  readonly cpuMs: number
}

export interface SoakStore {
  readonly store: EventStore
  readonly clients: ClickHouseClients
  timed<T>(run: () => Promise<T>): Promise<Timed<T>>
  command(sqlIn: (database: string) => string): Promise<unknown>
  count(sql: string): Promise<number>
  /** Resolves when the engine has had nothing to merge for five seconds. */
  mergesEnd(): Promise<void>
  stop(): Promise<void>
}

/** Starts a separate engine, ended by `stop`. */
export async function startSoakStore(limits: Partial<EngineLimits> = {}): Promise<SoakStore> {
  const engine = await startEngine({ queryTimeoutSeconds: 60, ...limits })
  const options = { endpoint: () => engine.endpoint(), queryTimeoutSeconds: 60 }
  const store = createClickHouseEventStore({ ...options, clock: { nowMs: Date.now } })
  await store.migrate()
  const soak = soakStore(store, createClickHouseClients(options), () => engine.child.pid!)
  return {
    ...soak,
    async stop() {
      await soak.clients.close()
      await store.close()
      await engine.stop()
    },
  }
}

/** Opens clients for an engine that another owner stops, such as that of a whole instance. */
export function clientsOf(endpoint: () => EngineEndpoint): ClickHouseClients {
  return createClickHouseClients({ endpoint, queryTimeoutSeconds: 60 })
}

function soakStore(store: EventStore, clients: ClickHouseClients, pid: () => number): Omit<SoakStore, 'stop'> {
  const count = (sql: string) =>
    clients.write(async (client, database) => {
      const query = sql
        .replaceAll('currentDatabase().', `${database}.`)
        .replaceAll('currentDatabase()', `'${database}'`)
      const result = await client.query({ query, format: 'JSONCompactEachRow' })
      return Number((await result.json<[number]>())[0]![0])
    })
  return {
    store,
    clients,
    count,
    async timed(run) {
      const [startMs, cpuMs] = [performance.now(), processCpuMs(pid())]
      const result = await run()
      return { result, ms: Math.round(performance.now() - startMs), cpuMs: processCpuMs(pid()) - cpuMs }
    },
    command: sqlIn => clients.write((client, database) => client.command({ query: sqlIn(database) })),
    async mergesEnd() {
      const idleCpuMs = 500
      for (let before = processCpuMs(pid()), quiet = 0; quiet < 5; ) {
        await sleep(1_000)
        const now = processCpuMs(pid())
        quiet = now - before < idleCpuMs ? quiet + 1 : 0
        before = now
      }
    },
  }
}

/** The buckets of the last days, in UTC. */
export function lastDays(dayCount: number, interval: 'hour' | 'day'): Buckets {
  const range = { fromMs: endMs - dayCount * dayMs, endMs }
  return createBuckets(range, interval, { timezone: 'UTC', weekStartDay: 0 }, 10_000)!
}

export interface FillOptions {
  readonly projectId: number
  readonly eventCount: number
  readonly dayCount: number
  readonly batchesPerDay: number
  /** Every event is a call of this flag. */
  readonly calls?: string
}

/** @returns the number of events. */
export async function fillEvents(soak: Pick<SoakStore, 'clients'>, options: FillOptions): Promise<number> {
  const { eventCount, dayCount, batchesPerDay } = options
  const perBatch = Math.floor(eventCount / dayCount / batchesPerDay)
  for (let batch = 0; batch < dayCount * batchesPerDay; batch++) {
    const query = (database: string) => eventsOf(database, batch, perBatch, options)
    await soak.clients.write((client, database) => client.command({ query: query(database) }))
  }
  return perBatch * dayCount * batchesPerDay
}

function eventsOf(database: string, batch: number, count: number, options: FillOptions): string {
  const { projectId, dayCount, batchesPerDay, calls } = options
  const fromMs = endMs - dayCount * dayMs + (batch * dayMs) / batchesPerDay
  const name =
    calls === undefined ? `['$pageview', 'paid', 'seen', 'clicked'][1 + number % 4]` : `'$feature_flag_called'`
  const columns = calls === undefined ? '' : ', flag_called, flag_response'
  const called = calls === undefined ? '' : `, '${calls}', ['control', 'test', 'false'][1 + cityHash64(id) % 3]`
  return `INSERT INTO ${database}.events (project_id, uuid, event, distinct_id, timestamp, captured_at, charged_at, created_at,
      lane, row_version, properties, flags, person_id, person_created_at, person_properties, person_mode${columns})
    SELECT ${projectId}, generateUUIDv4(number), ${name} AS name,
      concat('user-', toString(cityHash64(number, ${batch}) % 200000)) AS id,
      fromUnixTimestamp64Milli(toInt64(${fromMs} + cityHash64(number) % ${dayMs / batchesPerDay}), 'UTC') AS time,
      time, time, time, 'main', 4611686018427387904 + ${batch},
      concat('{"$browser":"', ['Chrome', 'Safari', 'Firefox'][1 + number % 3], '","price":', toString(number % 100), '}'),
      map('$feature/checkout', ['control', 'test', 'false'][1 + cityHash64(id) % 3], '$feature/search', 'true',
        '$feature/new-nav', 'false', '$feature/price', ['a', 'b', 'c', 'd'][1 + cityHash64(id, 1) % 4], '$feature/beta', 'false'),
      reinterpretAsUUID(sipHash128(id)), time, '{"plan":"free"}', 'full'${called} FROM numbers(${count})`
}
