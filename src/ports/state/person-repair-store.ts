// Requests to rebuild or split persons, and the cuts that splits leave. A front stores a request, and the worker that owns
// the import stream carries it out. Source: docs/wire/private-api.md 6.2.

import type { Change } from '#core/author.ts'
import type {
  PersonCut,
  PersonRepair,
  RebuildRequest,
  RepairReport,
  RepairRequest,
} from '#core/persons/person-repair.ts'

export interface PersonRepairStore {
  /**
   * Stores a request. From now on until it is done, unless it is only a preview, chunks that use a person of the project
   * count as changing it.
   * @returns null if `openMax` requests of the project wait, or, for a rebuild, if another rebuild does.
   */
  requestRepair(
    projectId: number,
    request: RepairRequest,
    openMax: number,
    change: Change,
  ): Promise<PersonRepair | null>
  /** A rebuild of the project. Finished ones are forgotten, except the latest. */
  findRebuild(projectId: number, id: number): Promise<PersonRepair<RebuildRequest> | null>
  /** Requests that are not done, in the order of their ids. */
  listOpenRepairs(): Promise<readonly PersonRepair[]>
  /**
   * Adds to the report of a request.
   * @param part with the project's count of erasures when the persons were loaded: after another erasure it names none.
   * @param isFirst replaces what an interrupted try has reported.
   */
  saveReport(id: number, part: RepairReport & { readonly erasures: number }, isFirst: boolean): Promise<void>
  /** Records that the request is done, and forgets the ids in it. */
  finishRepair(id: number, doneAtMs: number): Promise<void>
  /** The cuts of these distinct ids. A commit writes them (`ChunkChanges.cuts`). */
  listCuts(projectId: number, distinctIds: readonly string[]): Promise<readonly PersonCut[]>
  /**
   * Which of these distinct ids belonged to erased persons: rows that were made at a lower count of erasures of the project
   * make no person again.
   */
  listErasedPasts(
    projectId: number,
    distinctIds: readonly string[],
  ): Promise<readonly { readonly distinctId: string; readonly erasures: number }[]>
  /** Those of the uuids that a person has. */
  findTakenUuids(projectId: number, uuids: readonly string[]): Promise<readonly string[]>
  /** The distinct ids of all persons of a project, in byte order: a page after `after`. */
  listMappedIds(projectId: number, after: string | null, limit: number): Promise<readonly string[]>
}
