// Repairs of persons from their events: a rebuild derives persons anew from their events, a split separates the distinct
// ids of one person. A request is stored in the state and carried out by the worker. Source: docs/wire/private-api.md 6.2.

import type { Author } from '../author.ts'
import { personUuid } from './person-uuid.ts'

/** How many persons and distinct ids one request may name. */
export const repairedIdsMax = 1_000
/** How many repair requests of a project may wait. */
export const openRepairsMax = 100

/**
 * A distinct id that a split has separated. When the person's history is folded, links with such an id that are older than
 * the split are not made.
 */
export interface SplitDistinctId {
  readonly projectId: number
  readonly distinctId: string
  /** The person that has only this id after the split. */
  readonly personUuid: string
  /** The person's creation time, epoch ms, unless an event determines it. */
  readonly createdAtMs: number
  /** When the id was split off: events stored from then on may link it again. */
  readonly atMs: number
}

export type RepairRequest =
  | { readonly kind: 'split'; readonly uuid: string; readonly mainId: string }
  | {
      readonly kind: 'rebuild'
      /** If false, the repair only reports what it would change. */
      readonly applies: boolean
      /** The persons to rebuild; null for all persons. */
      readonly persons: { readonly uuids: readonly string[]; readonly distinctIds: readonly string[] } | null
    }

export type RebuildRequest = Extract<RepairRequest, { readonly kind: 'rebuild' }>

/** What a rebuild changes, or would change. */
export interface RepairReport {
  /** Distinct ids whose events were read. */
  readonly idCount: number
  readonly changedCount: number
  readonly createdCount: number
  readonly removedCount: number
  /** Distinct ids that get another person, or lose theirs. */
  readonly movedIdCount: number
  /** Distinct ids that stay as they are, because their events are too many or cannot be read. */
  readonly unreadableIdCount: number
  /** The first persons that change. */
  readonly samples: readonly RepairSample[]
}

export interface RepairSample {
  readonly uuid: string
  readonly change: 'changed' | 'created' | 'removed'
  /** Names of the changed properties, and of the changed fields as the private API names them. */
  readonly keys: readonly string[]
  /** Distinct ids that move to the person; for a removed person, the ids that it loses. */
  readonly distinctIds: readonly string[]
}

export const reportedPersonsMax = 100
export const reportedKeysMax = 20

export const emptyReport: RepairReport = {
  ...{ idCount: 0, changedCount: 0, createdCount: 0, removedCount: 0, movedIdCount: 0, unreadableIdCount: 0 },
  samples: [],
}

export function sumRepairReports(a: RepairReport, b: RepairReport): RepairReport {
  return {
    idCount: a.idCount + b.idCount,
    changedCount: a.changedCount + b.changedCount,
    createdCount: a.createdCount + b.createdCount,
    removedCount: a.removedCount + b.removedCount,
    movedIdCount: a.movedIdCount + b.movedIdCount,
    unreadableIdCount: a.unreadableIdCount + b.unreadableIdCount,
    samples: [...a.samples, ...b.samples].slice(0, reportedPersonsMax),
  }
}

export interface PersonRepair<Request = RepairRequest> {
  readonly id: number
  readonly projectId: number
  readonly request: Request
  readonly requestedBy: Author | null
  readonly requestedAtMs: number
  /** Null until the first persons are checked, and always for a split. */
  readonly report: RepairReport | null
  readonly doneAtMs: number | null
}

/**
 * The uuid of the person that a distinct id gets by a split: as if the id had created the person, unless another person has
 * that uuid. @param attempt how many uuids were already taken; appended after a NUL, which no distinct id contains.
 */
export function deriveSplitUuid(projectId: number, distinctId: string, attempt: number): string {
  return personUuid(projectId, attempt === 0 ? distinctId : `${distinctId}\0${attempt}`)
}
