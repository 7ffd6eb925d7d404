// Stage 1 of an import: downloads the parts of a source into `raw/`, one file each. It skips parts that are already
// downloaded, waits as the source asks, and splits parts that are too large for the source. It can be killed at any time
// and restarted. Source: docs/wire/import.md §2.1, §2.5.

import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { formatCount, truncateList } from '#core/format-count.ts'
import { computeFileSha256 } from '#importer/job/sha256.ts'
import type { FindSpaceProblem } from '#importer/read/disk-space.ts'
import { createCallRateLimiter } from './call-limits.ts'
import {
  BrokenAnswer,
  convertToFetchFault,
  FetchStop,
  FetchWait,
  mergeFailures,
  WindowTooLarge,
} from './fetch-faults.ts'
import { createFetchReporter, type FetchListener } from './fetch-reporter.ts'
import type { FetchPart, FetchSource, PartTools } from './fetch-source.ts'
import { createFetchSpaceGuard } from './fetch-space.ts'
import { FetchState, type FetchWarning, fetchLockFile, type StoredPart, toStateDamageError } from './fetch-state.ts'
import { completePartFile, type PartFile, toPartFile } from './part-file.ts'
import { computeRetryWaitMs, type FetchClock, formatWaitSpan, sleepUntil } from './waiting.ts'

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
/** A connection that delivers less than `stallBytes` in this time counts as stalled, even if bytes trickle in. */
const stallMsDefault = 15 * 60_000
const stallBytes = 64 * 1024
/** Listed parts that are stored in one transaction. */
const listedAtOnce = 500

/**
 * @throws FetchStop with a message when the user must do something, JobStopped when the state in the folder is damaged,
 * the signal's reason when it is aborted. Fetched data is kept, and the next call continues from it.
 */
export async function runFetchStage(options: FetchStageOptions): Promise<FetchResult> {
  const { folder } = options
  mkdirSync(join(folder, 'raw'), { recursive: true, mode: 0o700 })
  const unlock = tryLock(options)
  if (unlock === null) throw new FetchStop(`Another process fetches into ${folder}. Wait for its end, or stop it.`)
  try {
    using state = new FetchState(folder)
    state.bindTo(options.config)
    state.moveFutureCallsTo(options.clock.nowMs())
    return await runFetch(options, state)
  } catch (error) {
    throw toStateDamageError(folder, error)
  } finally {
    unlock()
  }
}

function tryLock({ folder, tryFileLock }: FetchStageOptions): ReturnType<typeof tryFileLock> {
  try {
    return tryFileLock(join(folder, fetchLockFile))
  } catch (error) {
    throw toStateDamageError(folder, error, fetchLockFile)
  }
}

/** The tries of this run for a part that is not done yet. */
interface Attempts {
  broken: number
  /** The earliest time of the next try. */
  dueMs: number
}

/** Fetches all parts into a folder whose `state` is locked. @throws like `runFetchStage`. */
async function runFetch(options: FetchStageOptions, state: FetchState): Promise<FetchResult> {
  const { folder, source, clock, signal, findSpaceProblem = () => null, stallMs = stallMsDefault } = options
  const active = new Map<string, Promise<void>>()
  const attemptsById = new Map<string, Attempts>()
  /** After a failure no part starts another request, but running downloads may finish. */
  const noMoreCalls = new AbortController()
  const callSignal = AbortSignal.any([signal, noMoreCalls.signal])
  const reporter = createFetchReporter(options, clock, () => state.counts())
  const space = createFetchSpaceGuard(findSpaceProblem, reporter.notice)
  const gate = createCallRateLimiter(source.limits, state, clock, reporter.setWaiting)
  const failures: Error[] = []
  let consecutiveWaits = 0

  state.markComplete(false)
  await listParts()
  for (;;) {
    reporter.reportProgress()
    while (active.size < source.limits.atOnce && !callSignal.aborted) {
      const nowMs = clock.nowMs()
      const isUnavailable = (id: string) => active.has(id) || (attemptsById.get(id)?.dueMs ?? 0) > nowMs
      const part = state.nextWaiting(isUnavailable)
      if (part === null) break
      active.set(part.id, processPart(part))
    }
    if (active.size > 0) await Promise.race(active.values())
    else if (callSignal.aborted || attemptsById.size === 0) break
    else {
      const dueMs = Math.min(...[...attemptsById.values()].map(attempts => attempts.dueMs))
      await sleepUntil(clock, () => dueMs, signal)
    }
  }
  signal.throwIfAborted()
  if (failures.length > 0) throw mergeFailures(failures)
  state.markComplete(true)
  const { done, empty, bytesDone } = state.counts()
  const nothing = 'The source has no data in the whole range. Check the project, the region and the days.'
  if (done === 0 && empty > 0) state.addWarning('', nothing)
  const { calls } = reporter
  return { partsDone: done, partsEmpty: empty, bytesDone, calls, warnings: state.warnings() }

  async function listParts(): Promise<void> {
    for (;;)
      try {
        await gate.untilPauseEnds(signal)
        const listed = source.dropsUnlisted ? new Set<string>() : null
        const parts: FetchPart[] = []
        const addParts = () =>
          state.inTransaction(() => {
            for (const part of parts.splice(0)) addPart(part)
          })
        for await (const part of source.listParts(signal)) {
          listed?.add(part.id)
          if (parts.push(part) >= listedAtOnce) addParts()
        }
        addParts()
        if (listed !== null) dropUnlistedParts(listed)
        return
      } catch (cause) {
        const fault = convertToFetchFault(cause)
        if (!(fault instanceof FetchWait)) throw fault
        pauseFetching(fault)
      }
  }

  /** Compares the stored state of a part with its file, and with what the source reports now. */
  function addPart(part: FetchPart): void {
    const stored = state.addPart(part)
    const isSame = JSON.stringify(stored.asks) === JSON.stringify(part.asks)
    if (stored.state === 'waiting') {
      if (!isSame) state.markWaiting(part.id, part)
      return
    }
    if (stored.state !== 'done') return
    if (!isSame && part.isUnseen !== true)
      throw new FetchStop(
        `${part.id} has changed at the source since it was fetched. What is fetched stays as it is; take another folder for the new bytes.`,
      )
    const bytes = statSync(toFile(part).finalPath, { throwIfNoEntry: false })?.size
    if (bytes === undefined) state.markWaiting(part.id, part)
    else if (bytes !== stored.bytes)
      throw new FetchStop(
        `raw/${part.id} has ${formatCount(bytes, 'byte')} and had ${(stored.bytes ?? 0).toLocaleString('en')} when it was fetched. Remove it to fetch it again.`,
      )
  }

  /** Drops unlisted parts, except those with a complete file: one may exist before the state says `done`, after a kill. */
  function dropUnlistedParts(listed: ReadonlySet<string>): void {
    const dropped: string[] = []
    for (const id of state.ids()) {
      const { path, finalPath } = toFile({ id })
      if (listed.has(id) || existsSync(finalPath)) continue
      rmSync(path, { force: true })
      state.remove(id)
      dropped.push(`${id} is not in the list any more, so it is not fetched.`)
    }
    for (const line of truncateList(dropped)) reporter.notice(line)
  }

  async function processPart(part: StoredPart): Promise<void> {
    const attempts = attemptsById.get(part.id) ?? { broken: 0, dueMs: 0 }
    attemptsById.set(part.id, attempts)
    try {
      const { path, finalPath } = toFile(part)
      // A complete file whose process was killed before the state said `done` is adopted.
      if (existsSync(finalPath) || (await fetchPart(part))) {
        const sha256 = await computeFileSha256(finalPath)
        state.markDone(part.id, { sha256, bytes: statSync(finalPath).size })
      } else {
        await rm(path, { force: true })
        state.markEmpty(part.id)
      }
      attemptsById.delete(part.id)
      consecutiveWaits = 0
      reporter.partEnded()
    } catch (cause) {
      try {
        handleFault(part, convertToFetchFault(cause), attempts)
      } catch (failure) {
        failures.push(failure as Error)
        noMoreCalls.abort(failure)
      }
    } finally {
      space.end(part.id)
      active.delete(part.id)
    }
  }

  function toFile({ id }: Pick<FetchPart, 'id'>): PartFile {
    return toPartFile(folder, id)
  }

  /**
   * @returns whether the part is in its file now; if not, the source has no data for it. @throws BrokenAnswer when the
   * download stalls.
   */
  async function fetchPart(part: StoredPart): Promise<boolean> {
    await gate.untilPauseEnds(callSignal)
    space.begin(part.id, part.bytes === null ? null : Math.max(0, part.bytes - part.savedBytes))
    const stalled = new AbortController()
    let bytesLately = 0
    let watch: NodeJS.Timeout | undefined
    const abortIfStalled = () => {
      if (bytesLately < stallBytes)
        stalled.abort(new BrokenAnswer(`next to nothing has come for ${formatWaitSpan(stallMs)}`))
      bytesLately = 0
    }
    const tools: PartTools = {
      file: toFile(part),
      signal: AbortSignal.any([signal, stalled.signal]),
      takeCall: async () => {
        // Waiting for the rate limit does not count as a stall.
        clearInterval(watch)
        await gate.take(callSignal)
        reporter.calls++
        bytesLately = 0
        watch = setInterval(abortIfStalled, stallMs)
      },
      willWrite: bytes => space.willWrite(part.id, bytes),
      received: bytes => {
        bytesLately += bytes
        reporter.addBytes(bytes)
      },
      savedBytes: part.savedBytes,
      saveBytes: bytes => state.saveBytes(part.id, bytes),
      warn: line => state.addWarning(part.id, line),
    }
    try {
      const hasData = await source.fetchPart(part, tools)
      if (hasData) await completePartFile(tools.file)
      return hasData
    } catch (cause) {
      throw stalled.signal.aborted && !signal.aborted ? stalled.signal.reason : cause
    } finally {
      clearInterval(watch)
    }
  }

  /** Decides what a fault means for its part. @throws the fault if it ends the stage. */
  function handleFault(part: StoredPart, fault: unknown, attempts: Attempts): void {
    const isAbort = fault === callSignal.reason || (fault as Error).name === 'AbortError'
    if (signal.aborted || (callSignal.aborted && isAbort)) return
    if (!(fault instanceof FetchWait)) throw fault
    if (!(fault instanceof BrokenAnswer)) {
      pauseFetching(fault)
      return
    }
    const isTooLarge = fault instanceof WindowTooLarge
    attempts.broken++
    const halves = isTooLarge || attempts.broken >= brokenTriesMax ? source.splitPart(part) : null
    if (halves !== null) {
      reporter.notice(`${part.id}: ${fault.message}. Asking for it in ${halves.length} parts.`)
      rmSync(toFile(part).path, { force: true })
      state.split(part.id, halves)
      attemptsById.delete(part.id)
      return
    }
    const { advice } = source
    if (isTooLarge && fault.isRefused)
      throw new FetchStop(`${fault.message}. ${part.id} is the smallest window that there is. ${advice}`)
    if (attempts.broken % brokenTriesMax === 0)
      reporter.notice(`${part.id} has failed ${attempts.broken} times: ${fault.message}. ${advice}`)
    attempts.dueMs = clock.nowMs() + computeRetryWaitMs(attempts.broken, clock.random(), null)
    reporter.reportRetry({ reason: fault.message, untilMs: attempts.dueMs })
  }

  /** Pauses all parts, since the source, the network or the disk is unavailable. */
  function pauseFetching({ message: reason, retryAfterMs }: FetchWait): void {
    consecutiveWaits++
    const untilMs = clock.nowMs() + computeRetryWaitMs(consecutiveWaits, clock.random(), retryAfterMs)
    const trouble = { reason, untilMs }
    gate.pause(trouble)
    reporter.reportRetry(trouble)
  }
}
