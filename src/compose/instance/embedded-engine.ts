// Follows the embedded event store for `serve`: whether it answers, and the file by which other processes find it. That
// file is rewritten if it is lost while the engine runs.

import {
  type EngineEndpoint,
  readEngineEndpoint,
  removeEngineEndpoint,
  writeEngineEndpoint,
} from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { ReplacedLinkError, removeFoldersReplacingLinks } from '#adapters/clickhouse-embedded/replaced-links.ts'
import { prepareEngineStart } from '#adapters/clickhouse-embedded/start-engine.ts'
import type { Config } from '#config.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Logger } from '#telemetry/log.ts'
import { removeAbandonedFrozenFiles } from '../backup/freeze-event-store.ts'

export interface EmbeddedEngine {
  /**
   * Arguments for the child that runs the engine, with a new port and passwords on each call.
   * @throws like `prepareEngineStart`.
   */
  prepare(): Promise<readonly string[]>
  /** To be called each time the child reports that the engine answers. */
  answered(): void
  /** To be called when the child has ended, since no client may connect to its former port. */
  ended(): void
  /** Whether clients find no engine: it has not answered since its last start, or its file is missing. */
  isUnavailable(): boolean
}

/** @param onChange called with whether the engine is unavailable. It is unavailable at first. */
export function watchEmbeddedEngine(
  config: Config,
  logger: Logger,
  onChange: (isUnavailable: boolean) => void,
): EmbeddedEngine {
  const { dataFolder } = config
  let endpoint: EngineEndpoint | null = null
  let isUnavailable = true
  /** Writing the file is retried at each report of the engine, but a failure is logged only once. */
  let hasComplained = false
  const setUnavailable = (now: boolean) => {
    if (now === isUnavailable) return
    isUnavailable = now
    onChange(now)
  }
  return {
    prepare: async () => {
      removeAbandonedFrozenFiles(dataFolder)
      const prepared = await prepareEngineStart(dataFolder, { queryTimeoutSeconds: config.queryTimeoutSeconds })
      endpoint = prepared.endpoint
      return prepared.args
    },
    answered: () => setUnavailable(!ensureEndpointFile()),
    ended: () => {
      setUnavailable(true)
      try {
        // Remove only our own file: an instance that has taken the folder over may have replaced it.
        const found = readEndpointSecret(dataFolder)
        if (found === null || endpoint === null || found === endpoint.secret) removeEngineEndpoint(dataFolder)
      } catch (err) {
        // Only a warning: the disk may be read-only, flags still work, and a process on the old port cannot pose as the
        // engine.
        logger.warn({ err }, 'cannot remove the address file of the embedded event store')
      }
      endpoint = null
    },
    isUnavailable: () => isUnavailable || !hasEngineAddress(config),
  }

  function ensureEndpointFile(): boolean {
    if (endpoint === null) return false
    if (readEndpointSecret(dataFolder) === endpoint.secret) return true
    try {
      writeEngineEndpoint(dataFolder, endpoint)
      logger.warn('the address file of the embedded event store was missing; writing it again')
      hasComplained = false
      return true
    } catch (err) {
      if (!hasComplained)
        logger.error({ err }, 'the address file of the embedded event store is missing and cannot be written')
      hasComplained = true
      return false
    }
  }
}

/**
 * For a start: repairs an engine folder that was copied with its links followed (as by `cp -rL`), since no engine would
 * start on it. @returns one line for the operator if it must be repaired manually.
 */
export function repairCopiedEngineFolder({ clickhouseUrl, dataFolder }: Config, logger: Logger): Result<null, string> {
  if (clickhouseUrl !== null) return ok(null)
  try {
    const removed = removeFoldersReplacingLinks(dataFolder)
    if (removed.length > 0)
      logger.warn(
        { folderCount: removed.length },
        'this data folder was copied without its symbolic links: removing duplicated event store folders (use cp -a to copy it)',
      )
    return ok(null)
  } catch (cause) {
    if (cause instanceof ReplacedLinkError) return err(cause.message)
    throw cause
  }
}

/** Whether clients can find the address of the embedded engine; also true when the event store is elsewhere. */
export function hasEngineAddress({ clickhouseUrl, dataFolder }: Config): boolean {
  return clickhouseUrl !== null || readEndpointSecret(dataFolder) !== null
}

/** Null when the endpoint file is missing or not usable. */
function readEndpointSecret(dataFolder: string): string | null {
  try {
    return readEngineEndpoint(dataFolder)?.secret ?? null
  } catch {
    return null // a client gets the same error, and cannot connect
  }
}
