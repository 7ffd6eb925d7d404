// How live events and other imports use persons and groups, read from the event store when an import job is undone.

import type { JsonValue } from '../json.ts'

/** All visible events of one kind, aggregated. */
export interface OtherUse {
  /** 0 for live events and for imports without a job. */
  readonly importJobId: number
  readonly distinctId: string
  /** The id that `$identify`, `$create_alias` or `$merge_dangerously` links the distinct id with; null for other events. */
  readonly otherId: string | null
  /** Whether one of them came after the job was published. */
  readonly isLater: boolean
  /** Whether one that came later has `$set`, `$set_once` or `$unset`. */
  readonly writes: boolean
}

/**
 * A value that live events sent after the job was published. The job may have kept it from having an effect: `$set_once`
 * where the job had written before, `$set` where a merge of the job had brought the same value (or any value, for a key that
 * is not worth a write), `$unset` where the job had removed the property.
 */
export interface LaterWrite {
  readonly distinctId: string
  readonly op: 'set' | 'set_once' | 'unset'
  readonly key: string
  /** Null for `$unset`. */
  readonly value: JsonValue
  /** When the first of these events (the last, for `$unset`) was stored, epoch ms. `timestampMs` and `uuid` are that event's. */
  readonly storedAtMs: number
  readonly timestampMs: number
  readonly uuid: string
}

/** A group described by visible events of other imports or live events. */
export interface OtherGroupUse {
  /** As in `OtherUse`. */
  readonly importJobId: number
  readonly typeName: string
  readonly key: string
}

/**
 * What a later import wrote to a property in the end: its latest `$set` and `$unset`, its earliest `$set_once`. These decide
 * the value, whatever else the import wrote. `first` is the import's earliest event, with the key '', even if it writes
 * nothing: it decides when the person or group was created.
 */
export interface ImportedWrite {
  readonly importJobId: number
  readonly op: 'set' | 'set_once' | 'unset' | 'first'
  readonly key: string
  /** Null for `$unset` and `first`. */
  readonly value: JsonValue
  readonly timestampMs: number
  readonly uuid: string
}

/** What an import wrote to one property of a person. */
export interface ImportedKey extends ImportedWrite {
  readonly distinctId: string
}

/** What an import wrote to one property of a group, by `$group_set` or `$group_unset`. */
export interface ImportedGroupKey extends ImportedWrite {
  readonly typeName: string
  readonly groupKey: string
}
