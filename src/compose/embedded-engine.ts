// What `serve` knows of the embedded event store: whether it answers, and the file through which everybody else finds it,
// which is written again when it goes missing while the engine runs.

import {
  type EngineEndpoint,
  readEngineEndpoint,
  removeEngineEndpoint,
  writeEngineEndpoint,
} from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { prepareEngine } from '#adapters/clickhouse-embedded/start-engine.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Config } from '../config.ts'
import { removeAbandonedFreezes } from './held-freezes.ts'

export interface EmbeddedEngine {
  /** Arguments of the child that runs the engine; new port and passwords with each call. @throws as `prepareEngine`. */
  prepare(): Promise<readonly string[]>
  /** Call it each time the child says that the engine answers. */
  answered(): void
  /** Call it when the child has ended: no client may connect to the port that it had. */
  ended(): void
  /** Whether clients find no engine: it has not answered since it was started last, or its file is missing. */
  isAway(): boolean
}

/** @param onChange gets whether the engine is away, which it is at first. */
export function followEmbeddedEngine(
  config: Config,
  logger: Logger,
  onChange: (isAway: boolean) => void,
): EmbeddedEngine {
  const { dataFolder } = config
  let endpoint: EngineEndpoint | null = null
  let isAway = true
  /** A disk that refuses the file is asked at each word of the engine, and told of once. */
  let hasComplained = false
  const setAway = (now: boolean) => {
    if (now === isAway) return
    isAway = now
    onChange(now)
  }
  return {
    prepare: async () => {
      removeAbandonedFreezes(dataFolder)
      const prepared = await prepareEngine(dataFolder, { queryTimeoutSeconds: config.queryTimeoutSeconds })
      endpoint = prepared.endpoint
      return prepared.args
    },
    answered: () => setAway(!isWrittenDown()),
    ended: () => {
      setAway(true)
      try {
        // An instance that has taken the folder over has put its own there.
        const found = listedSecret(dataFolder)
        if (found === null || endpoint === null || found === endpoint.secret) removeEngineEndpoint(dataFolder)
      } catch (err) {
        // A disk that is read-only. Flags go on; whoever connects to the port has to prove that he is the engine.
        logger.warn({ err }, 'the file that says where the embedded event store listens cannot be removed')
      }
      endpoint = null
    },
    isAway: () => isAway || !isEngineListed(config),
  }

  function isWrittenDown(): boolean {
    if (endpoint === null) return false
    if (listedSecret(dataFolder) === endpoint.secret) return true
    try {
      writeEngineEndpoint(dataFolder, endpoint)
      logger.warn('the file that says where the embedded event store listens was missing; it is written again')
      hasComplained = false
      return true
    } catch (err) {
      if (!hasComplained)
        logger.error(
          { err },
          'the file that says where the embedded event store listens is missing and cannot be written',
        )
      hasComplained = true
      return false
    }
  }
}

/** Whether a client would find where an embedded engine listens; true as well where the event store is elsewhere. */
export function isEngineListed({ clickhouseUrl, dataFolder }: Config): boolean {
  return clickhouseUrl !== null || listedSecret(dataFolder) !== null
}

/** Null when the file is missing, or says nothing that could be used. */
function listedSecret(dataFolder: string): string | null {
  try {
    return readEngineEndpoint(dataFolder)?.secret ?? null
  } catch {
    return null // a client gets the same error, and cannot connect
  }
}
