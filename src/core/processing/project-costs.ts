// Estimates the cost of each project's events to the worker and the stores, in bytes: the text of each row (mostly its
// person's properties), the text loaded or written for them, plus a constant per row. Measured: a small event takes as long
// as 2 KiB of a large one, and so does an override of a merge.

import type { LoadedChunk } from './chunk.ts'
import type { ProcessedChunk } from './process-chunk.ts'

export interface ProjectCost {
  bytes: number
  /** The cost of the events alone, without the persons and groups that they touch. */
  sentBytes: number
}

/** By project id. */
export type ProjectCosts = Map<number, ProjectCost>

const rowBytes = 2_048
/** A lower cost than this, about 0.2 s of a worker's time, does not noticeably delay other projects. */
const heavyBytesMin = 4 * 1024 * 1024
/**
 * Fronts limit the waiting events of a project by the bytes sent (docs/decisions/0030-one-project-has-so-much-waiting.md).
 * If the events cost at most this many times their sent bytes, this limit amounts to a few seconds of the worker's time.
 */
const usualTimes = 4

export function addChunkCosts(
  costs: ProjectCosts,
  loaded: Pick<LoadedChunk, 'textBytesOf'>,
  { rows, groupTextLengths }: Pick<ProcessedChunk, 'rows' | 'groupTextLengths'>,
): void {
  const personBytesOf = new Map<number, number>()
  // Consecutive events of one project are summed first, since events of a project mostly follow each other.
  let run = { projectId: -1, sentBytes: 0, personBytes: 0 }
  const close = () => {
    if (run.sentBytes === 0) return
    addCosts(costs, run.projectId, run.sentBytes, run.sentBytes)
    personBytesOf.set(run.projectId, (personBytesOf.get(run.projectId) ?? 0) + run.personBytes)
  }
  for (const { projectId, propertiesJson, personPropertiesJson } of rows.events) {
    if (projectId !== run.projectId) {
      close()
      run = { projectId, sentBytes: 0, personBytes: 0 }
    }
    run.sentBytes += rowBytes + propertiesJson.length
    run.personBytes += personPropertiesJson.length
  }
  close()
  for (const { projectId } of rows.overrides) addCosts(costs, projectId, rowBytes, 0)
  for (const [projectId, length] of groupTextLengths) addCosts(costs, projectId, length, 0)
  // Loaded text is mostly the persons of the rows, so the larger of the two sizes is taken, not their sum.
  for (const projectId of new Set([...personBytesOf.keys(), ...loaded.textBytesOf.keys()])) {
    const bytes = Math.max(personBytesOf.get(projectId) ?? 0, loaded.textBytesOf.get(projectId) ?? 0)
    addCosts(costs, projectId, bytes, 0)
  }
}

export interface HeaviestProject {
  readonly projectId: number
  /** The project's events cost much more than their sent bytes suggest, so its waiting events may take minutes. */
  readonly isCostly: boolean
}

/** The project that caused more than half of the cost and at least `heavyBytesMin`; null if there is no such project. */
export function findHeaviestProject(costs: ProjectCosts): HeaviestProject | null {
  let sum = 0
  for (const { bytes } of costs.values()) sum += bytes
  for (const [projectId, { bytes, sentBytes }] of costs)
    if (bytes > sum / 2 && bytes >= heavyBytesMin) return { projectId, isCostly: bytes > usualTimes * sentBytes }
  return null
}

function addCosts(costs: ProjectCosts, projectId: number, bytes: number, sentBytes: number): void {
  const cost = costs.get(projectId)
  if (cost === undefined) costs.set(projectId, { bytes, sentBytes })
  else {
    cost.bytes += bytes
    cost.sentBytes += sentBytes
  }
}
