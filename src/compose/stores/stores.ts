// Opens the stores of an instance from its configuration, and chooses the adapter for each of their ports. `state.ts` opens
// the state, and `compose/log` the log.

import { randomBytes } from 'node:crypto'
import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import { parseEndpointUrl } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import { readEngineEndpoint } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { openEncryptionKeys } from '#adapters/encryption-keys/encryption-keys.ts'
import { openSaltFiles } from '#adapters/salt-files/salt-files.ts'
import type { Config } from '#config.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import type { CookielessSalts } from '#ports/state/cookieless-visitors.ts'
import { createPayloadCipher, type PayloadCipher } from '#services/manage/payload-cipher.ts'
import type { Logger } from '#telemetry/log.ts'
import { readStateUrls } from './state.ts'

/**
 * Uses the ClickHouse of `CLICKHOUSE_URL` or, if not set, the embedded engine, whose endpoint file says where it listens
 * now.
 */
export function openEventStore(config: Config, clock: Clock): EventStore {
  const given = config.clickhouseUrl === null ? null : parseEndpointUrl(config.clickhouseUrl)
  return createClickHouseEventStore({
    endpoint: () => given ?? readEngineEndpoint(config.dataFolder),
    clock,
    queryTimeoutSeconds: config.queryTimeoutSeconds,
    rejectRetentionDays: config.rejectRetentionDays,
    isEmbedded: given === null,
    ...(given === null && { freeBytes: () => readFreeBytes(config.dataFolder) }),
  })
}

/** The salts for visitors without cookies, stored next to the state but not in its file. */
export async function openSalts(config: Config, logger: Logger): Promise<CookielessSalts> {
  const urls = readStateUrls(config)
  if (urls === null) return openSaltFiles(config.dataFolder)
  const { openPostgresSalts } = await import('#adapters/postgres/postgres-salts.ts')
  return openPostgresSalts({ url: urls.url, logger })
}

function readFreeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** Takes its keys from `PENNON_ENCRYPTION_KEY`, or else from a file next to the state; the state holds the payloads. */
export function openPayloadCipher(config: Config): PayloadCipher {
  const keys = openEncryptionKeys({
    given: config.encryptionKeys,
    keyFile: join(config.dataFolder, 'encryption.key'),
    missingKeyReason: config.databaseUrl === null ? null : keyNeeded,
    randomBytes,
  })
  return createPayloadCipher(keys, randomBytes)
}

const keyNeeded =
  'Payloads cannot be encrypted: the state is in PostgreSQL, and PENNON_ENCRYPTION_KEY is not set. ' +
  'Set it to the output of `openssl rand -hex 32`, keep a copy, and start again.'
