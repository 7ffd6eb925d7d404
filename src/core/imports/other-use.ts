// What anything but an import job has the person of a distinct id for, as the event store tells it.

/** All visible events of one kind together. */
export interface OtherUse {
  /** 0 for live events and for imports without a job. */
  readonly importJobId: number
  readonly distinctId: string
  /** What `$identify`, `$create_alias` and `$merge_dangerously` link the distinct id with; null for other events. */
  readonly otherId: string | null
  /** Whether one came after the job was published. */
  readonly isLater: boolean
  /** Whether a later one has `$set`, `$set_once` or `$unset`. */
  readonly writes: boolean
}
