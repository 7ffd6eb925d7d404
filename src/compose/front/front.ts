// Composes a front: HTTP over the services, and the adapters behind their ports. Parts are opened in the order in which
// they are needed, and closed in reverse: requests stop first, then everything accepted is written to the log, then the
// counts are written, and the stores close last. If opening a part fails, the parts opened before it are closed.

import { openBuiltScreens } from '#adapters/built-screens/built-screens.ts'
import { howToBuildScreens, screensFolder } from '#distribution.ts'
import { screensRoutes } from '#http/handlers/screens.ts'
import { startPageRoute } from '#http/handlers/start-page.ts'
import { createSessionCookieName } from '#http/management/kit/session-cookie.ts'
import { liveEventsPerSecondMax } from '#http/management/queries/live-events.ts'
import type { Route } from '#http/shared/route.ts'
import type { EventLogAppender, EventLogReader } from '#ports/log/event-log.ts'
import { coalesceWakeUps } from '#processes/coalesced-wake-ups.ts'
import { createLiveEventBroadcaster, type LiveEvents } from '#services/live/live-events.ts'
import { createDailySaltCache } from '#services/shared/daily-salts.ts'
import { version } from '#version.ts'
import { liveMessages } from '#wire/live/live-events.ts'
import { readLogId } from '../log/log.ts'
import { openLogWriter } from '../log/log-writer.ts'
import type { StateWriter } from '../stores/state.ts'
import { openSalts } from '../stores/stores.ts'
import { composeCapture } from './capture.ts'
import { createFrontContext, type FrontContext, type FrontSurroundings } from './context.ts'
import { startFrontCounters } from './counters.ts'
import { createDecodePool } from './decode-pool.ts'
import { startServingDefinitions } from './definitions.ts'
import { composeFlags } from './flags.ts'
import { composeHealth } from './health.ts'
import { composeManagement } from './management.ts'
import type { FrontParts } from './parts.ts'
import { composeEventsServer, composeServers } from './servers.ts'
import { openFrontStores } from './stores.ts'

/** `beforeListening` is called when everything is loaded, before any request arrives. */
export interface FrontStart {
  readonly beforeListening?: () => void
}

export interface FrontOptions extends FrontSurroundings, FrontStart {
  /** The state, if the caller has it open already. The front closes it, even when composing the front fails. */
  readonly management?: StateWriter
  /** For tests: replaces the appender of the front's log. */
  readonly eventLog?: EventLogAppender
}

export interface Front {
  /** All routes of the public port, for a test that requests each of them. */
  readonly routes: readonly Route[]
  /** @throws the error of `listen`, with its code. */
  listen(): Promise<{ url: string; adminUrl: string | null; eventsUrl: string | null }>
  /** For tests: writes the counts of refused events. */
  writeCounts(): Promise<void>
  /** Stops accepting requests, finishes open requests, and writes what is queued. */
  close(): Promise<void>
}

export async function composeFront(options: FrontOptions): Promise<Front> {
  const { config, host, logger, metrics } = options
  await using opened = new AsyncDisposableStack()
  const stores = await openFrontStores(options, opened)
  const context = createFrontContext(options)
  const counters = startFrontCounters(context, stores.management, opened)
  const liveEvents = composeLiveEvents(context, stores.logReader)
  const definitions = await startServingDefinitions(context, stores, counters, liveEvents.recheck, opened)
  const wakeUp = coalesceWakeUps(stream => {
    host.wakeUp(stream)
    liveEvents.wake(stream)
  })
  const ownLog = await openLogWriter({ ...context, positions: stores.management, wakeUp }, opened)
  const eventLog = { ...ownLog, ...options.eventLog }
  const saltStore = opened.adopt(await openSalts(config, logger), store => store.close())
  const salts = opened.adopt(createDailySaltCache({ ...context, store: saltStore, timers: context }), daily =>
    daily.close(),
  )
  const projectIdOf = (token: string) => definitions.findProject(token)?.project.id ?? null
  const decodeThreads = opened.adopt(createDecodePool({ projectIdOf, logger, metrics }), threads => threads.close())
  const parts: FrontParts = {
    ...{ ...context, eventLog, stores, counters, definitions, liveEvents, salts, decodeThreads },
    sessionCookie: createSessionCookieName(readLogId(config)),
  }

  const flags = composeFlags(parts)
  const capture = composeCapture(parts)
  const health = composeHealth(parts)
  const hasAdminPort = config.adminPort !== null
  const { addressBase } = context
  const wireRoutes = [
    ...flags.routes,
    ...capture.routes,
    ...health.routes,
    startPageRoute({ version, addressBase, hasScreens: !hasAdminPort }),
  ]
  const otherRoutes = [...wireRoutes, health.metricsRoute]
  const management = composeManagement(parts, {
    ...{ decide: flags.decide, rejects: capture.rejects },
    ...{ version, otherRoutes },
  })
  const screens = screensRoutes({
    screens: openBuiltScreens(screensFolder),
    randomBytes: context.randomBytes,
    howToBuild: howToBuildScreens,
  })
  const privateRoutes = [...management.routes, ...screens, health.metricsRoute]
  const publicRoutes = hasAdminPort ? wireRoutes : [...wireRoutes, ...privateRoutes]
  const adminPage = startPageRoute({ version, addressBase, hasScreens: true })
  const adminRoutes = hasAdminPort ? [...privateRoutes, ...health.routes, adminPage] : null
  const servers = composeServers(
    parts,
    {
      publicRoutes,
      adminRoutes,
      streams: [definitions.changes, liveEvents],
      eventsServer: connections => composeEventsServer(parts, connections),
    },
    opened,
  )

  const running = opened.move()
  return {
    routes: publicRoutes,
    listen: async () => {
      options.beforeListening?.()
      return servers.listen()
    },
    writeCounts: counters.refused.flush,
    close: () => running.disposeAsync(),
  }
}

/**
 * The limits of one front. Each watcher may hold some 300 KiB while its client is slow. No project may use all watchers.
 */
const watcherLimits = { watchersMax: 300, watchersPerProjectMax: 100 }

function composeLiveEvents(
  { clock, metrics, logger, monotonicNowMs, startTimer, startTimeout }: FrontContext,
  log: EventLogReader,
): LiveEvents {
  return createLiveEventBroadcaster({
    ...{ log, metrics, logger, monotonicNowMs, startTimer, startTimeout },
    ...watcherLimits,
    eventsPerSecondMax: liveEventsPerSecondMax,
    messages: liveMessages,
    nowMs: clock.nowMs,
    workedMs: () => {
      const { user, system } = process.threadCpuUsage()
      return (user + system) / 1_000
    },
  })
}
