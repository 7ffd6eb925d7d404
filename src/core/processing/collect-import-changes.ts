// Computes a chunk's changes to the import jobs of its events.

import type { StoredEvent } from '../events/stored-event.ts'
import {
  type GeneratedEvent,
  type ImportChanges,
  type NamedGroupType,
  noImportChanges,
} from '../imports/import-changes.ts'
import { type ImportJobStatus, toStagingProjectId } from '../imports/import-job.ts'
import { utcDay } from '../usage.ts'
import type { ChunkReport } from './chunk-report.ts'
import type { ProjectState } from './chunk-state.ts'

export interface ProcessedJobs {
  readonly projects: ReadonlyMap<number, ProjectState>
  readonly jobs: ReadonlyMap<number, ImportJobStatus>
  readonly report: ChunkReport
  readonly newGenerated: readonly GeneratedEvent[]
}

/** The additions of the chunk's events to their pending jobs; empty for a chunk without such events. */
export function collectImportChanges(
  { projects, jobs, report, newGenerated }: ProcessedJobs,
  pendingRows: readonly StoredEvent[],
): { imports?: ImportChanges } {
  if (jobs.size === 0) return {}
  const links: ImportChanges['links'][number][] = []
  const namedGroupTypes: NamedGroupType[] = []
  const touched = [...jobs.values()].map(({ id, state, step }) => ({ id, state, step }))
  for (const { id: importJobId } of jobs.values()) {
    const staging = projects.get(toStagingProjectId(importJobId))
    if (staging === undefined) continue
    for (const link of staging.links) links.push({ importJobId, ...link })
    // Prevents a type from being deleted while a pending job names it: otherwise the job's rows would belong to the next
    // type with that index.
    for (const [types, isAdded] of [
      [staging.addedGroupTypes, true],
      [staging.namedGroupTypes(), false],
    ] as const)
      for (const { name, index } of types) namedGroupTypes.push({ importJobId, typeIndex: index, name, isAdded })
  }
  return {
    imports: {
      ...noImportChanges,
      jobs: touched,
      links,
      namedGroupTypes,
      notes: report.allNotes(jobs),
      storedRows: countRows(pendingRows),
      generated: newGenerated,
    },
  }
}

/** Counts, by job, how many of these rows will remain: the event store keeps one row per identity. */
function countRows(rows: readonly StoredEvent[]): ImportChanges['storedRows'] {
  const identities = Map.groupBy(rows, ({ importJobId }) => importJobId)
  return Array.from(identities, ([importJobId, ofJob]) => ({
    importJobId,
    count: new Set(
      ofJob.map(({ timestampMs, event, distinctId, uuid }) =>
        JSON.stringify([utcDay(timestampMs), event, distinctId, uuid]),
      ),
    ).size,
  }))
}
