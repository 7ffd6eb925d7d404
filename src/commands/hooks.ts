// What a test may replace in a whole instance. These are all the hooks:
//
// - `TestHooks`, given to `startService` by code. No setting and no option of `pennon serve` reaches them.
// - `--test-clock` and `--test-geoip` of `pennon work`, which pass clock and locations to the worker. Refused unless
// NODE_ENV is `test` and HOST is loopback, where no stranger can reach the instance.
// - `Service.writeCounts`, which makes a front write its counts at once instead of after some seconds.
// - The message `test_clock` to the worker, which moves the clock of `--test-clock` and is ignored without that option.
// - `faultPoint` of `services/processing`, which lets a test stop a worker between two steps. `compose/` never sets it.

import type { Clock } from '#ports/clock.ts'
import type { EventLogAppender } from '#ports/log/event-log.ts'
import type { GeoipTable } from './create-table-geoip.ts'

export interface TestHooks {
  /** Replaces the system clock in the front and in the worker. */
  readonly clock?: Clock
  /** Replaces the GeoIP database in the front and in the worker. */
  readonly geoipTable?: GeoipTable
  /** Replaces the log to which the front appends. */
  readonly eventLog?: EventLogAppender
  /** If false, no worker is started, so the log is processed by another process or not at all. */
  readonly runsWorker?: boolean
}

export function areTestHooksAllowed(host: string): boolean {
  return process.env.NODE_ENV === 'test' && /^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(host)
}
