// Reports whether old data is deleted, or kept because the clock of the machine moved. Reads the state, so no instance has to
// run.

import { openExistingManagement } from '#compose/stores/existing-state.ts'
import type { Config } from '#config.ts'
import { isTrusted, standingMs, type TrustedTime, wasEverTrusted } from '#core/retention-time.ts'
import { dayMs } from '#core/time.ts'
import { silentLogger } from '#telemetry/log.ts'
import { type Finding, goodFinding, warningFinding } from './finding.ts'

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
  const ranHours = time === null ? '0' : (time.stoodMs / 3_600_000).toFixed(1)
  const confirmed = `by running for a day (so far ${ranHours} of ${standingMs / 3_600_000} h)`
  if (time === null || !wasEverTrusted(time))
    return goodFinding(
      what,
      `nothing is deleted by age yet: deletion starts once a worker has confirmed the clock ${confirmed}`,
    )
  if (isTrusted(time)) return goodFinding(what, `uses the system clock, as of ${new Date(time.atMs).toISOString()}`)
  const days = Math.abs(time.aheadMs / dayMs).toFixed(1)
  return warningFinding(
    what,
    `the clock is ${days} days ${time.aheadMs > 0 ? 'ahead of' : 'behind'} the expected time: deletion by age uses ${new Date(time.atMs).toISOString()}`,
    `if the clock is wrong, set it. Otherwise nothing to do: after a stop of that length, or a correction of the clock, it is trusted again once a worker has confirmed it ${confirmed}`,
  )
}
