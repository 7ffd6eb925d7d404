// The state's side of the mirror of persons and groups in the event store (`SubjectMirror`): what the
// mirror still lacks, how far it is filled, and the persons and groups themselves. Every write of a person or a group
// notes it as changed in the same transaction (docs/decisions/0051).

import type {
  MirroredGroup,
  MirroredGroupKey,
  MirroredPerson,
  MirroredPersonKey,
  MirrorSubjects,
} from '#core/processing/mirror-subjects.ts'
import type { RowRange } from '#core/processing/row-ranges.ts'

/** What the state knows about the mirror. */
export interface MirrorProgress {
  /** The version of the latest rows that were written completely. Every step writes with a higher version. */
  readonly version: number
  /** The fill that produced the mirror; null before the first fill. */
  readonly fill: MirrorFill | null
}

export interface MirrorFill {
  readonly id: string
  /** `begun`: the tables may still contain rows. Afterwards persons are filled, then groups. */
  readonly phase: 'begun' | 'persons' | 'groups' | 'complete'
  /** The last person or group of this phase that has been filled; null for none. */
  readonly after: MirrorPlace | null
  /** The version of the latest rows that were written: the event store has rows of at least this version. */
  readonly rowsVersion: number
  /** Which rows of the mirror the event store had at the last comparison; null when that is not known. */
  readonly held: readonly RowRange[] | null
}

/** The place of a person is its row's id. */
export type MirrorPlace = number | MirroredGroupKey

/** @throws PortError from every method, like `ManagementStore`. */
export interface SubjectMirrorSource {
  findMirrorProgress(): Promise<MirrorProgress>
  /**
   * Replaces the progress if it still has the version `fromVersion`.
   * @returns false, with nothing changed, if another worker has written the progress since.
   */
  saveMirrorProgress(progress: MirrorProgress, fromVersion: number): Promise<boolean>
  /**
   * Changed subjects that are not settled, the oldest first: as many as one step takes. Each subject is listed once.
   * @returns the ids with which to settle the changes; none when no change is waiting.
   */
  findChangedSubjects(): Promise<MirrorSubjects & { readonly changeIds: readonly number[] }>
  /** Deletes the records of changes that the mirror already has. A repeat changes nothing. */
  settleChanges(changeIds: readonly number[]): Promise<void>
  /**
   * The current persons; persons that do not exist are left out. Large persons make the answer shorter.
   * @returns how many of `keys`, from the first on, were looked up; at least one.
   */
  readMirroredPersons(
    keys: readonly MirroredPersonKey[],
  ): Promise<{ readonly lookedUp: number; readonly persons: readonly MirroredPerson[] }>
  /** Like `readMirroredPersons`. */
  readMirroredGroups(
    keys: readonly MirroredGroupKey[],
  ): Promise<{ readonly lookedUp: number; readonly groups: readonly MirroredGroup[] }>
  /** A page of all persons of all projects. @returns `next`: null when there are no more. */
  listMirroredPersons(
    after: number | null,
  ): Promise<{ readonly persons: readonly MirroredPerson[]; readonly next: number | null }>
  /** A page of all groups of all projects. @returns `next`: null when there are no more. */
  listMirroredGroups(
    after: MirroredGroupKey | null,
  ): Promise<{ readonly groups: readonly MirroredGroup[]; readonly next: MirroredGroupKey | null }>
}
