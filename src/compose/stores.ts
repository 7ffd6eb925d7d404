// The stores of an instance, opened from its configuration: which adapter fills which port of storage.

import { join } from 'node:path'
import { endpointOfUrl } from '#adapters/clickhouse/clickhouse-clients.ts'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import { readEngineEndpoint } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventStore } from '#ports/event-store.ts'
import type { Config } from '../config.ts'

/** The embedded engine, found by its endpoint file wherever it listens now, or the ClickHouse of `CLICKHOUSE_URL`. */
export function openEventStore(config: Config, clock: Clock): EventStore {
  const given = config.clickhouseUrl === null ? null : endpointOfUrl(config.clickhouseUrl)
  return createClickHouseEventStore({
    endpoint: () => given ?? readEngineEndpoint(config.dataFolder),
    clock,
    queryTimeoutSeconds: config.queryTimeoutSeconds,
    rejectRetentionDays: config.rejectRetentionDays,
  })
}

/** Each lane has a folder in it. */
export function logFolder(config: Config): string {
  return join(config.dataFolder, 'log')
}
