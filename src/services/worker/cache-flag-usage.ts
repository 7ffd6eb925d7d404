// Counts in advance how often busy flags were called, by hour and by day, so that queries of their usage are fast. A missing or
// outdated count only costs time; but a merge of persons shows in cached counts only once they are refreshed here.

import { makeBuckets } from '#core/insights/buckets.ts'
import { minOf } from '#core/min-max.ts'
import type { Project } from '#core/project.ts'
import { dayMs } from '#core/time.ts'
import type { Clock } from '#ports/clock.ts'
import type { BusyFlag, FlagUsageUpkeep, MovedDay } from '#ports/events/flag-usage-upkeep.ts'
import type { ProjectStore } from '#ports/state/project-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from '../shared/run-periodically.ts'

/** Also about the delay until a merge shows in a flag with few counts. */
export const refreshFlagUsageEveryMs = 30_000
/** Fewer calls than this are counted fast enough on demand. */
const busyCallsMin = 100_000
const busyFlagsMax = 100
/** Hourly buckets are cached for the longest range of one query, daily buckets for a year. */
const cachedDays = { hour: 41, day: 366 } as const
/** Calls per query, which its last bucket may exceed: a million takes a tenth of a second. */
const callsPerQuery = 2_000_000
/** The duration of a round; the store is then left to others until the next round. */
const roundMsMax = 3_000
/** How much later than its timestamp an override may become visible, given the clocks of two workers. */
const clockSlackMs = 120_000
/**
 * Finding busy flags reads a column of all calls, so it may take at most a hundredth of the time. With few calls it
 * runs in every round, so that a flag that suddenly gets many calls, from an import or after a start, soon counts as
 * busy.
 */
const busyShare = 1 / 100
const busyForMsMax = 3_600_000

export interface FlagUsageRefresher {
  run(signal: AbortSignal): Promise<void>
  /** Runs one round. @returns whether all counts are cached. @throws PortError; failed counts remain due. */
  keepNow(signal?: AbortSignal): Promise<boolean>
}

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
  /** The time of each day's latest merge, for days whose counts may be older. */
  readonly moved: Map<number, number>
  /** Merges before this time are in `moved`. */
  movedUntilMs: number
}

interface Turn {
  readonly endMs: number
  readonly signal: AbortSignal | undefined
}

export function createFlagUsageRefresher(options: FlagUsageRefresherOptions): FlagUsageRefresher {
  const { events, projects, clock, logger, callsMin = busyCallsMin, roundMs = roundMsMax } = options
  const known = new Map<number, KnownProject>()

  async function keepNow(signal?: AbortSignal): Promise<boolean> {
    const turn = { endMs: performance.now() + roundMs, signal }
    const ids = await projects.listProjectIds()
    for (const id of known.keys()) if (!ids.includes(id)) known.delete(id)
    let isComplete = true
    // Projects that had a turn go last, so that one project's calls do not keep another waiting for ever.
    const order = [...ids.filter(id => !known.has(id)), ...known.keys()]
    for (const id of order) {
      if (performance.now() >= turn.endMs) return false
      const project = await projects.findProject(id)
      if (project !== null && !(await keepProject(project, turn))) isComplete = false
    }
    return isComplete
  }

  async function keepProject(project: Project, turn: Turn): Promise<boolean> {
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
    recordMoves(about, await events.listMovedDays(project.id, about.movedUntilMs - clockSlackMs, turn.signal))
    about.movedUntilMs = nowMs
    for (const flag of about.busyFlags)
      for (const interval of ['day', 'hour'] as const)
        if (!(await keepBuckets({ project, flag, interval, moved: about.moved, nowMs }, turn))) return false
    about.moved.clear()
    return true
  }

  async function keepBuckets(
    what: {
      readonly project: Project
      readonly flag: BusyFlag
      readonly interval: 'hour' | 'day'
      readonly moved: ReadonlyMap<number, number>
      readonly nowMs: number
    },
    turn: Turn,
  ): Promise<boolean> {
    const { project, flag, interval, moved, nowMs } = what
    const firstMs = minOf(flag.callsOfDay.keys())
    const edges = listClosedEdges(project, interval, nowMs).filter(ms => ms > firstMs - dayMs)
    if (edges.length < 2) return true
    const query = { projectId: project.id, flagKey: flag.flagKey, buckets: { edges } }
    const listed = await events.listCachedUsage(query, turn.signal)
    const cached = new Map(listed.map(({ fromMs, cachedAtMs }) => [fromMs, cachedAtMs]))
    const isDue = (index: number) => {
      const cachedAtMs = cached.get(edges[index]!)
      return (
        cachedAtMs === undefined ||
        cachedAtMs > nowMs ||
        findLatestMerge(moved, edges[index]!, edges[index + 1]!) > cachedAtMs
      )
    }
    // The latest first: they are queried most.
    for (let end = edges.length - 1; end > 0; ) {
      if (!isDue(end - 1)) {
        end--
        continue
      }
      let from = end - 1
      let calls = estimateCalls(flag, edges[from]!, edges[end]!)
      for (; from > 0 && calls < callsPerQuery && isDue(from - 1); from--)
        calls += estimateCalls(flag, edges[from - 1]!, edges[from]!)
      if (performance.now() >= turn.endMs) return false
      const buckets = { edges: edges.slice(from, end + 1) }
      await events.cacheUsage({ ...query, buckets, nowMs: clock.nowMs() }, turn.signal)
      end = from
    }
    return true
  }

  return {
    keepNow,
    run: signal =>
      runPeriodically(
        async stop => {
          await keepNow(stop)
        },
        {
          everyMs: refreshFlagUsageEveryMs,
          what: 'precomputing flag usage',
          mayRun: options.mayRun,
          logger,
          signal,
        },
      ),
  }
}

/** The approximate number of calls in a range, as if each day's calls were evenly spread. */
function estimateCalls({ callsOfDay }: BusyFlag, fromMs: number, endMs: number): number {
  let calls = 0
  for (let day = fromMs - (fromMs % dayMs); day < endMs; day += dayMs)
    calls += ((callsOfDay.get(day) ?? 0) * (Math.min(endMs, day + dayMs) - Math.max(fromMs, day))) / dayMs
  return calls
}

function recordMoves({ moved }: KnownProject, days: readonly MovedDay[]): void {
  for (const { dayMs, movedAtMs } of days)
    moved.set(dayMs, Math.max(movedAtMs + clockSlackMs, moved.get(dayMs) ?? movedAtMs))
}

/** The time of the latest merge that affects a range, plus slack; -∞ if there is none. */
function findLatestMerge(moved: ReadonlyMap<number, number>, fromMs: number, endMs: number): number {
  let latest = Number.NEGATIVE_INFINITY
  for (const [day, movedAtMs] of moved) if (day < endMs && day + dayMs > fromMs) latest = Math.max(latest, movedAtMs)
  return latest
}

/**
 * The edges of the buckets that have ended, as have all UTC days that they touch: calls of such days arrive rarely, while
 * today's calls would immediately invalidate every count.
 */
function listClosedEdges({ timezone }: Project, interval: 'hour' | 'day', nowMs: number): readonly number[] {
  const todayMs = nowMs - (nowMs % dayMs)
  const range = { fromMs: todayMs - cachedDays[interval] * dayMs, endMs: todayMs }
  const buckets = makeBuckets(range, interval, { timezone, weekStartDay: 0 }, 10_000)
  // The last bucket was cut off at the end of the range.
  return buckets === null ? [] : buckets.edges.filter(ms => ms < todayMs || isBucketStart(ms, interval, timezone))
}

function isBucketStart(ms: number, interval: 'hour' | 'day', timezone: string): boolean {
  const buckets = makeBuckets({ fromMs: ms, endMs: ms + 1 }, interval, { timezone, weekStartDay: 0 }, 1)
  return buckets?.edges[0] === ms
}
