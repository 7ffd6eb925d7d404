// The mirror: current persons and groups beside the events, for queries that filter by a person's or group's current
// properties. The state is authoritative, and the worker writes what was committed there
// (`services/worker/mirror-subjects.ts`, docs/decisions/0051).

import type { HeldRange } from '#core/processing/held-rows.ts'
import type {
  MirroredGroup,
  MirroredGroupKey,
  MirroredPerson,
  MirroredPersonKey,
} from '#core/processing/mirror-subjects.ts'

/** @throws PortError from every method, like `EventWriter`. Repeat the call. */
export interface SubjectMirror {
  /**
   * Resolves when the rows are durable and every query returns them. Of two rows of a subject the higher version wins,
   * and of equal versions the later one. A deleted subject is no longer returned; it may reappear with a later row.
   */
  writeSubjects(rows: MirrorRows, version: number): Promise<void>
  /**
   * The current contents of the mirror, without reading properties. @param withVersion reads the version of every row.
   */
  findHeldMirror(withVersion: boolean): Promise<HeldMirror>
  /**
   * Empties the mirror, durably. From now on, queries that need it are refused until `completeMirror`.
   * @param version not below that of an earlier call.
   */
  beginMirror(fillId: string, version: number): Promise<void>
  /** Lets queries use the mirror. @param version above that of `beginMirror`. */
  completeMirror(fillId: string, version: number): Promise<void>
}

export interface MirrorRows {
  readonly persons?: readonly MirroredPerson[]
  readonly deletedPersons?: readonly MirroredPersonKey[]
  readonly groups?: readonly MirroredGroup[]
  readonly deletedGroups?: readonly MirroredGroupKey[]
}

export interface HeldMirror {
  /** The most recently begun fill; null before the first. */
  readonly fillId: string | null
  readonly isComplete: boolean
  /** The highest version of all rows and fills, 0 when there are none; null when it was not requested. */
  readonly version: number | null
  /** Null when the store's user lacks the permission. */
  readonly ranges: readonly HeldRange[] | null
}
