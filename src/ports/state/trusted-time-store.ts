// The time by which things are old (core/retention-time.ts), kept over restarts.

import type { TrustedTime } from '#core/retention-time.ts'

/** @throws PortError from every method, like `ManagementStore`. */
export interface TrustedTimeStore {
  /** Null until a worker has looked at its clock. */
  findTrustedTime(): Promise<TrustedTime | null>
  saveTrustedTime(time: TrustedTime): Promise<void>
}
