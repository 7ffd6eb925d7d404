// Counts in advance how often busy flags were called, by hour and by day, so that queries of their usage are fast. A missing or
// outdated count only costs time; but a merge of persons shows in cached counts only once they are refreshed here.

import { createBuckets } from '#core/insights/buckets.ts'
import { minOf } from '#core/min-max.ts'
import type { Project } from '#core/project.ts'
import { dayMs } from '#core/time.ts'
import type { Clock } from '#ports/clock.ts'
import type { BusyFlag, FlagUsageUpkeep } from '#ports/events/insight-queries.ts'
import type { ProjectStore } from '#ports/state/project-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from '../shared/run-periodically.ts'

/** How often counts are refreshed. In a flag with few counts, a merge of persons shows after about this time too. */
export const refreshFlagUsageEveryMs = 30_000
/** Fewer calls than this are counted fast enough on demand. */
const busyCallsMin = 100_000
const busyFlagsMax = 100
/** Hourly buckets are cached for the longest range of one query, daily buckets for a year. */
const cachedDays = { hour: 41, day: 366 } as const
/** The most calls per query, though its last bucket may exceed this: a million calls take a tenth of a second. */
const callsPerQuery = 2_000_000
/** The longest duration of one round of counting; afterwards the store is left to other work until the next round. */
const roundMsMax = 3_000
/** How much later than its timestamp an override may become visible, given the clocks of two workers. */
const clockSlackMs = 120_000
/**
 * Finding busy flags reads a column of all calls, so it may take at most a hundredth of the time. With few calls the search
 * runs in every round, so that a flag that suddenly gets many calls, from an import or after a start, soon counts as busy.
 */
const busyShare = 1 / 100
const busyForMsMax = 3_600_000

export interface FlagUsageRefresherOptions {
  readonly events: FlagUsageUpkeep
  readonly projects: Pick<ProjectStore, 'listProjectIds' | 'findProject'>
  readonly clock: Clock
  readonly logger: Logger
  /** Whether this worker holds the schedule lease, so that it runs the schedules. */
  readonly mayRun?: () => Promise<boolean>
  /** Default: 100,000. */
  readonly callsMin?: number
  /** Default: 3 s. */
  readonly roundMs?: number
}

/** The findings of a round about a project, for later rounds. */
interface KnownProject {
  busyFlags: readonly BusyFlag[]
  busyUntilMs: number
  /** By day: the time of the latest merge that affects it, for days whose counts may be older than that merge. */
  readonly moved: Map<number, number>
  /** Merges before this time are in `moved`. */
  movedUntilMs: number
}

interface Turn {
  readonly endMs: number
  readonly signal: AbortSignal | undefined
}

export function createFlagUsageRefresher(options: FlagUsageRefresherOptions) {
  const { events, projects, clock, logger, callsMin = busyCallsMin, roundMs = roundMsMax } = options
  const known = new Map<number, KnownProject>()

  /** Runs one round. @returns whether all counts are cached. @throws PortError; failed counts remain due. */
  async function refreshNow(signal?: AbortSignal): Promise<boolean> {
    const turn = { endMs: performance.now() + roundMs, signal }
    const ids = await projects.listProjectIds()
    for (const id of known.keys()) if (!ids.includes(id)) known.delete(id)
    let isComplete = true
    // Projects that were counted before go last, so that one project's calls never keep another project waiting for ever.
    const order = [...ids.filter(id => !known.has(id)), ...known.keys()]
    for (const id of order) {
      if (performance.now() >= turn.endMs) return false
      const project = await projects.findProject(id)
      if (project !== null && !(await cacheProject(project, turn))) isComplete = false
    }
    return isComplete
  }

  async function cacheProject(project: Project, turn: Turn): Promise<boolean> {
    const nowMs = clock.nowMs()
    const about = known.get(project.id) ?? {
      ...{ busyFlags: [], busyUntilMs: 0, moved: new Map(), movedUntilMs: nowMs - cachedDays.day * dayMs },
    }
    known.delete(project.id)
    known.set(project.id, about)
    if (about.busyUntilMs <= nowMs || about.busyUntilMs > nowMs + busyForMsMax) {
      const startedMs = performance.now()
      const since = { fromMs: nowMs - cachedDays.day * dayMs, callsMin, limit: busyFlagsMax }
      about.busyFlags = await events.listBusyFlags(project.id, since, turn.signal)
      about.busyUntilMs = nowMs + Math.min(busyForMsMax, (performance.now() - startedMs) / busyShare)
    }
    if (about.busyFlags.length === 0) return true
    const { moved } = about
    const latest = await events.listDaysOfMovedIds(project.id, about.movedUntilMs - clockSlackMs, turn.signal)
    for (const [day, movedAtMs] of latest) moved.set(day, Math.max(movedAtMs + clockSlackMs, moved.get(day) ?? 0))
    about.movedUntilMs = nowMs
    const closed = (['day', 'hour'] as const).map(interval => listClosedEdges(project, interval, nowMs))
    for (const flag of about.busyFlags)
      for (const edges of closed) if (!(await cacheBuckets(project.id, flag, edges, moved, turn))) return false
    moved.clear()
    return true
  }

  async function cacheBuckets(
    projectId: number,
    { flagKey, callsOfDay }: BusyFlag,
    closed: readonly number[],
    moved: ReadonlyMap<number, number>,
    turn: Turn,
  ): Promise<boolean> {
    const firstMs = minOf(callsOfDay.keys())
    const edges = closed.filter(ms => ms > firstMs - dayMs)
    if (edges.length < 2) return true
    const query = { projectId, flagKey, buckets: { edges } }
    const listed = await events.listCachedUsage(query, turn.signal)
    const cached = new Map(listed.map(({ fromMs, cachedAtMs }) => [fromMs, cachedAtMs]))
    const nowMs = clock.nowMs()
    const isDue = (index: number) => {
      const cachedAtMs = cached.get(edges[index]!)
      if (cachedAtMs === undefined || cachedAtMs > nowMs) return true
      return listDayStarts(edges[index]!, edges[index + 1]!).some(day => (moved.get(day) ?? 0) > cachedAtMs)
    }
    // Estimates calls as if each day's calls were evenly spread.
    const estimateCalls = (index: number) => {
      const [fromMs, endMs] = [edges[index]!, edges[index + 1]!]
      const share = (day: number) => (Math.min(endMs, day + dayMs) - Math.max(fromMs, day)) / dayMs
      return listDayStarts(fromMs, endMs).reduce((sum, day) => sum + (callsOfDay.get(day) ?? 0) * share(day), 0)
    }
    // The latest buckets first: they are queried most.
    for (let end = edges.length - 1; end > 0; end--) {
      if (!isDue(end - 1)) continue
      let from = end - 1
      for (let calls = estimateCalls(from); from > 0 && calls < callsPerQuery && isDue(from - 1); )
        calls += estimateCalls(--from)
      if (performance.now() >= turn.endMs) return false
      const buckets = { edges: edges.slice(from, end + 1) }
      await events.cacheUsage({ ...query, buckets, nowMs: clock.nowMs() }, turn.signal)
      end = from + 1
    }
    return true
  }

  return {
    refreshNow,
    run: (signal: AbortSignal) =>
      runPeriodically(async stop => void (await refreshNow(stop)), {
        ...{ everyMs: refreshFlagUsageEveryMs, what: 'precomputing flag usage' },
        ...{ mayRun: options.mayRun, logger, signal },
      }),
  }
}

/** The starts of the UTC days that a range touches. */
function listDayStarts(fromMs: number, endMs: number): number[] {
  const days: number[] = []
  for (let day = fromMs - (fromMs % dayMs); day < endMs; day += dayMs) days.push(day)
  return days
}

/**
 * The edges of the buckets that lie entirely in UTC days that have ended: calls of such days arrive rarely, while today's
 * calls would immediately invalidate every count.
 */
function listClosedEdges({ timezone }: Project, interval: 'hour' | 'day', nowMs: number): readonly number[] {
  const todayMs = nowMs - (nowMs % dayMs)
  const range = { fromMs: todayMs - cachedDays[interval] * dayMs, endMs: todayMs + 2 * dayMs }
  return createBuckets(range, interval, { timezone, weekStartDay: 0 }, 10_000)!.edges.filter(ms => ms <= todayMs)
}
