// Stage 1 of an import: downloads the parts of a source into `raw/`, one file each. It skips parts that are there, waits
// as the source asks, and splits parts that are too large for the source. It can be killed at any time and restarted.
// Source: docs/wire/import.md §2.1, §2.5.

import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { firstFew, formatCount } from '#core/format-count.ts'
import type { FindSpaceProblem } from '#importer/read/disk-space.ts'
import { type CallGate, createCallGate } from './call-limits.ts'
import {
  asFetchFault,
  BrokenAnswer,
  FetchStop,
  FetchWait,
  isAbortError,
  joinStops,
  WindowTooLarge,
} from './fetch-faults.ts'
import { createFetchReporter, type FetchListener, type FetchReporter } from './fetch-reporter.ts'
import type { FetchPart, FetchSource, PartOutcome, PartTools } from './fetch-source.ts'
import { createFetchSpace, type FetchSpace } from './fetch-space.ts'
import { FetchState, type FetchWarning, type StoredPart, toStateDamage } from './fetch-state.ts'
import { completePartFile, hashFile, type PartFile, toPartFile } from './part-file.ts'
import { type FetchClock, formatSpan, retryWaitMs, sleepUntil } from './waiting.ts'

export interface FetchResult {
  readonly partsDone: number
  readonly partsEmpty: number
  readonly bytesDone: number
  readonly calls: number
  readonly warnings: readonly FetchWarning[]
}

export interface FetchStageOptions extends FetchListener {
  /** The folder of the job. */
  readonly folder: string
  /** The configuration that the folder is bound to, as text without secrets. */
  readonly config: string
  readonly source: FetchSource
  readonly clock: FetchClock
  /** Locks a file against other processes. @returns the function that unlocks it; null if another process holds it. */
  readonly tryFileLock: (path: string) => (() => void) | null
  /**
   * Called before each part and while its bytes arrive; nothing is written while it returns a problem. Without it, the
   * fetch may fill the disk.
   */
  readonly findSpaceProblem?: FindSpaceProblem
  readonly signal: AbortSignal
  /** How long a part may receive next to nothing. Default: 15 minutes, which sources can take to prepare a large window. */
  readonly stallMs?: number
}

/** A window is split after this many broken responses. */
const brokenTriesMax = 3
/** A connection counts as stalled below `stallBytes` in this time: it may deliver a byte now and then for ever. */
const stallMsDefault = 15 * 60_000
const stallBytes = 64 * 1024
/** Listed parts that are stored in one transaction. */
const listedAtOnce = 500

/**
 * @throws FetchStop with a message when the user must do something, JobStopped when the state in the folder is damaged,
 * the signal's reason when it is aborted. Fetched data is kept, and the next call continues from it.
 */
export async function fetchStage(options: FetchStageOptions): Promise<FetchResult> {
  const { folder, tryFileLock } = options
  mkdirSync(join(folder, 'raw'), { recursive: true, mode: 0o700 })
  const unlock = tryFileLock(join(folder, 'fetch.lock'))
  if (unlock === null) throw new FetchStop(`Another process fetches into ${folder}. Wait for its end, or stop it.`)
  const state = new FetchState(folder)
  try {
    state.bindTo(options.config)
    state.moveFutureCallsTo(options.clock.nowMs())
    return await new FetchRun(options, state).run()
  } catch (error) {
    throw toStateDamage(folder, error)
  } finally {
    state.close()
    unlock()
  }
}

/** The tries of this run for a part that is not done yet. */
interface Attempts {
  broken: number
  seemedEmpty: boolean
  /** The earliest time of the next try. */
  dueMs: number
}

class FetchRun {
  readonly #options: FetchStageOptions
  readonly #state: FetchState
  readonly #gate: CallGate
  readonly #reporter: FetchReporter
  readonly #space: FetchSpace
  readonly #active = new Map<string, Promise<void>>()
  readonly #attempts = new Map<string, Attempts>()
  /** Aborts all parts when one fails with an unexpected error. */
  readonly #stop = new AbortController()
  readonly #signal: AbortSignal
  /** After a FetchStop: no part starts another request, but running downloads may finish. */
  readonly #noMoreCalls = new AbortController()
  readonly #callSignal: AbortSignal
  readonly #stops: FetchStop[] = []
  #failure: unknown = null
  /** Consecutive FetchWaits. */
  #consecutiveWaits = 0

  constructor(options: FetchStageOptions, state: FetchState) {
    this.#options = options
    this.#state = state
    this.#signal = AbortSignal.any([options.signal, this.#stop.signal])
    this.#callSignal = AbortSignal.any([this.#signal, this.#noMoreCalls.signal])
    this.#reporter = createFetchReporter(options, options.clock, () => state.counts())
    this.#space = createFetchSpace(options.findSpaceProblem ?? (() => null), problem => this.#reporter.notice(problem))
    this.#gate = createCallGate(options.source.limits, state, options.clock, waiting =>
      this.#reporter.setWaiting(waiting),
    )
  }

  async run(): Promise<FetchResult> {
    this.#state.markComplete(false)
    await this.#list()
    const { source } = this.#options
    for (;;) {
      this.#reporter.reportProgress()
      while (this.#active.size < source.limits.atOnce && !this.#callSignal.aborted) {
        const nowMs = this.#options.clock.nowMs()
        const isUnavailable = (id: string) => this.#active.has(id) || (this.#attempts.get(id)?.dueMs ?? 0) > nowMs
        const part = this.#state.nextWaiting(isUnavailable)
        if (part === null) break
        this.#active.set(part.id, this.#processPart(part))
      }
      if (this.#active.size > 0) await Promise.race(this.#active.values())
      else if (this.#callSignal.aborted || this.#attempts.size === 0) break
      else {
        const dueMs = Math.min(...[...this.#attempts.values()].map(attempts => attempts.dueMs))
        await sleepUntil(this.#options.clock, () => dueMs, this.#options.signal)
      }
    }
    this.#options.signal.throwIfAborted()
    if (this.#failure !== null) throw this.#failure
    if (this.#stops.length > 0) throw joinStops(this.#stops)
    this.#state.markComplete(true)
    const { done, empty, bytesDone } = this.#state.counts()
    const nothing = 'The source has no data in the whole range. Check the project, the region and the days.'
    if (done === 0 && empty > 0) this.#state.addWarning('', nothing)
    const { calls } = this.#reporter
    return { partsDone: done, partsEmpty: empty, bytesDone, calls, warnings: this.#state.warnings() }
  }

  async #list(): Promise<void> {
    for (;;)
      try {
        await this.#gate.untilPauseEnds(this.#signal)
        const { source } = this.#options
        const listed = source.dropsUnlisted ? new Set<string>() : null
        const parts: FetchPart[] = []
        const addParts = () =>
          this.#state.inTransaction(() => {
            for (const part of parts.splice(0)) this.#add(part)
          })
        for await (const part of source.listParts(this.#signal)) {
          listed?.add(part.id)
          if (parts.push(part) >= listedAtOnce) addParts()
        }
        addParts()
        if (listed !== null) this.#dropUnlisted(listed)
        return
      } catch (cause) {
        const fault = asFetchFault(cause)
        if (!(fault instanceof FetchWait) && !(fault instanceof BrokenAnswer)) throw fault
        this.#waitFor(fault instanceof FetchWait ? fault : new FetchWait(fault.message))
      }
  }

  /** Compares the stored state of a part with its file, and with what the source reports now. */
  #add(part: FetchPart): void {
    const stored = this.#state.addPart(part)
    const isSame = JSON.stringify(stored.asks) === JSON.stringify(part.asks)
    if (stored.state === 'waiting') {
      if (!isSame) this.#state.markWaiting(part.id, part)
      return
    }
    if (stored.state !== 'done') return
    if (!isSame && part.isUnseen !== true)
      throw new FetchStop(
        `${part.id} has changed at the source since it was fetched. What is fetched stays as it is; take another folder for the new bytes.`,
      )
    const bytes = statSync(this.#file(part).finalPath, { throwIfNoEntry: false })?.size
    if (bytes === undefined) this.#state.markWaiting(part.id, part)
    else if (bytes !== stored.bytes)
      throw new FetchStop(
        `raw/${part.id} has ${formatCount(bytes, 'byte')} and had ${(stored.bytes ?? 0).toLocaleString('en')} when it was fetched. Remove it to fetch it again.`,
      )
  }

  /** Keeps every part that has a file, also one whose process was killed before the state said `done`. */
  #dropUnlisted(listed: ReadonlySet<string>): void {
    const dropped: string[] = []
    for (const id of this.#state.ids()) {
      const { path, finalPath } = this.#file({ id })
      if (listed.has(id) || existsSync(finalPath)) continue
      rmSync(path, { force: true })
      this.#state.remove(id)
      dropped.push(`${id} is not in the list any more, so it is not fetched.`)
    }
    for (const line of firstFew(dropped)) this.#reporter.notice(line)
  }

  async #processPart(part: StoredPart): Promise<void> {
    const attempts = this.#attempts.get(part.id) ?? { broken: 0, seemedEmpty: false, dueMs: 0 }
    this.#attempts.set(part.id, attempts)
    try {
      const { finalPath } = this.#file(part)
      // A complete file whose process was killed before the state said `done` is adopted.
      if (existsSync(finalPath)) this.#state.markDone(part.id, { ...(await hashFile(finalPath)), lineCount: null })
      else {
        await this.#gate.untilPauseEnds(this.#callSignal)
        this.#space.begin(part.id, part.bytes === null ? null : Math.max(0, part.bytes - part.savedBytes))
        await this.#finish(part, await this.#fetch(part), attempts)
      }
      if (this.#state.findPart(part.id)?.state !== 'waiting') this.#attempts.delete(part.id)
      this.#consecutiveWaits = 0
      this.#reporter.partEnded()
    } catch (cause) {
      try {
        this.#handleFault(part, asFetchFault(cause), attempts)
      } catch (failure) {
        // A FetchStop of one part lets running downloads finish; any other error aborts them.
        if (failure instanceof FetchStop) {
          this.#stops.push(failure)
          this.#noMoreCalls.abort(failure)
        } else {
          this.#failure ??= failure
          this.#stop.abort(failure)
        }
      }
    } finally {
      this.#space.end(part.id)
      this.#active.delete(part.id)
    }
  }

  #file({ id }: Pick<FetchPart, 'id'>): PartFile {
    return toPartFile(this.#options.folder, id)
  }

  /** @throws BrokenAnswer when the download stalls. */
  async #fetch(part: StoredPart): Promise<PartOutcome> {
    const stalled = new AbortController()
    const { stallMs = stallMsDefault } = this.#options
    let bytesLately = 0
    let watch: NodeJS.Timeout | undefined
    const checkStall = () => {
      if (bytesLately < stallBytes)
        stalled.abort(new BrokenAnswer(`next to nothing has come for ${formatSpan(stallMs)}`))
      bytesLately = 0
    }
    const tools: PartTools = {
      file: this.#file(part),
      signal: AbortSignal.any([this.#signal, stalled.signal]),
      nowMs: () => this.#options.clock.nowMs(),
      takeCall: async () => {
        // Waiting for the rate limit is no stall.
        clearInterval(watch)
        await this.#gate.take(this.#callSignal)
        this.#reporter.calls++
        bytesLately = 0
        watch = setInterval(checkStall, stallMs)
      },
      willWrite: bytes => this.#space.willWrite(part.id, bytes),
      received: bytes => {
        bytesLately += bytes
        this.#reporter.addBytes(bytes)
      },
      savedBytes: part.savedBytes,
      saveBytes: bytes => this.#state.saveBytes(part.id, bytes),
      warn: line => this.#state.addWarning(part.id, line),
    }
    try {
      return await this.#options.source.fetchPart(part, tools)
    } catch (cause) {
      throw stalled.signal.aborted && !this.#signal.aborted ? stalled.signal.reason : cause
    } finally {
      clearInterval(watch)
    }
  }

  async #finish(part: StoredPart, outcome: PartOutcome, attempts: Attempts): Promise<void> {
    if (outcome.kind === 'file') {
      const hash = await completePartFile(this.#file(part))
      this.#state.markDone(part.id, { ...hash, lineCount: outcome.lineCount })
    } else if (outcome.kind === 'empty' || attempts.seemedEmpty) {
      await rm(this.#file(part).path, { force: true })
      this.#state.markEmpty(part.id)
    } else {
      attempts.seemedEmpty = true
      this.#reporter.retries++
    }
  }

  /** Decides what a fault means for its part. @throws what ends the stage. */
  #handleFault(part: StoredPart, fault: unknown, attempts: Attempts): void {
    if (this.#signal.aborted || (this.#callSignal.aborted && isAbortError(fault, this.#callSignal))) return
    if (fault instanceof FetchWait) {
      this.#waitFor(fault)
      return
    }
    const isTooLarge = fault instanceof WindowTooLarge
    if (!isTooLarge && !(fault instanceof BrokenAnswer)) throw fault
    attempts.broken++
    const halves = isTooLarge || attempts.broken >= brokenTriesMax ? this.#options.source.splitPart(part) : null
    if (halves !== null) {
      this.#reporter.notice(`${part.id}: ${fault.message}. Asking for it in ${halves.length} parts.`)
      rmSync(this.#file(part).path, { force: true })
      this.#state.split(part.id, halves)
      this.#attempts.delete(part.id)
      return
    }
    const { advice } = this.#options.source
    if (isTooLarge && fault.isRefused)
      throw new FetchStop(`${fault.message}. ${part.id} is the smallest window that there is. ${advice}`)
    if (attempts.broken % brokenTriesMax === 0)
      this.#reporter.notice(`${part.id} has failed ${attempts.broken} times: ${fault.message}. ${advice}`)
    const { clock } = this.#options
    attempts.dueMs = clock.nowMs() + retryWaitMs(attempts.broken, clock.random(), null)
    this.#reporter.reportRetry({ reason: fault.message, untilMs: attempts.dueMs })
  }

  /** Pauses all parts, since the source, the network or the disk is unavailable. */
  #waitFor({ message: reason, retryAfterMs }: FetchWait): void {
    const { clock } = this.#options
    this.#consecutiveWaits++
    const untilMs = clock.nowMs() + retryWaitMs(this.#consecutiveWaits, clock.random(), retryAfterMs)
    const trouble = { reason, untilMs }
    this.#gate.pause(trouble)
    this.#reporter.reportRetry(trouble)
  }
}
