// Whether what is too old is deleted, or waits because the clock of the machine moved. From the state: no instance has to run.

import { openExistingManagement } from '#compose/stores/existing-state.ts'
import type { Config } from '#config.ts'
import { isBelieved, standingMs, type TrustedTime } from '#core/retention-time.ts'
import { dayMs } from '#core/time.ts'
import { silentLogger } from '#telemetry/log.ts'
import { type Finding, good, warning } from './finding.ts'

const what = 'deletion by age'

/** None if this version cannot read the state, which other checks report. */
export async function checkTrustedTime(config: Config): Promise<readonly Finding[]> {
  const opened = await openExistingManagement(config, silentLogger())
  if (!opened.ok) return []
  try {
    return [findingOf(await opened.value.findTrustedTime())]
  } finally {
    await opened.value.close()
  }
}

export function findingOf(time: TrustedTime | null): Finding {
  if (time === null || time.atMs < dayMs) return good(what, 'begins when a worker has seen the clock go on for a day')
  if (isBelieved(time)) return good(what, `goes by the clock, as of ${new Date(time.atMs).toISOString()}`)
  const days = Math.abs(time.aheadMs / dayMs).toFixed(1)
  return warning(
    what,
    `the clock is ${days} days ${time.aheadMs > 0 ? 'ahead of' : 'behind'} where it should be, so nothing is deleted by it`,
    `nothing to do after a stop of that length or once the clock was set right: it is believed when a worker has seen it go on for a day (so far ${(time.stoodMs / 3_600_000).toFixed(1)} of ${standingMs / 3_600_000} h). If it is wrong, set it`,
  )
}
