// What became of a capture request, and what its answer needs to know.

import type { EventRefusal } from '#core/capture/normalize-event.ts'
import type { EventResource } from '#core/capture/quota-resource.ts'
import type { CapturedReject } from '#core/events/captured-event.ts'
import type { HotEvents } from './cool-hot-keys.ts'
import type { LeftOut } from './leave-out-over-quota.ts'

export type CaptureOutcome =
  /**
   * Durable. `rejects` are events of an import that were left out; `rejectedCount` counts all of them. `overQuota` are
   * events that a quota left out, in their order: all of them on v1, at most 20,000 on v0, where
   * `quotaLeftNothing` may be true.
   */
  | {
      readonly kind: 'accepted'
      readonly rejects: readonly CapturedReject[]
      readonly rejectedCount: number
      readonly overQuota: OverQuota
      readonly quotaLeftNothing: boolean
      /**
       * Events stored without a person because their distinct id sends too many, for requests that are answered event by
       * event. Absent when there are none.
       */
      readonly hot?: HotEvents
      /** Nothing is stored: the key belongs to no project, and such are accepted. */
      readonly isKeyUnknown?: true
    }
  /** v1 alone. Nothing is stored: the quota of events is used up, or others left nothing of the batch. `resource`: the first's. */
  | { readonly kind: 'over_quota'; readonly resource: EventResource }
  /** Nothing is stored: the instance takes historical migrations only. Clients are told that all is well. */
  | { readonly kind: 'discarded' }
  | { readonly kind: 'unknown_project' }
  /** Nothing is stored: one event is bad. */
  | { readonly kind: 'refused'; readonly refusal: EventRefusal; readonly index: number; readonly field: string }
  /**
   * Nothing, or after a timeout perhaps all, is stored; the same request may be sent again. `isProjectUnknown`: whose key it
   * has could not be found out, so nothing is counted. `reason`: which limit is reached, if that is why.
   */
  | { readonly kind: 'unavailable'; readonly isProjectUnknown?: true; readonly reason?: string }

export type OverQuota = Pick<LeftOut, 'count' | 'events' | 'marks'>

export const noneOverQuota: OverQuota = { count: 0, events: [], marks: new Uint8Array(0) }
export const nothingRejected: CaptureOutcome = {
  kind: 'accepted',
  rejects: [],
  rejectedCount: 0,
  overQuota: noneOverQuota,
  quotaLeftNothing: false,
}
/** Events of an unknown key where those are accepted: answered like others, and dropped. */
export const nothingStored: CaptureOutcome = { ...nothingRejected, isKeyUnknown: true }
