// What a start needs before anything serves: the state at its newest schema, the first project, and what the engine's
// child is told.

import { randomBytes, randomUUID } from 'node:crypto'
import { prepareEngine } from '#adapters/clickhouse-embedded/start-engine.ts'
import { openStateWriter } from '#adapters/sqlite/state-writer-client.ts'
import type { Clock } from '#ports/clock.ts'
import type { ManagementStore } from '#ports/management-store.ts'
import { type Bootstrapped, ensureFirstStart } from '#services/first-start.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Config } from '../config.ts'

/** Brings the state up to the newest schema. @throws with a message for people when it cannot be opened. */
export function openManagement(config: Config, logger: Logger): Promise<ManagementStore> {
  return openStateWriter({ dataFolder: config.dataFolder, logger })
}

export type { Bootstrapped }

/** The first project and keys. @throws with a message for people. */
export function bootstrap(config: Config, clock: Clock, management: ManagementStore): Promise<Bootstrapped> {
  const { projectKey, personalKey } = config
  return ensureFirstStart({ management, clock, newUuid: randomUUID, randomBytes, projectKey, personalKey })
}

/** Arguments of the child that runs the embedded engine; new port and passwords with each call. */
export async function prepareEngineChild(config: Config): Promise<readonly string[]> {
  return (await prepareEngine(config.dataFolder, { queryTimeoutSeconds: config.queryTimeoutSeconds })).args
}
