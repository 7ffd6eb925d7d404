// Computes events per project and UTC charge day for `usage_daily`, live and imported separately. The figures are computed from
// deduplicated rows of the event store, never incremented, so retries and replays count once. A day is frozen two days later,
// but never while its live events wait in the log. If the event store has lost rows of a day, its figures are not lowered.

import { dayMs } from '#core/time.ts'
import { noEventUsage, utcDay } from '#core/usage.ts'
import type { Clock } from '#ports/clock.ts'
import type { ChargedUsage, UsageDay } from '#ports/events/event-store-upkeep.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import type { UsageStore } from '#ports/state/accounting-store.ts'
import type { ProjectStore } from '#ports/state/project-store.ts'
import type { LogBindingStore } from '#ports/state/worker-state.ts'
import { findStreamProgress, type ProgressStore } from '../progress/find-progress.ts'
import type { Schedule } from '../shared/run-periodically.ts'
import type { EventStoreRestorer, LostSpan } from './restore-event-store.ts'

/** Well below the 20 s within which usage must be correct. */
const everyMs = 10_000
/** Today and the two days before; older days are frozen. */
const openDayCount = 3
/** How far back to look for days without figures. */
const lateMsMax = 35 * dayMs
/** A record that seems to have waited longer has a wrong time. */
const waitingMsMax = 400 * dayMs

export function createUsageSchedule(options: {
  readonly events: ChargedUsage
  readonly usage: Pick<UsageStore, 'saveEventCounts'> &
    Pick<ProjectStore, 'listProjectIds'> &
    Pick<LogBindingStore, 'sumChargedRecords'>
  readonly log: Pick<EventLogReader, 'listStreams' | 'readStreamStatus'>
  /** Reads the durable positions, not the worker's positions in memory. */
  readonly positions: ProgressStore
  /** The time spans whose events are currently missing in the event store. */
  readonly findLostSpans: EventStoreRestorer['findLostSpans']
  readonly clock: Clock
}) {
  const { events, usage, log, positions, findLostSpans, clock } = options
  /** How many records each project had when its usage was last computed, whichever worker processed them. */
  const computed = new Map<number, number>()
  let lastDay = ''
  /** The first day that the last round left open: events processed since that round may belong to it. */
  let openSince: string | null = null
  /**
   * The projects whose usage is to be computed, each with the first day to compute. Failed projects come last, the most
   * recently failed at the end, so that a project that takes longer to count than the event store allows does not block
   * others.
   */
  const due = new Map<number, string>()
  const failed = new Set<number>()

  /** Computes the figures that changed; all of them after a start and when a day begins. Failed projects remain due. */
  async function round(signal?: AbortSignal): Promise<void> {
    const nowMs = clock.nowMs()
    const today = utcDay(nowMs)
    const openDays = listDays((await findOldestWaitingMs(nowMs)) - (openDayCount - 1) * dayMs, nowMs)
    const openFrom = openDays[0]!
    // Read before anything is computed, so that a project whose events are processed during that time is due again.
    const recordCounts = new Map(
      (await usage.sumChargedRecords()).map(({ projectId, recordCount }) => [projectId, recordCount]),
    )
    const fromDay = openSince === null ? openFrom : chooseEarlierDay(openFrom, openSince)
    if (today !== lastDay) {
      // Days on which no worker ran get their figures now, and are frozen with them.
      const lateFrom = chooseEarlierDay(fromDay, utcDay(nowMs - lateMsMax))
      for (const projectId of await usage.listProjectIds()) markDue(projectId, lateFrom)
      // A project that is not due now was deleted: its records count as computed.
      for (const [projectId, recordCount] of recordCounts) if (!due.has(projectId)) computed.set(projectId, recordCount)
    } else
      for (const [projectId, recordCount] of recordCounts)
        if (computed.get(projectId) !== recordCount) markDue(projectId, fromDay)
    const lost = due.size === 0 ? [] : await findLostSpans()
    lastDay = today
    openSince = openFrom
    for (const projectId of [...[...due.keys()].filter(id => !failed.has(id)), ...failed]) {
      failed.delete(projectId)
      try {
        const counted = await events.countUsage(projectId, due.get(projectId)!, openDays.at(-1)!, signal)
        await save(projectId, openDays, counted, lost)
      } catch (cause) {
        failed.add(projectId)
        throw cause
      }
      due.delete(projectId)
      const recordCount = recordCounts.get(projectId)
      if (recordCount !== undefined) computed.set(projectId, recordCount)
    }
  }

  function markDue(projectId: number, fromDay: string): void {
    due.set(projectId, chooseEarlierDay(due.get(projectId) ?? fromDay, fromDay))
  }

  /** When the oldest unprocessed live event was accepted; `nowMs` if there is no such event. */
  async function findOldestWaitingMs(nowMs: number): Promise<number> {
    let oldestMs = nowMs
    for (const { stream, traffic } of await log.listStreams()) {
      if (traffic !== 'live') continue
      const { doneOffset } = await findStreamProgress(positions, stream)
      const { appendedAtMs } = await log.readStreamStatus(stream, doneOffset)
      oldestMs = Math.min(oldestMs, appendedAtMs ?? nowMs)
    }
    return Math.max(oldestMs, nowMs - waitingMsMax)
  }

  /** Writes zero for an open day without events, since it may have had events before an import was discarded. */
  async function save(
    projectId: number,
    openDays: readonly string[],
    counted: readonly UsageDay[],
    lost: readonly LostSpan[],
  ): Promise<void> {
    const days = new Map(counted.map(row => [row.day, row]))
    for (const day of openDays) if (!days.has(day)) days.set(day, { day, ...noEventUsage })
    const lostDays = [...days.keys()].filter(day => lost.some(span => spanTouchesDay(span, day)))
    await usage.saveEventCounts(projectId, [...days.values()], openDays[0]!, lostDays)
  }

  return { everyMs, what: 'computing usage', round } satisfies Schedule
}

/** All days from the first time to the second, both included, ascending. */
function listDays(fromMs: number, toMs: number): string[] {
  const from = Math.floor(fromMs / dayMs)
  return Array.from({ length: Math.floor(toMs / dayMs) - from + 1 }, (_, index) => utcDay((from + index) * dayMs))
}

function spanTouchesDay({ oldestMs, newestMs }: LostSpan, day: string): boolean {
  return (oldestMs === null || utcDay(oldestMs) <= day) && (newestMs === null || day <= utcDay(newestMs))
}

function chooseEarlierDay(a: string, b: string): string {
  return a < b ? a : b
}
