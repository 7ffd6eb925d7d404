// The inputs of undoing a published job: the loaded project state, the uses by other events, and the undo records.
// Source: docs/wire/import.md §2.11.

import type { Group } from '#core/groups/group.ts'
import type { UndoRecord, UndoRecordOf } from '#core/imports/import-changes.ts'
import type { ImportedGroupKey, ImportedKey, LaterWrite, OtherGroupUse, OtherUse } from '#core/imports/other-use.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import { type Brought, JoinedPersons } from './joined-persons.ts'
import type { Homes } from './later-unsets.ts'
import { idsOfLiveLinks, isLink } from './linked-ids.ts'
import type { JobBatch } from './publish-staging.ts'
import { revertSubject, type Sides } from './revert.ts'
import { findShadowed, type LaterWriter, type Shadowed, withCreators } from './shadowed.ts'
import { groupSubject } from './undo-records.ts'

export interface UndoBatch extends JobBatch {
  /** The undo records that this job and later ones have of the subjects in `loaded`. */
  readonly undoRecords: readonly UndoRecord[]
  /** How other events use the distinct ids in `loaded`. */
  readonly uses: readonly OtherUse[]
  /** The writes of live events with the distinct ids in `loaded`. */
  readonly laterWrites: readonly LaterWrite[]
  /** The writes of later imports to persons in `loaded`. */
  readonly importedKeys: readonly ImportedKey[]
  /** The writes of later imports to groups in `loaded`. */
  readonly importedGroupKeys: readonly ImportedGroupKey[]
  /** The jobs of `laterJobIds` that made any of these writes, in that order. */
  readonly laterWriters: readonly LaterWriter[]
  /** The writes of all other imports to persons in `loaded` into which a person with an undo record was merged since. */
  readonly keysOfSurvivors: readonly ImportedKey[]
  readonly writersOfSurvivors: readonly LaterWriter[]
  /** Other imports and live events that describe the groups in `loaded`. */
  readonly groupUses: readonly OtherGroupUse[]
  /** The jobs of the project that were published after this one, in the order of publishing. */
  readonly laterJobIds: readonly number[]
}

/** The loaded project state and the undo records, indexed. */
export class UndoContext {
  readonly projectId: number
  readonly importJobId: number
  /** As changed by the undo so far. */
  readonly persons: Map<string, Person>
  readonly mappings: ReadonlyMap<string, DistinctIdMapping>
  readonly groups: ReadonlyMap<string, Group>
  readonly laterJobIds: readonly number[]
  readonly joinedPersons = new JoinedPersons(uuid => this.#sidesIn(uuid))
  readonly #laterWrites: ReadonlyMap<string, readonly { readonly write: LaterWrite; readonly place: number }[]>
  readonly #laterWriters: readonly LaterWriter[]
  readonly #importedKeys: ReadonlyMap<string, readonly ImportedKey[]>
  readonly #keysOfSurvivors: ReadonlyMap<string, readonly ImportedKey[]>
  readonly #writersOfSurvivors: readonly LaterWriter[]
  readonly #importedGroupKeys: ReadonlyMap<string, readonly ImportedGroupKey[]>
  readonly #groupUsers: ReadonlyMap<string, readonly number[]>
  readonly #uses: ReadonlyMap<string, readonly OtherUse[]>
  readonly #linksTo: ReadonlyMap<string | null, readonly OtherUse[]>
  readonly #liveLinked: ReadonlySet<string>
  readonly #idsOf: ReadonlyMap<string, readonly DistinctIdMapping[]>
  readonly #assignmentsGivenTo: ReadonlyMap<string, readonly GivenAssignments[]>
  readonly #undoRecordsIn: ReadonlyMap<string | undefined, readonly UndoRecordOf<'person'>[]>
  readonly #undoRecords: Map<string, UndoRecord>
  readonly #rewritten = new Map<string, UndoRecord>()

  constructor({
    projectId,
    importJobId,
    loaded,
    undoRecords,
    uses: allUses,
    laterWrites,
    importedKeys,
    groupUses,
    importedGroupKeys,
    laterJobIds,
    laterWriters,
    keysOfSurvivors,
    writersOfSurvivors,
  }: UndoBatch) {
    const isOurs = (row: { readonly projectId: number }) => row.projectId === projectId
    this.projectId = projectId
    this.importJobId = importJobId
    this.laterJobIds = laterJobIds
    this.#laterWriters = laterWriters
    this.#writersOfSurvivors = writersOfSurvivors
    this.persons = new Map(loaded.persons.filter(isOurs).map(row => [row.uuid, row]))
    const mappings = [...loaded.personMappings, ...loaded.mappings].filter(isOurs)
    this.mappings = new Map(mappings.map(row => [row.distinctId, row]))
    this.#idsOf = Map.groupBy(this.mappings.values(), row => row.personUuid)
    this.groups = new Map(loaded.groups.filter(isOurs).map(row => [groupSubject(row), row]))
    const uses = allUses.map(use => (isLink(use) ? use : { ...use, otherId: null }))
    this.#uses = Map.groupBy(uses, ({ distinctId }) => distinctId)
    // Writes of the same millisecond keep their order.
    const inOrder = laterWrites.toSorted((a, b) => a.storedAtMs - b.storedAtMs)
    const placed = inOrder.map((write, place) => ({ write, place }))
    this.#laterWrites = Map.groupBy(placed, ({ write }) => write.distinctId)
    this.#linksTo = Map.groupBy(uses, ({ otherId }) => otherId)
    this.#liveLinked = idsOfLiveLinks(uses)
    const indexOf = new Map(loaded.groupTypes.filter(isOurs).map(({ name, index }) => [name, index]))
    const subjectOf = (typeName: string, key: string) => groupSubject({ typeIndex: indexOf.get(typeName) ?? -1, key })
    this.#importedKeys = Map.groupBy(importedKeys, ({ distinctId }) => distinctId)
    this.#keysOfSurvivors = Map.groupBy(keysOfSurvivors, ({ distinctId }) => distinctId)
    this.#importedGroupKeys = Map.groupBy(importedGroupKeys, each => subjectOf(each.typeName, each.groupKey))
    const usersOf = Map.groupBy(groupUses, ({ typeName, key }) => subjectOf(typeName, key))
    this.#groupUsers = new Map(Array.from(usersOf, ([name, list]) => [name, list.map(use => use.importJobId)]))
    this.#undoRecords = new Map(undoRecords.map(undoRecord => [undoRecordKey(undoRecord), undoRecord]))
    const ofPersons = undoRecords.flatMap(undoRecord =>
      undoRecord.importJobId === importJobId && undoRecord.kind === 'person' ? undoRecord : [],
    )
    this.#undoRecordsIn = Map.groupBy(ofPersons, ({ subject, after }) =>
      this.persons.has(subject) ? subject : this.mappings.get(after?.anyId ?? '')?.personUuid,
    )
    const given = undoRecords.flatMap(undoRecord =>
      undoRecord.importJobId === importJobId && undoRecord.kind === 'assignments' ? (undoRecord.after ?? []) : [],
    )
    this.#assignmentsGivenTo = Map.groupBy(given, ({ personUuid }) => personUuid)
  }

  idsOf(uuid: string): readonly DistinctIdMapping[] {
    return this.#idsOf.get(uuid) ?? []
  }

  usesOf(distinctId: string): readonly OtherUse[] {
    return this.#uses.get(distinctId) ?? []
  }

  /** The later writes with any of these ids, in the order in which they were stored. */
  laterWritesOf(distinctIds: readonly string[]): readonly LaterWrite[] {
    return distinctIds
      .flatMap(id => this.#laterWrites.get(id) ?? [])
      .toSorted((a, b) => a.place - b.place)
      .map(({ write }) => write)
  }

  /** The writes of later imports to a person with these ids. @param isSurvivor if true, those of all other imports. */
  shadowedIn(distinctIds: readonly string[], isSurvivor = false): Shadowed[] {
    const keys = isSurvivor ? this.#keysOfSurvivors : this.#importedKeys
    const writes = distinctIds.flatMap(id => keys.get(id) ?? [])
    return findShadowed(withCreators(writes), isSurvivor ? this.#writersOfSurvivors : this.#laterWriters)
  }

  /** The persons that later jobs merged into this one, as they would have been without the undone job. */
  broughtTo(uuid: string): Brought[] {
    const moves = this.idsOf(uuid).flatMap(({ distinctId }) => this.laterUndoRecords('mapping', distinctId))
    const uuids = new Set(moves.flatMap(({ before }) => before?.personUuid ?? []))
    uuids.delete(uuid)
    return [...uuids].flatMap(brought => {
      const merged = this.laterUndoRecords('person', brought).find(({ after }) => after === null)
      if (merged?.before == null) return []
      const { importJobId, before } = merged
      const own = this.undoRecord('person', brought)
      return { importJobId, person: own?.after ? revertSubject(before, own.before, own.after).subject : before }
    })
  }

  /** The writes of all other imports to persons that live events merged into this person. */
  shadowedOfJoined(uuid: string): Shadowed[] {
    if (!this.wasMergedInto(uuid)) return []
    const joined = this.idsOf(uuid).flatMap(({ distinctId, version }) => (version > 0 ? distinctId : []))
    return this.shadowedIn(joined, true).map(by => ({ ...by, isJoined: true }))
  }

  shadowedInGroup(subject: string): Shadowed[] {
    return findShadowed(this.#importedGroupKeys.get(subject) ?? [], this.#laterWriters)
  }

  /** Finds the first of `distinctIds` to which the job wrote; undefined if it wrote to none of them. */
  idWrittenBy(importJobId: number, distinctIds: readonly string[]): string | undefined {
    return distinctIds.find(id => this.#importedKeys.get(id)?.some(write => write.importJobId === importJobId))
  }

  /**
   * Later links between a distinct id of this person and another id, requested by an event of the other id, that do not
   * exist.
   */
  refusedLinksTo(distinctId: string, uuid: string): readonly OtherUse[] {
    const asked = this.#linksTo.get(distinctId) ?? []
    return asked.filter(use => use.isLater && this.#isElsewhere(use.distinctId, uuid))
  }

  /**
   * Later links between a distinct id of this person and another id, requested by an event of this id, that do not
   * exist.
   */
  refusedLinksFrom(distinctId: string, uuid: string): readonly OtherUse[] {
    return this.usesOf(distinctId).filter(
      ({ isLater, otherId }) => isLater && otherId !== null && this.#isElsewhere(otherId, uuid),
    )
  }

  #isElsewhere(distinctId: string, uuid: string): boolean {
    return this.mappings.get(distinctId)?.personUuid !== uuid
  }

  /** Whether a later live event has moved ids of another person to this one. */
  wasMergedInto(uuid: string): boolean {
    return this.idsOf(uuid).some(({ distinctId, version }) => version > 0 && this.#liveLinked.has(distinctId))
  }

  /**
   * The persons to which the ids of this person have belonged since the job: an id that was never moved had no other person.
   * @param before the uuid and one id of the job's person, if it was merged into this one.
   * @param areLinksKnown whether the links of the ids are known. If not, any moved id may have come from another person.
   */
  homesOf(uuid: string, before?: { readonly uuid: string; readonly anyId: string }, areLinksKnown = true): Homes {
    let mayBeJoined: boolean | null = before !== undefined || !areLinksKnown ? true : null
    const homeOf = (distinctId: string) => {
      if (distinctId === before?.anyId) return before.uuid
      if (this.mappings.get(distinctId)?.version === 0) return uuid
      mayBeJoined ??= this.wasMergedInto(uuid) || this.#wasBroughtTo(uuid)
      return mayBeJoined ? null : uuid
    }
    return { own: before?.uuid ?? uuid, of: homeOf }
  }

  #wasBroughtTo(uuid: string): boolean {
    return this.idsOf(uuid).some(({ distinctId }) => this.bringerOf(distinctId, uuid) !== null)
  }

  /** The other users of a group: ids of jobs, 0 for live data. */
  usersOfGroup(subject: string): readonly number[] {
    return this.#groupUsers.get(subject) ?? []
  }

  /** The earliest published of these users if all of them are later jobs; null if there are other users, or none. */
  findSuccessor(userIds: Iterable<number>): number | null {
    const users = new Set(userIds)
    const areLater = users.size > 0 && [...users].every(id => this.laterJobIds.includes(id))
    return areLater ? this.laterJobIds.find(id => users.has(id))! : null
  }

  /** The job's own undo record of a subject. */
  undoRecord<Kind extends UndoRecord['kind']>(kind: Kind, subject: string): UndoRecordOf<Kind> | undefined {
    return this.undoRecordOfJob(this.importJobId, kind, subject)
  }

  /** The assignments that a person got by the merges of the job. */
  assignmentsGivenTo(uuid: string): readonly GivenAssignments[] {
    return this.#assignmentsGivenTo.get(uuid) ?? []
  }

  /** The profiles before and after the job of all persons that are this one now, its own first. */
  #sidesIn(uuid: string): Sides[] {
    const undoRecords = this.#undoRecordsIn.get(uuid) ?? []
    const inOrder = undoRecords.toSorted((a, b) => Number(b.subject === uuid) - Number(a.subject === uuid))
    return inOrder.flatMap(({ before, after }) => (after === null ? [] : { before, after }))
  }

  undoRecordOfJob<Kind extends UndoRecord['kind']>(
    importJobId: number,
    kind: Kind,
    subject: string,
  ): UndoRecordOf<Kind> | undefined {
    return this.#undoRecords.get(undoRecordKey({ importJobId, kind, subject })) as UndoRecordOf<Kind> | undefined
  }

  /** The undo records of later jobs for a subject. */
  laterUndoRecords<Kind extends UndoRecord['kind']>(kind: Kind, subject: string): UndoRecordOf<Kind>[] {
    return this.laterJobIds.flatMap(id => this.undoRecordOfJob(id, kind, subject) ?? [])
  }

  /** The later job that moved an id to this person; null if the person already had it, or other events moved it. */
  bringerOf(distinctId: string, uuid: string): number | null {
    if (this.undoRecord('mapping', distinctId)?.after?.personUuid === uuid) return null
    const moves = this.laterUndoRecords('mapping', distinctId)
    const move = moves.find(({ before, after }) => after?.personUuid === uuid && before?.personUuid !== uuid)
    return move?.importJobId ?? null
  }

  rewrite(undoRecord: UndoRecord): void {
    this.#undoRecords.set(undoRecordKey(undoRecord), undoRecord)
    this.#rewritten.set(undoRecordKey(undoRecord), undoRecord)
  }

  /** Makes a later job undo what this one cannot: undoing that job then restores the state before this one. */
  handOver(undoRecord: UndoRecord, toJobId: number): void {
    const theirs = this.undoRecordOfJob(toJobId, undoRecord.kind, undoRecord.subject)
    this.rewrite({ ...(theirs ?? undoRecord), importJobId: toJobId, before: undoRecord.before } as UndoRecord)
  }

  rewrittenUndoRecords(): UndoRecord[] {
    return [...this.#rewritten.values()]
  }
}

type GivenAssignments = NonNullable<UndoRecordOf<'assignments'>['after']>

function undoRecordKey({ importJobId, kind, subject }: Pick<UndoRecord, 'importJobId' | 'kind' | 'subject'>): string {
  return `${importJobId} ${kind} ${subject}`
}
