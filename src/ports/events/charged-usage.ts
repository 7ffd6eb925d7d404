// Charged usage, counted from the stored events themselves.

import type { EventUsage } from '#core/usage.ts'

export interface ChargedUsage {
  /**
   * Counts each identity once, on the UTC day of its `chargedAtMs`, and a recorded session on the day of its first
   * recording. Days are inclusive, `YYYY-MM-DD`; days without usage are left out. May take minutes: the limit on users'
   * queries does not apply. `signal` ends it, with its reason.
   * @throws PortError `unavailable`, `timeout`, `full`.
   */
  countUsage(projectId: number, fromDay: string, toDay: string, signal?: AbortSignal): Promise<readonly UsageDay[]>
}

export interface UsageDay extends EventUsage {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string
}
