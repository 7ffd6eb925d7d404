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
 * a `$set` none where a merge of the job had brought the same value, or any value of a key that is not worth a write.
 */
export interface LaterWrite {
  readonly distinctId: string
  readonly op: 'set' | 'set_once'
  readonly key: string
  readonly value: JsonValue
  /** When the first of them was stored, epoch ms; the next two are of this one. */
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

/** A property that imports which came later have for a person in `$set` or `$set_once`. */
export interface ImportedKey {
  readonly distinctId: string
  readonly key: string
}

/** The same of a group in `$group_set`. */
export interface ImportedGroupKey {
  readonly typeName: string
  readonly groupKey: string
  readonly key: string
}
