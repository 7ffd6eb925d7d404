// Leases on the schedules that one worker runs for all workers. A lease expires by itself when its owner is gone.

/** @throws PortError from every method, like `ManagementStore`. */
export interface ScheduleOwners {
  /**
   * Takes a schedule until `untilMs`, or extends the owner's lease. A lease of another owner is not touched until it
   * ends. All times are epoch ms of the workers' clocks, which must agree within a fraction of a lease.
   * @returns whether the owner holds the lease now.
   */
  claimSchedule(lease: ScheduleLease): Promise<boolean>
  /** Gives up the owner's lease before its end. A lease of another owner is not touched. */
  leaveSchedule(name: string, ownerId: string): Promise<void>
}

export interface ScheduleLease {
  readonly name: string
  readonly ownerId: string
  readonly nowMs: number
  readonly untilMs: number
}
