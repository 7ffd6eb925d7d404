// What anything but an import job has the person of a distinct id for, as the event store tells it.

import type { JsonValue } from '../json.ts'

/** All visible events of one kind together. */
export interface OtherUse {
  /** 0 for live events and for imports without a job. */
  readonly importJobId: number
  readonly distinctId: string
  /** What `$identify`, `$create_alias` and `$merge_dangerously` link the distinct id with; null for other events. */
  readonly otherId: string | null
  /** Whether one came after the job was published. */
  readonly isLater: boolean
  /** Whether a later one has properties in `$set`, `$set_once` or `$unset`. */
  readonly writes: boolean
}

/**
 * A value that live events sent after the job was published: a `$set_once` had no effect where the job had written before it,
 * a `$set` none where a merge of the job had brought the same value, or any value of a key that is not worth a write. An
 * `$unset` had none where the job had removed the property.
 */
export interface LaterWrite {
  readonly distinctId: string
  readonly op: 'set' | 'set_once' | 'unset'
  readonly key: string
  /** Null of `$unset`. */
  readonly value: JsonValue
  /** When the first of them was stored, epoch ms, or the last of `$unset`; the next two are of this one. */
  readonly storedAtMs: number
  readonly timestampMs: number
  readonly uuid: string
}

/** A group that visible events of anything but an import job describe. */
export interface OtherGroupUse {
  /** As in `OtherUse`. */
  readonly importJobId: number
  readonly typeName: string
  readonly key: string
}

/**
 * What one of the imports that came later wrote to a property at last: the latest `$set` and `$unset`, the earliest
 * `$set_once`. These decide which value it has, whatever else the import wrote to it. `first` is the earliest of its events,
 * with the key '', whether it writes anything or not: it decides when the person or group was created.
 */
export interface ImportedWrite {
  readonly importJobId: number
  readonly op: 'set' | 'set_once' | 'unset' | 'first'
  readonly key: string
  /** Null of `$unset` and `first`. */
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
