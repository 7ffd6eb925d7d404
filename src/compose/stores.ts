// The stores of an instance, opened from its configuration: which adapter fills which port of storage.

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { endpointOfUrl } from '#adapters/clickhouse/clickhouse-clients.ts'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import { readEngineEndpoint } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { openEncryptionKeys } from '#adapters/encryption-keys/encryption-keys.ts'
import { damagedSegmentLine } from '#adapters/sqlite-log/segment-file.ts'
import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import type { EventStore } from '#ports/event-store.ts'
import { createPayloadCipher, type PayloadCipher } from '#services/manage/payload-cipher.ts'
import type { Logger } from '#telemetry/log.ts'
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

/** Takes its keys from `PENNON_ENCRYPTION_KEY`, or else from a file beside the state whose payloads they encrypt. */
export function openPayloadCipher(config: Config): PayloadCipher {
  const keys = openEncryptionKeys({
    given: config.encryptionKeys,
    keyFile: join(config.dataFolder, 'encryption.key'),
    whyNotMade: config.databaseUrl === null ? null : keyNeeded,
    randomBytes,
  })
  return createPayloadCipher(keys, randomBytes)
}

const keyNeeded =
  'Payloads cannot be encrypted: the state is in PostgreSQL, and PENNON_ENCRYPTION_KEY is not set. ' +
  'Set it to the output of `openssl rand -hex 32`, keep a copy, and start again.'

/** @param mender given by the process that processes the log: it sets damaged segments aside and reports them here. */
export function openLogReader(config: Config, mender?: Logger): EventLogReader {
  const { logBytesMax, freeBytesMin } = config
  return openSqliteLogReader({
    folder: logFolder(config),
    logBytesMax,
    minFreeBytes: freeBytesMin,
    ...(mender && {
      onDamage: ({ lane, path, error }) => mender.error({ lane, path, err: error }, damagedSegmentLine),
    }),
  })
}

/** Each lane has a folder in it. */
export function logFolder(config: Config): string {
  return join(config.dataFolder, 'log')
}
