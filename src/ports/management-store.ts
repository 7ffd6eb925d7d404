// What the private API reads and writes. Every write is one transaction, answers what is stored afterwards, and bumps
// the instance's revision when it concerns evaluation; `revision` in an answer is the one to wait for before replying.

import type { PersonIdOverride } from '#core/events/stored-event.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import type { Group, GroupType } from '#core/groups/group.ts'
import type { JsonObject } from '#core/json.ts'
import type { DistinctIdMapping } from '#core/persons/person.ts'
import type { EventStoreMark } from '#core/processing/held-rows.ts'
import type { IngestionSettings, Project, Quotas } from '#core/project.ts'
import type { Result } from '#core/result.ts'
import type { EventUsage, LiveUsage } from '#core/usage.ts'
import type { ChunkOutcome } from './chunk-store.ts'
import type { CohortStore, LinkedWrite } from './cohort-store.ts'
import type { EarlyAccessStore } from './early-access-store.ts'
import type { UsageDay } from './event-store.ts'
import type { ExperimentStore } from './experiment-store.ts'
import type { FlagOwnerStore } from './flag-owner-store.ts'
import type { FlagPatch, NewFlag } from './flag-write.ts'
import type { PersonView } from './person-view.ts'
import type { SecretKeyStore } from './secret-key-store.ts'
import type { SurveyStore } from './survey-store.ts'
import type { Page, Written } from './written.ts'

export type { Page, Written }

/** Tokens are unique among the projects that are not deleted; a deleted project keeps its id for ever. */
export interface ProjectStore {
  createProject(input: NewProject): Promise<Result<Written<Project>, 'token_taken'>>
  /** `clientSettings`, `ingestion` and `quotas` are merged into those that are there, name by name; anything else is replaced. */
  updateProject(
    projectId: number,
    patch: Partial<Omit<NewProject, 'uuid' | 'createdAtMs' | 'quotas' | 'ingestion'>> & {
      readonly quotas?: Partial<Quotas>
      readonly ingestion?: Partial<IngestionSettings>
    },
  ): Promise<Result<Written<Project>, 'not_found' | 'token_taken'>>
  deleteProject(projectId: number): Promise<Result<Written<null>, 'not_found'>>
  findProject(projectId: number): Promise<Project | null>
  /**
   * In the order of their ids, those with one of `ids` where that is given. A page of large projects is shorter than its
   * limit: what it leaves out begins where it ends.
   */
  listProjects(page: { limit: number; offset: number; ids?: readonly number[] }): Promise<Page<Project>>
}

export interface NewProject {
  readonly uuid: string
  readonly name: string
  readonly apiToken: string
  readonly timezone: string
  readonly anonymizeIps: boolean
  readonly geoipEnabled: boolean
  readonly propertyMatchingVersion: 1 | 2
  readonly quotas: Quotas
  readonly clientSettings: JsonObject
  readonly ingestion: IngestionSettings
  readonly createdAtMs: number
}

export interface PersonalKey {
  readonly id: string
  readonly label: string
  /** `*`, or `feature_flag:read`-like scopes. */
  readonly scopes: readonly string[]
  /** Project ids the key is limited to; empty = all. */
  readonly scopedProjectIds: readonly number[]
  readonly createdAtMs: number
  readonly lastUsedAtMs: number | null
}

export interface PersonalKeyStore {
  /** `secretHash` is SHA-256 of the key, hex; the key itself is never stored. */
  createPersonalKey(input: PersonalKey & { secretHash: string }): Promise<PersonalKey>
  findPersonalKeyByHash(secretHash: string): Promise<PersonalKey | null>
  findPersonalKey(id: string): Promise<PersonalKey | null>
  /** Oldest first; a page of large keys is shorter than its limit, as one of projects. */
  listPersonalKeys(page: { limit: number; offset: number }): Promise<Page<PersonalKey>>
  deletePersonalKey(id: string): Promise<boolean>
  /** Sets `lastUsedAtMs` where it is earlier; ids of deleted keys are passed over. */
  savePersonalKeyUses(uses: readonly { id: string; usedAtMs: number }[]): Promise<void>
}

/** Which log a state follows, and what is known of the one before. */
export interface FollowedLog {
  readonly id: string
  /** Host and folder, for people. */
  readonly place: string
  /** The log that was followed before; null when there was none. */
  readonly formerId: string | null
  /** Where the lanes stood when this one was taken up, as JSON by lane: while they stand there, nothing of it was processed. */
  readonly begunAt: string
}

/** What a state says of itself when it was away and came back; it may be a copy of another moment. */
export interface ReturnedState {
  readonly followedLogId: string
  /** The worker's positions, by lane. */
  readonly positions: ReadonlyMap<string, number>
}

export type { FlagPatch, NewFlag } from './flag-write.ts'

export interface FlagVersion {
  readonly flagId: number
  readonly version: number
  /** The whole flag as it stood. */
  readonly flag: Flag
  readonly changedBy: string | null
  readonly createdAtMs: number
}

export interface FlagStore {
  createFlag(input: NewFlag, options?: LinkedWrite): Promise<Result<Written<Flag>, 'key_taken' | 'definitions_changed'>>
  /**
   * Applies the patch and adds 1 to the version, keeping a snapshot. With `expectedVersion` that is not the current one
   * nothing is written and the current flag comes back. A deleted flag is `not_found` unless the patch says
   * `deleted: false`, which brings it back while its key is free.
   */
  updateFlag(
    projectId: number,
    flagId: number,
    patch: FlagPatch,
    options: LinkedWrite & { expectedVersion?: number; changedBy: string | null },
  ): Promise<Result<Written<Flag>, 'not_found' | 'key_taken' | 'definitions_changed' | { readonly staleVersion: Flag }>>
  /** `:id` of the API: an id in digits (deleted ones included) or, failing that, a key of a flag that is not deleted. */
  findFlag(projectId: number, idOrKey: string): Promise<Flag | null>
  /** By key alone, though it may look like an id; not deleted. */
  findFlagByKey(projectId: number, key: string): Promise<Flag | null>
  /** Those that there are, deleted ones too, in any order. */
  listFlagsById(projectId: number, flagIds: readonly number[]): Promise<readonly Flag[]>
  /**
   * Without deleted ones, newest first; `search` looks in keys and names, whatever their case. A page of large flags, as of
   * versions of them, is shorter than its limit: what it leaves out begins where it ends.
   */
  listFlags(
    projectId: number,
    query: { limit: number; offset: number; search?: string; active?: boolean },
  ): Promise<Page<Flag>>
  /** Newest first. */
  listFlagVersions(
    projectId: number,
    flagId: number,
    page: { limit: number; offset: number },
  ): Promise<Page<FlagVersion>>
  findFlagVersion(projectId: number, flagId: number, version: number): Promise<FlagVersion | null>
  /** Versions of all flags of a project, deleted ones included; the latest write first. */
  listProjectFlagVersions(projectId: number, page: { limit: number; offset: number }): Promise<Page<FlagVersion>>
}

export interface PersonQueryStore {
  findPersonByUuid(projectId: number, uuid: string): Promise<PersonView | null>
  /**
   * Filters combine; `search` looks in distinct ids and in the text of the properties. Newest first. One more than `limit`
   * rows are looked for, to know whether there is a next page. A page of large persons is shorter than its limit: the next
   * one begins where it ends.
   */
  listPersons(
    projectId: number,
    query: { distinctId?: string; uuid?: string; search?: string; limit: number; offset: number },
  ): Promise<{ results: readonly PersonView[]; hasMore: boolean }>
  /** The ids of a person beyond `after`, in the order of their bytes; null when there is no such person. */
  listDistinctIds(
    projectId: number,
    uuid: string,
    page: { after?: string; limit: number },
  ): Promise<{ count: number; results: readonly DistinctIdMapping[]; hasMore: boolean } | null>
}

/** A group as it is shown: `propertiesJson` is the text that is stored. */
export type GroupView = Omit<Group, 'marks' | 'properties'> & { readonly propertiesJson: string }

/** So many flags in the way of a deletion are enough to know of. */
export const namedFlagsMax = 20

export interface GroupQueryStore {
  /** Those that are being deleted too. */
  listGroupTypes(projectId: number): Promise<readonly GroupType[]>
  /**
   * From now on nothing is stored under the type and no definition has it. Its groups are still there, and its index is
   * taken, until `deleteGroupsOfType` says that all are gone. Repeatable. While flags use the type nothing is done: then the
   * answer has their keys, of inactive ones too, but no more than `namedFlagsMax`.
   */
  startDeletingGroupType(
    projectId: number,
    typeIndex: number,
  ): Promise<Result<Written<null>, 'not_found' | { readonly usedBy: readonly string[] }>>
  /**
   * Deletes at most `countMax` groups of a type whose deletion was started, in one transaction; with the last of them the
   * type is gone and its index free. @returns whether there is more to delete.
   */
  deleteGroupsOfType(projectId: number, typeIndex: number, countMax: number): Promise<boolean>
  /** Newest first; a page of large groups is shorter than its limit, as one of persons. */
  listGroups(
    projectId: number,
    query: { typeIndex: number; search?: string; limit: number; offset: number },
  ): Promise<{ results: readonly GroupView[]; hasMore: boolean }>
  findStoredGroup(projectId: number, typeIndex: number, key: string): Promise<GroupView | null>
}

export interface UsageStore {
  /** Adds flag requests to the UTC day's counter; flushed by a front every 10 s, so a crash may lose that much. */
  addFlagRequests(counts: readonly { projectId: number; day: string; count: number }[]): Promise<void>
  /**
   * Sets the days' event counts as computed from the event store. The first counts that are set for a day before
   * `frozenBeforeDay` are its last: so a day is completed after a pause of the schedule, and stays as it was charged.
   * @param lostDays days some of whose events the event store has lost: each count that is larger stays.
   */
  saveEventCounts(
    projectId: number,
    days: readonly UsageDay[],
    frozenBeforeDay: string,
    lostDays?: readonly string[],
  ): Promise<void>
  listUsage(projectId: number, fromDay: string, toDay: string): Promise<readonly UsageRow[]>
  /** What was counted by all fronts on these days, the first and the last included; projects without any may be missing. */
  sumFlagRequests(
    projectIds: readonly number[],
    fromDay: string,
    toDay: string,
  ): Promise<readonly { projectId: number; count: number }[]>
  /** What was charged on these days, the first and the last included; projects without any usage may be missing. */
  sumUsage(
    projectIds: readonly number[],
    fromDay: string,
    toDay: string,
  ): Promise<readonly (LiveUsage & { readonly projectId: number })[]>
  /** Project ids that exist; the usage schedule walks them. */
  listProjectIds(): Promise<readonly number[]>
}

export interface UsageRow extends EventUsage {
  readonly day: string
  readonly flagRequests: number
}

export interface WarningStore {
  /** By type, the latest first. Counts are exact but by whole UTC days; samples are at most 20 of a day. */
  listWarnings(
    projectId: number,
    query: { sinceMs: number; sampleCountMax: number },
  ): Promise<readonly WarningSummary[]>
  /** Retention: drops counts and samples of UTC days before `day`. */
  deleteWarningsBefore(day: string): Promise<void>
}

export interface WarningSummary {
  readonly type: string
  readonly count: number
  readonly lastSeenMs: number
  readonly warnings: readonly { readonly timestampMs: number; readonly details: JsonObject }[]
}

/** Events under known keys that a front did not take and of which the log has no record. */
export interface RefusedStore {
  /** All of them or none. Each that has a warning raises it as often as it counts, with the one sample. */
  addRefused(counts: readonly RefusedCount[]): Promise<void>
  /** What was refused on the UTC days from `fromDay` on, by reason. */
  listRefused(projectId: number, fromDay: string): Promise<readonly RefusedSummary[]>
  /** Retention: drops the counts of UTC days before `day`. */
  deleteRefusedBefore(day: string): Promise<void>
}

export interface RefusedCount {
  readonly projectId: number
  readonly day: string
  /** A code of docs/wire/errors.md; of at most one row of a call. */
  readonly reason: string
  readonly count: number
  readonly lastSeenMs: number
  /** Details of an ingestion warning of the type `reason`; null when none is raised. */
  readonly warning: JsonObject | null
}

export interface RefusedSummary {
  readonly reason: string
  readonly count: number
  readonly lastSeenMs: number
}

export interface EventStoreMarkStore {
  /** Null before a worker has looked at the event store. */
  findEventStoreMark(): Promise<EventStoreMark | null>
  /** Replaces the one before. */
  saveEventStoreMark(mark: EventStoreMark): Promise<void>
  /**
   * Which person each distinct id leads to, in the order of project and id, from behind `after` on. A version above 0 is an
   * override of what the event store has; those without are among them, so that a page is read without a search.
   */
  listOverrides(
    after: { readonly projectId: number; readonly distinctId: string } | null,
    limit: number,
  ): Promise<readonly PersonIdOverride[]>
}

/**
 * All of the private API's state in one place; the state-writer thread serves it.
 * @throws from every method, PortError: `timeout` when another process kept the lock, `unavailable`, `full`, `corrupt`,
 *   or `conflict` for an id or a hash that exists already.
 */
export interface ManagementStore
  extends ProjectStore,
    PersonalKeyStore,
    SecretKeyStore,
    FlagStore,
    CohortStore,
    EarlyAccessStore,
    SurveyStore,
    ExperimentStore,
    FlagOwnerStore,
    PersonQueryStore,
    GroupQueryStore,
    UsageStore,
    RefusedStore,
    WarningStore,
    EventStoreMarkStore {
  /** Where the worker stands in a log lane; offset 0 when it never committed. */
  findLogPosition(lane: string): Promise<{ offset: number; committedAtMs: number | null }>
  /** The log that the positions belong to; null when none was bound yet. */
  findFollowedLog(): Promise<FollowedLog | null>
  /**
   * From now on the positions belong to this log, from where they are. No worker owns a lane any more: one that still reads
   * the former log commits nothing behind this.
   */
  followLog(log: FollowedLog): Promise<void>
  /** What became of the records of a project that were processed so far (I8). */
  listOutcomes(projectId: number): Promise<readonly ChunkOutcome[]>
  close(): Promise<void>
}
