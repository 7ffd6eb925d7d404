// The lease in the state that decides which of several workers runs the schedules for all.

import type { Clock } from '#ports/clock.ts'
import type { ScheduleOwners } from '#ports/state/worker-state.ts'

/** How long the schedules of a killed worker pause before another worker takes over. */
export const scheduleLeaseMs = 30_000
/** All schedules share one lease, since they depend on each other: usage and retention depend on `restore-event-store.ts`. */
const name = 'schedules'

export type ScheduleLease = ReturnType<typeof createScheduleLease>

export function createScheduleLease(options: {
  readonly owners: ScheduleOwners
  /**
   * Identifies the worker. Where no other worker can have the same id, it stays the same across restarts, so that a
   * restarted worker need not wait for its own lease to expire.
   */
  readonly ownerId: string
  readonly clock: Clock
}) {
  const { owners, ownerId, clock } = options
  let untilMs: number | null = null
  let asking: Promise<boolean> | null = null

  async function claimOrRenew(): Promise<boolean> {
    const nowMs = clock.nowMs()
    const leftMs = untilMs === null ? 0 : untilMs - nowMs
    // More than the full lease time can be left only if the clock was set back; such a lease does not count.
    const isHeld = leftMs > 0 && leftMs <= scheduleLeaseMs
    if (isHeld && leftMs > scheduleLeaseMs / 2) return true
    const lease = { name, ownerId, nowMs, untilMs: nowMs + scheduleLeaseMs }
    try {
      const isOurs = await owners.claimSchedule(lease)
      untilMs = isOurs ? lease.untilMs : null
      return isOurs
    } catch (cause) {
      if (isHeld) return true
      throw cause
    }
  }

  return {
    /**
     * Whether this worker holds the schedule lease, so that it runs the schedules. Queries the state only after half of
     * the lease.
     * @throws PortError
     */
    isOurs(): Promise<boolean> {
      asking ??= claimOrRenew().finally(() => {
        asking = null
      })
      return asking
    },
    /** Releases the lease, so that another worker can take over the schedules immediately. @throws PortError */
    async leave(): Promise<void> {
      if (untilMs === null) return
      untilMs = null
      await owners.releaseSchedule(name, ownerId)
    },
  }
}
