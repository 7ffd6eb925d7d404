// Counts the live events that a project has on the days of an import, before anything is sent.
// Source: docs/wire/import.md §2.11 (guards).

import { JobStopped, type Remedy } from '#importer/job/job-paused.ts'
import { readJobState, writeJobState } from '#importer/job/job-state.ts'
import type { ServiceApi } from '#importer/send/service-api.ts'
import { otherDaysOnly } from '#importer/stages/report/target-facts.ts'
import { type LiveCounts, readLiveCounts, selectSettledDays } from '#importer/verify/verify-stage.ts'
import type { StageRun } from './job-stages.ts'

const liveBeforeName = 'live before'

/** Counts live events before the first event is sent, so that verifying can detect missing live events. */
export async function countLiveEventsBeforeSend(
  { folder, progress, at }: StageRun,
  api: ServiceApi,
  range: { readonly first: string; readonly last: string } | null,
  overlapOk: boolean,
): Promise<Record<string, number> | null> {
  const known = readJobState<{ readonly days: Record<string, number> | null }>(folder, liveBeforeName)
  if (known !== null) return known.days
  const counts: LiveCounts = range === null ? { days: {} } : await readLiveCounts(api, range)
  if (!('days' in counts)) {
    const message = describeUnknownOverlap(api.address, counts.refused)
    if (!overlapOk)
      throw new JobStopped(`${message} To send without this check: --overlap-ok`, findUnseenRemedy(counts.refused))
    progress.say(`WARNING: ${message} Sending anyway (--overlap-ok).`)
    writeJobState(folder, liveBeforeName, { days: null })
    return null
  }
  const names = Object.keys(counts.days)
  if (names.length > 0 && !overlapOk) {
    const why = `this is fine if they are different events from those you import; if they are the same, ${otherDaysOnly}`
    throw new JobStopped(
      `the project has live events on the same days (${names.slice(0, 5).join(', ')}${names.length > 5 ? `, … ${names.length} days` : ''}). ` +
        `Next: pennon import run ${at} --overlap-ok; ${why}`,
      { command: 'pennon import run FOLDER --overlap-ok', why: `the project has live events on the same days: ${why}` },
    )
  }
  const days = selectSettledDays(counts.days, api.clock.nowMs())
  writeJobState(folder, liveBeforeName, { days })
  return days
}

function findUnseenRemedy(refused: number | null): Remedy {
  const mended =
    refused === 403
      ? 'set PENNON_PERSONAL_KEY to a key that also has the scope query:read'
      : 'make /query/ of the instance work'
  return {
    command: null,
    why: `${mended}, then pennon import run FOLDER; or send without this check: pennon import run FOLDER --overlap-ok`,
  }
}

function describeUnknownOverlap(address: string, refused: number | null): string {
  const unseen = `cannot check whether the project has live events on the same days: ${address}`
  if (refused === null) return `${unseen} returned an unreadable response.`
  const scope =
    refused === 403 ? ' The key in PENNON_PERSONAL_KEY lacks the scope query:read: use a key that has it.' : ''
  return `${unseen} answered ${refused} to /query/.${scope}`
}
