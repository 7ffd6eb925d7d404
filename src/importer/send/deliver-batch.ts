// Delivers one batch, however long it takes: retries if waiting can help, splits the batch if its content is at fault, and
// stops the job otherwise. Source: docs/wire/import.md §2.4 (definite refusal), §2.5 (rate, back-off).

import { computeRetryWaitMs, type FetchClock, formatWaitSpan, sleepUntil } from '#importer/fetch/waiting.ts'
import { JobStopped } from '../job/job-paused.ts'
import type { StageProgress } from '../job/progress.ts'
import { type BatchAnswer, type BatchResponse, type BatchTarget, postBatch } from './post-batch.ts'
import type { RateControl } from './rate-control.ts'
import type { OutgoingEvent } from './send-rounds.ts'
import { ServiceRefusal } from './service-api.ts'
import type { ServiceWaits } from './service-waits.ts'

export interface RefusedEvent {
  readonly outgoing: OutgoingEvent
  /** Why the event is refused: the service's reason, or `record_too_large`. */
  readonly reason: 'record_too_large' | `server_refused:${string}`
  readonly field: string | null
  readonly detail: string | null
}

export interface DeliveryResult {
  readonly sent: number
  readonly duplicates: number
  readonly recent: number
  readonly refused: readonly RefusedEvent[]
}

export interface DeliveryDeps {
  readonly target: BatchTarget
  readonly clock: FetchClock
  readonly rate: Pick<RateControl, 'take' | 'giveBack' | 'limitTo' | 'accepted' | 'refused'>
  readonly progress: StageProgress
  /** Shared by all lanes of a run. */
  readonly waits: ServiceWaits
  readonly signal: AbortSignal
  /** Called for each event that the service refuses for good; may throw to stop the job before it sends more. */
  readonly onRefused?: (refused: RefusedEvent) => void
}

/** How often to warn while nothing can be sent. */
const warnEveryMs = 15 * 60_000

/** @throws ServiceRefusal or another JobStopped, or the signal's reason when the signal is aborted. */
export async function deliverBatch(events: readonly OutgoingEvent[], deps: DeliveryDeps): Promise<DeliveryResult> {
  const answer = await postUntilAnswered(events, deps)
  if (answer.kind === 'stop') throw new ServiceRefusal(answer.description, answer.status, null, null)
  if (answer.kind === 'accepted') return reportDelivered(events, answer, deps)
  if (events.length > 1) {
    const half = Math.ceil(events.length / 2)
    const first = await deliverBatch(events.slice(0, half), deps)
    return sumDelivered(first, await deliverBatch(events.slice(half), deps))
  }
  const { reason, field } = answer.kind === 'refused' ? answer : { reason: 'too_large', field: null }
  const failed = [{ index: 0, reason, field }]
  return reportDelivered(events, { duplicates: 0, recent: 0, failed }, deps, answer.description)
}

/** Retries until the service gives an answer that waiting cannot change. */
async function postUntilAnswered(
  events: readonly OutgoingEvent[],
  deps: DeliveryDeps,
): Promise<Exclude<BatchAnswer, { kind: 'trouble' }>> {
  const { target, clock, rate, progress, waits, signal } = deps
  const texts = events.map(({ text }) => text)
  let troubleSinceMs: number | null = null
  let warnedMs = 0
  for (let tries = 1; ; tries++) {
    for (let waitMs = rate.take(events.length); waitMs > 0; waitMs = rate.take(events.length))
      await sleepUntil(clock, createDeadline(clock, waitMs), signal)
    const sentMs = clock.nowMs()
    const { answer, rate: allowed }: BatchResponse = await postBatch(target, texts, signal)
    if (allowed !== null) rate.limitTo(allowed)
    if (answer.kind !== 'trouble') {
      if (answer.kind === 'accepted') rate.accepted(clock.nowMs() - sentMs)
      waits.gotThrough(events)
      return answer
    }
    // Do not halve the rate if the service names one: it knows better, and recovery from a guess could take an hour.
    if (answer.isOverload && allowed === null) rate.refused()
    if (answer.isOverload) rate.giveBack(events.length)
    const now = clock.nowMs()
    troubleSinceMs ??= now
    progress.add({ retries: 1 })
    if (now - troubleSinceMs >= warnedMs + warnEveryMs) {
      warnedMs = now - troubleSinceMs
      progress.say(
        `WARNING: nothing could be sent for ${formatWaitSpan(warnedMs)}: ${answer.description}. Nothing is lost; sending continues by itself.`,
      )
    }
    const untilMs = now + choosePauseMs(answer.retryAfterMs, allowed, tries, clock.random())
    await waits.wait(events, { reason: answer.description, untilMs, isAsked: answer.retryAfterMs !== null }, signal)
  }
}

/** Jitter, so that lanes refused together do not all retry at once. */
const spreadMs = 1_000

/** If the service names its rate, trust its Retry-After; otherwise back off exponentially. */
function choosePauseMs(retryAfterMs: number | null, allowed: number | null, tries: number, random: number): number {
  if (retryAfterMs === null || allowed === null) return computeRetryWaitMs(tries, random, retryAfterMs)
  return computeRetryWaitMs(1, 0, retryAfterMs) + Math.ceil(random * spreadMs)
}

function createDeadline(clock: FetchClock, ms: number): () => number {
  const untilMs = clock.nowMs() + ms
  return () => untilMs
}

function reportDelivered(
  events: readonly OutgoingEvent[],
  { duplicates, recent, failed }: Omit<BatchAnswer & { kind: 'accepted' }, 'kind'>,
  deps: DeliveryDeps,
  detail: string | null = null,
): DeliveryResult {
  const refused: RefusedEvent[] = []
  for (const { index, reason, field } of failed) {
    const outgoing = events[index]
    if (outgoing === undefined)
      throw new JobStopped(`${deps.target.address} refuses an event that was not sent (${index})`)
    refused.push({ outgoing, reason: `server_refused:${reason}`, field, detail })
  }
  for (const each of refused) deps.onRefused?.(each)
  return { sent: events.length - refused.length, duplicates, recent, refused }
}

export function sumDelivered(a: DeliveryResult, b: DeliveryResult): DeliveryResult {
  return {
    sent: a.sent + b.sent,
    duplicates: a.duplicates + b.duplicates,
    recent: a.recent + b.recent,
    refused: [...a.refused, ...b.refused],
  }
}
