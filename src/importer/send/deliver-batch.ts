// Gets one batch to the service, however long it takes: waits where waiting helps, halves where the batch is at fault,
// stops where neither does. Source: docs/wire/import.md §2.4 (definite refusal), §2.5 (rate, back-off).

import { formatSpan } from '#importer/fetch/describe-wait.ts'
import { backOffMs } from '../fetch/back-off.ts'
import { type FetchClock, sleepUntil } from '../fetch/fetch-clock.ts'
import { JobStopped } from '../job/job-paused.ts'
import type { StageProgress } from '../job/progress.ts'
import { type AnsweredBatch, type BatchAnswer, type BatchTarget, postBatch } from './post-batch.ts'
import type { RateControl } from './rate-control.ts'
import type { OutgoingEvent } from './rounds.ts'
import type { ServiceWaits } from './service-waits.ts'

export interface RefusedEvent {
  readonly outgoing: OutgoingEvent
  /** The service's own word, or `record_too_large`. */
  readonly reason: 'record_too_large' | `server_refused:${string}`
  readonly field: string | null
  readonly detail: string | null
}

export interface Delivered {
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
  /** Called for each event that the service refuses for good; may throw to pause the job before more are. */
  readonly onRefused?: (refused: RefusedEvent) => void
}

/** After so long without an answer people are told loudly, again and again. */
const loudEveryMs = 15 * 60_000

/** @throws JobStopped; the reason of the signal when it is aborted. */
export async function deliverBatch(events: readonly OutgoingEvent[], deps: DeliveryDeps): Promise<Delivered> {
  const answer = await answerFor(events, deps)
  if (answer.kind === 'stop') throw new JobStopped(answer.description)
  if (answer.kind === 'accepted') return accepted(events, answer, deps)
  if (events.length > 1) {
    const half = Math.ceil(events.length / 2)
    const first = await deliverBatch(events.slice(0, half), deps)
    return joined(first, await deliverBatch(events.slice(half), deps))
  }
  const field = answer.kind === 'refused' ? answer.field : null
  const reason = answer.kind === 'refused' ? answer.reason : 'too_large'
  return refusedAlone(
    { outgoing: events[0]!, reason: `server_refused:${reason}`, field, detail: answer.description },
    deps,
  )
}

/** What the service says once it says anything that waiting cannot change. */
async function answerFor(
  events: readonly OutgoingEvent[],
  deps: DeliveryDeps,
): Promise<Exclude<BatchAnswer, { kind: 'trouble' }>> {
  const { target, clock, rate, progress, waits, signal } = deps
  const texts = events.map(({ text }) => text)
  let troubleSinceMs: number | null = null
  let loudMs = 0
  for (let tries = 1; ; tries++) {
    for (let waitMs = rate.take(events.length); waitMs > 0; waitMs = rate.take(events.length))
      await sleepUntil(clock, after(clock, waitMs), signal)
    const sentMs = clock.nowMs()
    const { answer, rate: allowed }: AnsweredBatch = await postBatch(target, texts, signal)
    if (allowed !== null) rate.limitTo(allowed)
    if (answer.kind !== 'trouble') {
      if (answer.kind === 'accepted') rate.accepted(clock.nowMs() - sentMs)
      waits.gotThrough(events)
      return answer
    }
    // A service that names a rate knows it better than a guess, from which it would take an hour to come back.
    if (answer.isOverload && allowed === null) rate.refused()
    if (answer.isOverload) rate.giveBack(events.length)
    const now = clock.nowMs()
    troubleSinceMs ??= now
    progress.add({ retries: 1 })
    if (now - troubleSinceMs >= loudMs + loudEveryMs) {
      loudMs = now - troubleSinceMs
      progress.say(
        `WARNING: nothing could be sent for ${formatSpan(loudMs)}: ${answer.description}. Nothing is lost; it goes on by itself.`,
      )
    }
    const untilMs = now + pauseMs(answer.retryAfterMs, allowed, tries, clock.random())
    await waits.wait(events, { reason: answer.description, untilMs, isAsked: answer.retryAfterMs !== null }, signal)
  }
}

/** Lanes that were refused together come back within this time, not all at once. */
const spreadMs = 1_000

/** A service that names a rate knows how long it needs; of any other, a pause that was too short says to wait longer. */
function pauseMs(retryAfterMs: number | null, allowed: number | null, tries: number, random: number): number {
  if (retryAfterMs === null || allowed === null) return backOffMs(tries, random, retryAfterMs)
  return backOffMs(1, 0, retryAfterMs) + Math.ceil(random * spreadMs)
}

function after(clock: FetchClock, ms: number): () => number {
  const untilMs = clock.nowMs() + ms
  return () => untilMs
}

function accepted(
  events: readonly OutgoingEvent[],
  { duplicates, recent, failed }: BatchAnswer & { kind: 'accepted' },
  deps: DeliveryDeps,
): Delivered {
  const refused: RefusedEvent[] = []
  for (const { index, reason, field } of failed) {
    const outgoing = events[index]
    if (outgoing === undefined)
      throw new JobStopped(`${deps.target.address} refuses an event that was not sent (${index})`)
    refused.push({ outgoing, reason: `server_refused:${reason}`, field, detail: null })
  }
  for (const each of refused) deps.onRefused?.(each)
  return { sent: events.length - refused.length, duplicates, recent, refused }
}

function refusedAlone(refused: RefusedEvent, deps: DeliveryDeps): Delivered {
  deps.onRefused?.(refused)
  return { sent: 0, duplicates: 0, recent: 0, refused: [refused] }
}

export function joined(a: Delivered, b: Delivered): Delivered {
  return {
    sent: a.sent + b.sent,
    duplicates: a.duplicates + b.duplicates,
    recent: a.recent + b.recent,
    refused: [...a.refused, ...b.refused],
  }
}
