// Collects a chunk's report: the count of every outcome (accepted = stored + dropped + rejected) and the projects' warnings;
// the store decides how many of each type it keeps. Warnings about an import become one per job and chunk, with samples by
// reason, so that they do not fill the project's list.

import type { CapturedEvent, CapturedReject, Lane } from '../events/captured-event.ts'
import { liveWindowMs } from '../events/live-window.ts'
import { addCategoryAndSeverity } from '../events/warning-types.ts'
import { type ImportNote, noteSampleCountMax } from '../imports/import-changes.ts'
import type { ImportJobStatus } from '../imports/import-job.ts'
import type { JsonObject } from '../json.ts'
import type { ChunkOutcome, IngestionWarning } from './chunk.ts'

/** A chunk warns about this many old live events or more if they are at least half of the project's live events in it. */
const oldEventCountMin = 100

interface LiveAges {
  count: number
  oldCount: number
  oldestMs: number
  receivedAtMs: number
}

interface ImportNotes {
  readonly projectId: number
  readonly importJobId: number
  timestampMs: number
  readonly reasons: Map<string, { count: number; samples: JsonObject[] }>
}

export class ChunkReport {
  /** Counts by project, then by lane, then by outcome and reason. */
  readonly #outcomes = new Map<number, Map<Lane, Map<string, ChunkOutcome>>>()
  readonly #warnings: IngestionWarning[] = []
  readonly #ages = new Map<number, LiveAges>()
  readonly #imports = new Map<string, ImportNotes>()

  /**
   * Counts one record.
   * @param lane the record's own lane, as in `pennon_events_accepted_total`, so that the two metrics can be compared.
   * @param reason '' for the outcome `stored`.
   */
  count(projectId: number, lane: Lane, outcome: ChunkOutcome['outcome'], reason: string): void {
    let ofProject = this.#outcomes.get(projectId)
    if (ofProject === undefined) {
      ofProject = new Map()
      this.#outcomes.set(projectId, ofProject)
    }
    let ofLane = ofProject.get(lane)
    if (ofLane === undefined) {
      ofLane = new Map()
      ofProject.set(lane, ofLane)
    }
    const key = reason === '' ? outcome : `${outcome}:${reason}`
    const known = ofLane.get(key)
    if (known !== undefined) (known as { count: number }).count++
    else ofLane.set(key, { projectId, lane, outcome, reason, count: 1 })
  }

  warn(subject: CapturedEvent | CapturedReject, type: string, details: JsonObject): void {
    if (subject.historicalMigration) {
      this.#note(subject, type, details)
      return
    }
    const { projectId, receivedAtMs } = subject
    this.#warnings.push({ projectId, type, details: addCategoryAndSeverity(type, details), timestampMs: receivedAtMs })
  }

  /** Counts how many live events are old: that suggests bulk data, which should be an import. */
  noteAge({ projectId, receivedAtMs, timestampMs }: CapturedEvent): void {
    let ages = this.#ages.get(projectId)
    if (ages === undefined) {
      ages = { count: 0, oldCount: 0, oldestMs: timestampMs, receivedAtMs }
      this.#ages.set(projectId, ages)
    }
    ages.count++
    ages.receivedAtMs = receivedAtMs
    if (receivedAtMs - timestampMs < liveWindowMs) return
    ages.oldCount++
    ages.oldestMs = Math.min(ages.oldestMs, timestampMs)
  }

  noteRecentImport(event: CapturedEvent): void {
    if (event.receivedAtMs - event.timestampMs < liveWindowMs) this.#note(event, 'recent', { eventUuid: event.uuid })
  }

  /** Notes for the job what happened to one of its events, whatever the event's lane. */
  noteOfJob(event: CapturedEvent, reason: string, details: JsonObject): void {
    this.#note(event, reason, details)
  }

  allOutcomes(): ChunkOutcome[] {
    return [...this.#outcomes.values()].flatMap(ofProject =>
      [...ofProject.values()].flatMap(ofLane => [...ofLane.values()]),
    )
  }

  /**
   * Notes about events of these jobs are stored with the jobs; the project's list gets a single warning per job, for the
   * first note. Source: docs/wire/import.md 3.9.
   */
  allWarnings(jobs: ReadonlyMap<number, ImportJobStatus>): IngestionWarning[] {
    const ofImports: IngestionWarning[] = []
    for (const { projectId, importJobId, timestampMs, reasons } of this.#imports.values()) {
      const job = jobs.get(importJobId)
      if (job?.hasNotes === true) continue
      const type = 'historical_migration'
      const details: JsonObject = { importJobId }
      if (job === undefined) {
        const byReason: JsonObject = {}
        for (const [reason, { count, samples }] of reasons) byReason[reason] = { count, samples }
        details.reasons = byReason
      } else details.report = `/api/projects/${projectId}/import_jobs/${importJobId}/report/`
      ofImports.push({ projectId, type, details: addCategoryAndSeverity(type, details), timestampMs })
    }
    return [...this.#warnings, ...this.#warningsOfAge(), ...ofImports]
  }

  /** The notes about events of these jobs. */
  allNotes(jobs: ReadonlyMap<number, ImportJobStatus>): ImportNote[] {
    return this.#imports
      .values()
      .flatMap(({ importJobId, reasons }) =>
        jobs.has(importJobId)
          ? Array.from(reasons, ([reason, { count, samples }]) => ({ importJobId, reason, count, samples }))
          : [],
      )
      .toArray()
  }

  /** Source: docs/wire/import.md 3.1. */
  #warningsOfAge(): IngestionWarning[] {
    const type = 'old_events_sent_live'
    return [...this.#ages].flatMap(([projectId, { count, oldCount, oldestMs, receivedAtMs }]) => {
      if (oldCount < oldEventCountMin || oldCount * 2 < count) return []
      const details = addCategoryAndSeverity(type, {
        ...{ count: oldCount, oldest: new Date(oldestMs).toISOString() },
        hint: 'Send them with "historical_migration": true, or set PENNON_REROUTE_OLDER_THAN_DAYS.',
      })
      return { projectId, type, details, timestampMs: receivedAtMs }
    })
  }

  #note(subject: CapturedEvent | CapturedReject, reason: string, details: JsonObject): void {
    const { projectId, importJobId, receivedAtMs } = subject
    const key = `${projectId}:${importJobId}`
    let notes = this.#imports.get(key)
    if (notes === undefined) {
      notes = { projectId, importJobId, timestampMs: receivedAtMs, reasons: new Map() }
      this.#imports.set(key, notes)
    }
    notes.timestampMs = Math.max(notes.timestampMs, receivedAtMs)
    const known = notes.reasons.get(reason)
    if (known === undefined) notes.reasons.set(reason, { count: 1, samples: [details] })
    else {
      known.count += 1
      if (known.samples.length < noteSampleCountMax) known.samples.push(details)
    }
  }
}
