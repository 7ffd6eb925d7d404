// Knows which projects have used up a quota of this UTC month. The worker counts usage from the event store, each event
// once, so a retry never brings a project nearer to its quota. Every front reads that usage from the state every few
// seconds: a quota takes effect within about 20 s of the event that used it up; a raised or lifted quota takes effect at
// once.

import { type QuotaResource, quotaOf, quotaResources } from '#core/capture/quota-resource.ts'
import type { Project } from '#core/project.ts'
import { endOfUtcDay, type LiveUsage, monthOf, utcDay } from '#core/usage.ts'
import type { Clock } from '#ports/clock.ts'
import type { UsageStore } from '#ports/state/accounting-store.ts'
import type { Logger } from '#telemetry/log.ts'

export type EventQuotas = ReturnType<typeof startEventQuotaTracker>

const usageOf = {
  events: 'eventsCharged',
  exceptions: 'exceptions',
  recordings: 'recordings',
  llm_events: 'llmEvents',
  survey_responses: 'surveyResponses',
} as const satisfies Record<QuotaResource, keyof LiveUsage>

export function startEventQuotaTracker(options: {
  readonly usage: Pick<UsageStore, 'sumUsage'>
  readonly clock: Clock
  readonly logger: Logger
  readonly readMs: number
}) {
  const { usage, clock, logger } = options
  /** Usage of the projects with a quota above 0; undefined before a project's first read. */
  const used = new Map<number, LiveUsage | undefined>()
  let month = monthOf(utcDay(clock.nowMs()))
  let dayEndsAtMs = endOfUtcDay(clock.nowMs())
  let running: Promise<void> | undefined
  let isFailing = false

  const timer = setInterval(() => void refreshSums(), options.readMs)
  timer.unref()

  return {
    /** Based on the last usage read for the current month; false before the first read. A quota of 0 is always used up. */
    isOverQuota(project: Project, resource: QuotaResource): boolean {
      const quota = quotaOf(project.quotas, resource)
      if (quota === null || quota === 0) return quota === 0
      updateMonth()
      const sums = used.get(project.id)
      return sums !== undefined && sums[usageOf[resource]] >= quota
    },
    /** Call when a project's definitions change, since they hold its quotas. */
    follow({ id, quotas }: Project): void {
      const isLimited = quotaResources.some(resource => (quotaOf(quotas, resource) ?? 0) > 0)
      if (!isLimited) used.delete(id)
      else if (!used.has(id)) used.set(id, undefined)
    },
    /** Resolves when this month's usage of all followed projects has been read, or the read failed. */
    async caughtUp(): Promise<void> {
      if (hasUnread()) await refreshSums()
      if (hasUnread()) await refreshSums() // the first read may have begun before the project was followed
    },
    async close(): Promise<void> {
      clearInterval(timer)
      await running
    },
  }

  function hasUnread(): boolean {
    return used.values().some(sums => sums === undefined)
  }

  /** A new month begins with nothing used. */
  function updateMonth(): void {
    const nowMs = clock.nowMs()
    if (nowMs < dayEndsAtMs) return
    dayEndsAtMs = endOfUtcDay(nowMs)
    const before = month
    month = monthOf(utcDay(nowMs))
    if (month !== before) for (const id of used.keys()) used.set(id, undefined)
  }

  /** Runs at most once at a time. When a read fails, the usage from the previous read stays in effect. */
  function refreshSums(): Promise<void> {
    running ??= readSums().finally(() => {
      running = undefined
    })
    return running
  }

  async function readSums(): Promise<void> {
    updateMonth()
    if (used.size === 0) return
    const ids = [...used.keys()]
    const asked = month
    try {
      const sums = await usage.sumUsage(ids, `${asked}-01`, `${asked}-31`)
      updateMonth()
      if (month !== asked) return
      const sumOf = new Map(sums.map(sum => [sum.projectId, sum]))
      for (const id of ids) if (used.has(id)) used.set(id, sumOf.get(id) ?? nothingUsed)
      isFailing = false
    } catch (cause) {
      if (!isFailing)
        logger.warn({ err: cause }, "cannot read this month's usage; enforcing quotas with the last known usage")
      isFailing = true
    }
  }
}

const nothingUsed: LiveUsage = { eventsCharged: 0, exceptions: 0, llmEvents: 0, surveyResponses: 0, recordings: 0 }
