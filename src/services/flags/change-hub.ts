// Tells readers that a project's definitions changed. There is one hub per front, fed by the definition cache. It passes on
// only that something changed and at which revision, so a slow reader is owed one notice at most: changes that come while it
// takes the last one become one. What a notice looks like and where it goes is up to the reader.

import { err, ok, type Result } from '#core/result.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { ServedChanges } from './definition-cache.ts'

export interface ChangeReader {
  /** Passes on a notice. @param taken called once nothing of it waits in this process any more. */
  changed(revision: number, taken: () => void): void
  heartbeat(taken: () => void): void
  /** Nothing more will come; the client may ask again. */
  end(): void
  /** It takes nothing: what waits for it is given up. */
  drop(): void
}

export interface ChangeHubOptions {
  readonly readersMax: number
  readonly readersPerProjectMax: number
  readonly heartbeatMs: number
  readonly metrics: Metrics
  /** Any clock that only goes forward, ms. */
  readonly monotonicNowMs: () => number
  /** Repeats until it is cancelled. */
  readonly startTimer: (callback: () => void, everyMs: number) => { cancel(): void }
}

export interface Subscription {
  /** Whether definitions changed since what the client has seen, as far as can be known: to be told at once. */
  readonly isBehind: boolean
  leave(): void
}

export type Refusal = 'closed' | 'full' | 'project_full'

export interface ChangeHub {
  /**
   * @param project the id, and the key that finds it now.
   * @param knows what the client saw last: what is served, something else, or nothing, when it comes for the first time.
   */
  subscribe(
    project: ReaderProject,
    reader: ChangeReader,
    knows: 'current' | 'other' | 'nothing',
  ): Result<Subscription, Refusal>
  /** Whether another reader of the project would be taken. */
  hasRoom(projectId: number): boolean
  /** Tells readers of changed projects, ends those whose project or key is gone. Returns before all are told. */
  publish(changes: ServedChanges): void
  /** Ends every stream and takes no more. */
  close(): void
}

export interface ReaderProject {
  readonly id: number
  readonly apiToken: string
}

interface Entry {
  readonly projectId: number
  readonly apiToken: string
  readonly reader: ChangeReader
  /** Something was written that it has not taken yet. */
  isBusy: boolean
  /** Heartbeats since it is busy. */
  beatsMissed: number
  /** The revision it has yet to be told of; null when there is none. */
  revisionDue: number | null
  isBeatDue: boolean
  isGone: boolean
}

/** Readers told in one turn of the event loop: a few milliseconds. Spreads what they ask next, too. */
const readersPerTurn = 256
/**
 * A client asks for its flags and then connects. No one would tell it of a change in between, so a client that connects for
 * the first time so soon after a change is told of that change.
 */
const recentMs = 60_000
/** One interval may begin just before it ends; a reader that took nothing throughout the next one is stuck. */
const beatsMissedMax = 2

export function createChangeHub(options: ChangeHubOptions): ChangeHub {
  const { metrics, monotonicNowMs } = options
  const readersOf = new Map<number, Set<Entry>>()
  const changedAtMs = new Map<number, number>()
  /** What changed before this process knew is as good as changed now. */
  const startedAtMs = monotonicNowMs()
  const due = new Set<Entry>()
  let readerCount = 0
  let isTelling = false
  let isClosed = false
  let timer: { cancel(): void } | null = null

  return {
    subscribe(project, reader, knows) {
      if (isClosed) return err('closed')
      if (readerCount >= options.readersMax) return err('full')
      if (!hasRoom(project.id)) return err('project_full')
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
      const isBehind = knows === 'other' || (knows === 'nothing' && changedRecently(project.id))
      return ok({ isBehind, leave: () => remove(entry) })
    },
    hasRoom: projectId => !isClosed && readerCount < options.readersMax && hasRoom(projectId),
    publish(changes) {
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
      tellSome()
    },
    close() {
      isClosed = true
      for (const readers of [...readersOf.values()]) for (const entry of [...readers]) end(entry)
    },
  }

  function hasRoom(projectId: number): boolean {
    return (readersOf.get(projectId)?.size ?? 0) < options.readersPerProjectMax
  }

  function changedRecently(projectId: number): boolean {
    return monotonicNowMs() - (changedAtMs.get(projectId) ?? startedAtMs) < recentMs
  }

  function add(entry: Entry): void {
    const readers = readersOf.get(entry.projectId) ?? new Set()
    readersOf.set(entry.projectId, readers.add(entry))
    readerCount++
    metrics.changeStreams.inc()
    timer ??= options.startTimer(beat, options.heartbeatMs)
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

  function beat(): void {
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
    tellSome()
  }

  function tellSome(): void {
    if (isTelling) return
    let left = readersPerTurn
    for (const entry of due) {
      if (left-- === 0) break
      due.delete(entry)
      tell(entry)
    }
    if (due.size === 0) return
    isTelling = true
    setImmediate(() => {
      isTelling = false
      tellSome()
    })
  }

  function tell(entry: Entry): void {
    if (entry.isBusy) return // told when it has taken what it was told
    const { revisionDue, isBeatDue } = entry
    if (revisionDue === null && !isBeatDue) return
    entry.revisionDue = null
    entry.isBeatDue = false
    entry.isBusy = true
    const taken = () => {
      entry.isBusy = false
      entry.beatsMissed = 0
      if (entry.revisionDue === null || entry.isGone) return
      due.add(entry)
      tellSome()
    }
    if (revisionDue !== null) entry.reader.changed(revisionDue, taken)
    else entry.reader.heartbeat(taken)
  }
}
