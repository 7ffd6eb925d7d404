// Which projects have used up a quota of this UTC month. Usage is what the worker counts out of the event store, each event
// once, so a retry never brings a project nearer to its quota. Read every few seconds from the state, as every front does:
// a quota takes effect within about 20 s of the event that used it up, and one that is raised or lifted at once.

import { type QuotaResource, quotaOf, quotaResources } from '#core/capture/quota-resource.ts'
import type { Project } from '#core/project.ts'
import { endOfUtcDay, type LiveUsage, monthOf, utcDay } from '#core/usage.ts'
import type { Clock } from '#ports/clock.ts'
import type { UsageStore } from '#ports/management-store.ts'
import type { Logger } from '#telemetry/log.ts'

export interface EventQuotas {
  /** As last read, for the month that it is now; with a quota of 0 always. While nothing was read: only then. */
  isOverQuota(project: Project, resource: QuotaResource): boolean
  /** Its definitions changed: whether it has a quota stands in them. */
  follow(project: Project): void
  /** Resolves when what followed projects used this month was read, unless that fails. */
  caughtUp(): Promise<void>
  close(): Promise<void>
}

const usageOf = {
  events: 'eventsCharged',
  exceptions: 'exceptions',
  recordings: 'recordings',
  llm_events: 'llmEvents',
  survey_responses: 'surveyResponses',
} as const satisfies Record<QuotaResource, keyof LiveUsage>

export function startEventQuotas(options: {
  readonly usage: Pick<UsageStore, 'sumUsage'>
  readonly clock: Clock
  readonly logger: Logger
  readonly readMs: number
}): EventQuotas {
  const { usage, clock, logger } = options
  /** Projects with a quota above 0; undefined for one that was not read yet. */
  const used = new Map<number, LiveUsage | undefined>()
  let month = monthOf(utcDay(clock.nowMs()))
  let dayEndsAtMs = endOfUtcDay(clock.nowMs())
  let running: Promise<void> | undefined
  let isFailing = false

  const timer = setInterval(() => void read(), options.readMs)
  timer.unref()

  return {
    isOverQuota(project, resource) {
      const quota = quotaOf(project.quotas, resource)
      if (quota === null || quota === 0) return quota === 0
      followClock()
      const sums = used.get(project.id)
      return sums !== undefined && sums[usageOf[resource]] >= quota
    },
    follow({ id, quotas }) {
      const isLimited = quotaResources.some(resource => (quotaOf(quotas, resource) ?? 0) > 0)
      if (!isLimited) used.delete(id)
      else if (!used.has(id)) used.set(id, undefined)
    },
    async caughtUp() {
      if (hasUnread()) await read()
      if (hasUnread()) await read() // the first one may have been under way before
    },
    async close() {
      clearInterval(timer)
      await running
    },
  }

  function hasUnread(): boolean {
    return used.values().some(sums => sums === undefined)
  }

  /** A new month begins with nothing used. */
  function followClock(): void {
    const nowMs = clock.nowMs()
    if (nowMs < dayEndsAtMs) return
    dayEndsAtMs = endOfUtcDay(nowMs)
    const before = month
    month = monthOf(utcDay(nowMs))
    if (month !== before) for (const id of used.keys()) used.set(id, undefined)
  }

  /** One at a time. When it fails, what was read before goes on to count. */
  function read(): Promise<void> {
    running ??= readSums().finally(() => {
      running = undefined
    })
    return running
  }

  async function readSums(): Promise<void> {
    followClock()
    if (used.size === 0) return
    const ids = [...used.keys()]
    const asked = month
    try {
      const sums = await usage.sumUsage(ids, `${asked}-01`, `${asked}-31`)
      followClock()
      if (month !== asked) return
      const sumOf = new Map(sums.map(sum => [sum.projectId, sum]))
      for (const id of ids) if (used.has(id)) used.set(id, sumOf.get(id) ?? nothingUsed)
      isFailing = false
    } catch (cause) {
      if (!isFailing)
        logger.warn({ err: cause }, 'what projects used this month could not be read; quotas go by what was')
      isFailing = true
    }
  }
}

const nothingUsed: LiveUsage = { eventsCharged: 0, exceptions: 0, llmEvents: 0, surveyResponses: 0, recordings: 0 }
