// Notifies readers when a project's definitions change. There is one hub per front, fed by the definition cache. A notice
// says only that something changed and at which revision, so at most one notice waits for a slow reader: changes that
// arrive while the reader still takes the last notice are merged. The reader decides how a notice looks and where it is
// sent.

import { err, ok, type Result } from '#core/result.ts'
import type { Timer, Timers } from '#ports/clock.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { ServedChanges } from './definition-cache.ts'

export interface ChangeReader {
  /** Sends a notice. @param taken called once no part of the notice is buffered in this process any more. */
  changed(revision: number, taken: () => void): void
  heartbeat(taken: () => void): void
  /** Ends the stream; the client may connect again. */
  end(): void
  /** Ends the stream of a reader that takes nothing, and discards what is buffered for it. */
  drop(): void
}

export interface ChangeHubOptions extends Pick<Timers, 'startTimer'> {
  readonly readersMax: number
  readonly readersPerProjectMax: number
  readonly heartbeatMs: number
  readonly metrics: Metrics
  /** Milliseconds from any start that never go back. */
  readonly monotonicNowMs: () => number
}

export interface Subscription {
  /** Whether definitions may have changed since the client last read them; if so, the client must be notified at once. */
  readonly isBehind: boolean
  leave(): void
}

export type Refusal = 'closed' | 'full' | 'project_full'

export type ChangeHub = ReturnType<typeof createChangeHub>

export interface ReaderProject {
  readonly id: number
  readonly apiToken: string
}

interface Entry {
  readonly projectId: number
  readonly apiToken: string
  readonly reader: ChangeReader
  /** Whether the reader has yet to take what was last written to it. */
  isBusy: boolean
  /** Heartbeats since the reader became busy. */
  beatsMissed: number
  /** The revision of the notice that the reader must still get; null when there is none. */
  revisionDue: number | null
  isBeatDue: boolean
  isGone: boolean
}

/** Readers notified in one turn of the event loop: a few milliseconds. This also spreads the requests that follow. */
const readersPerTurn = 256
/**
 * A client reads its flags and then connects, so it would miss a change in between. A client that first connects within
 * this time after a change is therefore notified of that change.
 */
const recentMs = 60_000
/** A reader may become busy just before a heartbeat; a reader that takes nothing for the whole next interval is stuck. */
const beatsMissedMax = 2

export function createChangeHub(options: ChangeHubOptions) {
  const { metrics, monotonicNowMs } = options
  const readersOf = new Map<number, Set<Entry>>()
  const changedAtMs = new Map<number, number>()
  /** Changes from before this process started count as made at its start. */
  const startedAtMs = monotonicNowMs()
  const due = new Set<Entry>()
  let readerCount = 0
  let isNotifying = false
  let isClosed = false
  let timer: Timer | null = null

  return {
    /**
     * @param project the id, and the key by which the project is found now.
     * @param knows the definitions that the client saw last: those served now, others, or none on its first connection.
     */
    subscribe(
      project: ReaderProject,
      reader: ChangeReader,
      knows: 'current' | 'other' | 'nothing',
    ): Result<Subscription, Refusal> {
      if (isClosed) return err('closed')
      if (readerCount >= options.readersMax) return err('full')
      if (!hasCapacity(project.id)) return err('project_full')
      const entry: Entry = {
        projectId: project.id,
        apiToken: project.apiToken,
        reader,
        isBusy: false,
        beatsMissed: 0,
        revisionDue: null,
        isBeatDue: false,
        isGone: false,
      }
      add(entry)
      const isBehind = knows === 'other' || (knows === 'nothing' && hasRecentChange(project.id))
      return ok({ isBehind, leave: () => remove(entry) })
    },
    /** Whether the hub would accept another reader of the project. */
    hasCapacity: (projectId: number) => !isClosed && readerCount < options.readersMax && hasCapacity(projectId),
    /**
     * Notifies readers of changed projects, and ends those whose project or key was removed. Returns before all are
     * notified.
     */
    publish(changes: ServedChanges) {
      const nowMs = monotonicNowMs()
      for (const projectId of changes.deletedProjectIds) {
        changedAtMs.delete(projectId)
        for (const entry of [...(readersOf.get(projectId) ?? [])]) end(entry)
      }
      for (const { id, apiToken, revision } of changes.projects) {
        changedAtMs.set(id, nowMs)
        for (const entry of [...(readersOf.get(id) ?? [])]) {
          if (entry.apiToken !== apiToken) end(entry)
          else {
            entry.revisionDue = revision
            due.add(entry)
          }
        }
      }
      notifySome()
    },
    /** Ends every stream and accepts no more readers. */
    close() {
      isClosed = true
      for (const readers of [...readersOf.values()]) for (const entry of [...readers]) end(entry)
    },
  }

  function hasCapacity(projectId: number): boolean {
    return (readersOf.get(projectId)?.size ?? 0) < options.readersPerProjectMax
  }

  function hasRecentChange(projectId: number): boolean {
    return monotonicNowMs() - (changedAtMs.get(projectId) ?? startedAtMs) < recentMs
  }

  function add(entry: Entry): void {
    const readers = readersOf.get(entry.projectId) ?? new Set()
    readersOf.set(entry.projectId, readers.add(entry))
    readerCount++
    metrics.changeStreams.inc()
    timer ??= options.startTimer(sendHeartbeats, options.heartbeatMs)
  }

  function remove(entry: Entry): void {
    if (entry.isGone) return
    entry.isGone = true
    due.delete(entry)
    const readers = readersOf.get(entry.projectId)!
    readers.delete(entry)
    if (readers.size === 0) readersOf.delete(entry.projectId)
    readerCount--
    metrics.changeStreams.dec()
    if (readerCount > 0) return
    timer?.cancel()
    timer = null
  }

  function end(entry: Entry): void {
    remove(entry)
    if (entry.isBusy) entry.reader.drop()
    else entry.reader.end()
  }

  function sendHeartbeats(): void {
    for (const readers of [...readersOf.values()]) {
      for (const entry of [...readers]) {
        if (!entry.isBusy) {
          entry.isBeatDue = true
          due.add(entry)
        } else if (++entry.beatsMissed >= beatsMissedMax) {
          remove(entry)
          metrics.changeStreamsDropped.inc()
          entry.reader.drop()
        }
      }
    }
    notifySome()
  }

  function notifySome(): void {
    if (isNotifying) return
    let left = readersPerTurn
    for (const entry of due) {
      if (left-- === 0) break
      due.delete(entry)
      notify(entry)
    }
    if (due.size === 0) return
    isNotifying = true
    setImmediate(() => {
      isNotifying = false
      notifySome()
    })
  }

  function notify(entry: Entry): void {
    if (entry.isBusy) return // notified once it has taken the last notice
    const { revisionDue, isBeatDue } = entry
    if (revisionDue === null && !isBeatDue) return
    entry.revisionDue = null
    entry.isBeatDue = false
    entry.isBusy = true
    const onNoticeTaken = () => {
      entry.isBusy = false
      entry.beatsMissed = 0
      if (entry.revisionDue === null || entry.isGone) return
      due.add(entry)
      notifySome()
    }
    if (revisionDue !== null) entry.reader.changed(revisionDue, onNoticeTaken)
    else entry.reader.heartbeat(onNoticeTaken)
  }
}
