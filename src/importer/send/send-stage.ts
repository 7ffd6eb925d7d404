// Stage 6: sends what was approved, exactly once. Groups are sent first, then links, then the parts by day, in rounds of
// lines that are committed one by one. Called by `pennon import run`, which checks job and approval first. Source:
// docs/wire/import.md §2.4, §2.5.

import { formatCount } from '#core/format-count.ts'
import type { FetchClock } from '../fetch/waiting.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { JobPaused, JobStopped, throwIfPaused } from '../job/job-paused.ts'
import { JobState } from '../job/job-state.ts'
import type { StageProgress } from '../job/progress.ts'
import { isGeneratedPart, type StagedJob, type StagedPart, sumStagedParts } from '../job/staged-part.ts'
import {
  type Checkpoint,
  type CheckpointIdentity,
  checkSameJob,
  createCheckpoint,
  createPartProgress,
  getCheckpoint,
  type PartProgress,
  putCheckpoint,
  sumSendCounts,
} from './checkpoint.ts'
import {
  type DeliveryDeps,
  type DeliveryResult,
  deliverBatch,
  type RefusedEvent,
  sumDelivered,
} from './deliver-batch.ts'
import { RateControl } from './rate-control.ts'
import { divideIntoSendRounds, type Round } from './send-rounds.ts'
import { storeRefusedEvents } from './sent-events.ts'
import { ServiceWaits } from './service-waits.ts'

/** The steps of docs/wire/import.md §2.4, for tests that kill the process at each of them. */
export type SendStep = 'round begun' | 'batch answered' | 'committed'

export interface SendOptions {
  readonly folder: JobFolder
  readonly job: StagedJob
  /** The source's name, written into events and rejects. */
  readonly source: string
  readonly identity: CheckpointIdentity
  /** The service's secret id of its job, for the header X-Import-Job; null without a job at the service. */
  readonly secretJobId: string | null
  /** The project's public API key. */
  readonly projectKey: string
  readonly clock: FetchClock
  readonly progress: StageProgress
  /** Aborted by Ctrl-C. The stage then ends at once, and the next call continues from there. */
  readonly signal: AbortSignal
  /** Share of refused events above which the job stops, 0 to 1. */
  readonly maxRejectShare: number
  /** How many batches are sent at once. Default 4. */
  readonly lanes?: number
  /** Events per second at first. */
  readonly rate?: number
  /** The person that an id is linked to; by default each id is a separate person. */
  readonly personOf?: (distinctId: string) => string
  readonly onStep?: (step: SendStep) => void
}

const lanesDefault = 4
/** The share of refusals is computed from at least this many events. Source: docs/wire/import.md §2.6. */
const shareEventsMin = 1_000

/** The service refused everything, or more than the user allows. The next run sends the last refused events again. */
export class TooManyRefused extends JobStopped {
  /** How many events the service refused so far; `events` is the total that this number is compared with. */
  readonly refused: number
  readonly events: number
  constructor(message: string, { refused, events }: { readonly refused: number; readonly events: number }) {
    super(message)
    this.refused = refused
    this.events = events
  }
}

/** @returns the job's checkpoint after all of the job was sent. @throws JobPaused, JobStopped */
export async function runSendStage(options: SendOptions): Promise<Checkpoint> {
  using state = new JobState(options.folder)
  const sender = new Sender(options, state)
  try {
    await sender.sendAll()
    return sender.checkpoint
  } catch (error) {
    if (options.signal.aborted && !(error instanceof JobStopped)) throw new JobPaused('paused')
    throw error
  } finally {
    options.progress.waiting(null)
  }
}

class Sender {
  readonly checkpoint: Checkpoint
  readonly #options: SendOptions
  readonly #state: JobState
  readonly #rate: RateControl
  readonly #waits: ServiceWaits
  #savedMs: number

  constructor(options: SendOptions, state: JobState) {
    const { job, identity, clock, rate } = options
    this.#options = options
    this.#state = state
    const known = getCheckpoint(state)
    if (known !== null) checkSameJob(known, identity, job.parts)
    this.checkpoint = known ?? createCheckpoint(identity, new Date(clock.nowMs()).toISOString())
    // Stored before anything is sent, so that other commands do not change a job that may have been sent in part.
    if (known === null) putCheckpoint(state, this.checkpoint)
    this.#rate = new RateControl({ nowMs: () => clock.nowMs(), ...(rate === undefined ? {} : { rate }) })
    this.#waits = new ServiceWaits(clock, options.progress)
    this.#savedMs = clock.nowMs()
  }

  async sendAll(): Promise<void> {
    const { job, progress } = this.#options
    const { checkpoint } = this
    if (checkpoint.isSent) return
    const { blankLines = 0 } = job
    const generated = job.parts.filter(isGeneratedPart)
    if (generated.length > 0) {
      progress.begin('send', { ...sumStagedParts(generated), unit: 'groups and links' })
      await this.#sendParts(generated)
    }
    const parts = job.parts.filter(part => !isGeneratedPart(part))
    const { records, bytes } = sumStagedParts(parts)
    progress.begin('send', { records: records + blankLines, bytes })
    progress.add({ records: blankLines, isEarlier: true })
    await this.#sendParts(parts)
    checkpoint.isSent = true
    putCheckpoint(this.#state, checkpoint, [])
  }

  async #sendParts(parts: readonly StagedPart[]): Promise<void> {
    const { progress } = this.#options
    for (const part of parts) {
      const state = this.#progressOf(part)
      if (state.counts.read === part.records) {
        progress.add({ records: part.records, bytes: part.bytes, isEarlier: true })
        continue
      }
      if (!isGeneratedPart(part)) progress.day(part.id.slice(0, part.id.indexOf('/')))
      await this.#sendLines(state, part)
      progress.add({ bytes: part.bytes })
    }
  }

  #progressOf(part: StagedPart): PartProgress {
    const known = this.checkpoint.parts.find(({ id }) => id === part.id)
    if (known !== undefined) return known
    const state = createPartProgress(part.id, part.sha256)
    this.checkpoint.parts.push(state)
    return state
  }

  async #sendLines(state: PartProgress, part: StagedPart): Promise<void> {
    const { job, progress, signal, personOf = (id: string) => id, lanes = lanesDefault } = this.#options
    const { jobId, serviceJobId } = this.checkpoint.identity
    progress.add({ records: state.counts.read, isEarlier: true })
    const rounds = divideIntoSendRounds(job.readPart(part, state.counts.read), {
      marks: { source: this.#options.source, jobId: serviceJobId ?? jobId },
      lanes,
      personOf,
    })
    for await (const round of prefetchOne(rounds)) {
      throwIfPaused(signal)
      await this.#sendRound(state, round)
    }
  }

  async #sendRound(state: PartProgress, round: Round): Promise<void> {
    const { onStep, progress } = this.#options
    onStep?.('round begun')
    const tooLarge = round.tooLarge.map(outgoing => {
      const detail = `${outgoing.bytes} bytes`
      return { outgoing, reason: 'record_too_large', field: null, detail } as const
    })
    const delivered = await this.#deliver(round, tooLarge.length)
    const refused = [...tooLarge, ...delivered.refused]
    this.#checkWelcome(delivered)
    this.#commit(state, round, { ...delivered, refused })
    onStep?.('committed')
    progress.add({ records: round.toLine - round.fromLine + 1, rejects: refused.length + round.counts.rejected })
  }

  /** Sends lanes in parallel, and the batches of a lane one after another. The first failure aborts the other lanes. */
  async #deliver(round: Round, refusedBefore: number): Promise<DeliveryResult> {
    const stop = new AbortController()
    const deps: DeliveryDeps = {
      ...this.#options,
      target: {
        address: this.checkpoint.identity.target,
        projectKey: this.#options.projectKey,
        serviceJobId: this.#options.secretJobId,
      },
      rate: this.#rate,
      waits: this.#waits,
      signal: AbortSignal.any([this.#options.signal, stop.signal]),
      onRefused: this.#refusalGuard(round, refusedBefore),
    }
    const lanes = round.lanes.map(async batches => {
      const delivered: DeliveryResult[] = []
      try {
        for (const { events } of batches) {
          delivered.push(await deliverBatch(events, deps))
          this.#options.onStep?.('batch answered')
        }
      } catch (error) {
        stop.abort(error)
      }
      return delivered
    })
    const delivered = (await Promise.all(lanes)).flat()
    if (stop.signal.aborted) throw stop.signal.reason
    return delivered.reduce(sumDelivered, { sent: 0, duplicates: 0, recent: 0, refused: [] })
  }

  /**
   * Stops the job when too many events are refused, since the fault is then probably not in single events. The round is not
   * committed, so its refused events are sent again.
   */
  #refusalGuard(round: Round, refusedBefore: number): (refused: RefusedEvent) => void {
    const { sent, refused } = this.#sums()
    const total = Math.max(shareEventsMin, sent + refused + round.events)
    let count = refused + refusedBefore
    return ({ reason, detail }) => {
      if (++count <= total * this.#options.maxRejectShare) return
      throw new TooManyRefused(
        `${this.checkpoint.identity.target} refused ${count} of ${total} events, more than --max-reject-share allows; the last: ` +
          `${reason}${detail === null ? '' : ` (${detail})`}.`,
        { refused: count, events: total },
      )
    }
  }

  /** Stops the job if the service has not accepted a single event, since the events are then hardly at fault. */
  #checkWelcome({ sent, refused }: DeliveryResult): void {
    const last = refused.at(-1)
    if (last === undefined || sent + this.#sums().sent > 0 || this.#options.maxRejectShare >= 1) return
    throw new TooManyRefused(
      `${this.checkpoint.identity.target} accepted none of the first ${formatCount(refused.length, 'event')}: ${last.reason}` +
        `${last.detail === null ? '' : ` (${last.detail})`}.`,
      { refused: refused.length, events: refused.length },
    )
  }

  #commit(part: PartProgress, round: Round, { sent, duplicates, recent, refused }: DeliveryResult): void {
    const { clock, source } = this.#options
    const { checkpoint } = this
    const { counts } = part
    const refusedBefore = counts.refused
    const lost = countLinesWithoutEvents(refused)
    counts.read += round.toLine - round.fromLine + 1
    counts.records += round.counts.records - lost
    counts.rejected += round.counts.rejected + lost
    counts.skipped += round.counts.skipped
    counts.collapsed += round.counts.collapsed
    counts.sent += sent
    counts.refused += refused.length
    counts.duplicates += duplicates
    counts.recent += recent
    checkpoint.spentMs += Math.max(0, clock.nowMs() - this.#savedMs)
    this.#savedMs = clock.nowMs()
    checkpoint.retries += this.#waits.takeCount()
    this.#state.transact(() => {
      storeRefusedEvents(this.#state, part.id, refusedBefore, source, refused)
      putCheckpoint(this.#state, checkpoint, [part])
    })
  }

  #sums() {
    return sumSendCounts(this.checkpoint.parts.map(({ counts }) => counts))
  }
}

/** Reads and encodes the next round while the current one is sent. */
async function* prefetchOne(rounds: AsyncGenerator<Round>): AsyncGenerator<Round> {
  try {
    for (let next = rounds.next(); ; ) {
      const { value, done } = await next
      if (done === true) return
      next = rounds.next()
      // An error surfaces when `next` is awaited; until then it must not count as unhandled. If sending fails first, the
      // error of sending is reported, and the next run encounters the error of `next` again.
      next.catch(() => undefined)
      yield value
    }
  } finally {
    await rounds.return(undefined)
  }
}

/** Counts the lines whose events were all refused: they count as rejected. */
function countLinesWithoutEvents(refused: readonly RefusedEvent[]): number {
  const byLine = Map.groupBy(refused, ({ outgoing }) => outgoing.outcome)
  return [...byLine].filter(([{ result }, lost]) => result.kind === 'events' && lost.length === result.events.length)
    .length
}
