// Counts the live events that a project has on the days of an import, before anything is sent.
// Source: docs/wire/import.md §2.11 (guards).

import type { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped, type Remedy } from '#importer/job/job-paused.ts'
import { readJobState, writeJobState } from '#importer/job/job-state.ts'
import type { ServiceApi } from '#importer/send/service-api.ts'
import { otherDaysOnly } from '#importer/stages/report/target-facts.ts'
import { type LiveCounts, readLiveCounts, selectSettledDays } from '#importer/verify/verify-stage.ts'
import type { StageRun } from './job-stages.ts'
import type { Job } from './open-job.ts'

const liveBeforeName = 'live before'

/** Why an import may only be sent with `--overlap-ok`. */
export interface OverlapProblem {
  readonly message: string
  /** What to do, in a whole sentence. */
  readonly advice: string
  readonly remedy: Remedy
}

type Range = { readonly first: string; readonly last: string } | null

/** Looks for live events on the days of an import whose sending has not begun. @returns null if there are none. */
export async function findOverlapProblem(
  { folder, at }: Job,
  api: ServiceApi,
  range: Range,
): Promise<OverlapProblem | null> {
  if (readLiveBefore(folder) !== null) return null
  return describeOverlap(await countLiveEvents(api, range), api, at)
}

/** Counts live events before the first event is sent, so that verifying can detect missing live events. */
export async function countLiveEventsBeforeSend(
  { folder, progress, at }: StageRun,
  api: ServiceApi,
  range: Range,
  overlapOk: boolean,
): Promise<Record<string, number> | null> {
  const known = readLiveBefore(folder)
  if (known !== null) return known.days
  const counts = await countLiveEvents(api, range)
  const problem = describeOverlap(counts, api, at)
  if (problem !== null && !overlapOk) throw new JobStopped(`${problem.message} ${problem.advice}`, problem.remedy)
  if (!('days' in counts)) progress.say(`WARNING: ${problem!.message} Sending anyway (--overlap-ok).`)
  const days = 'days' in counts ? selectSettledDays(counts.days, api.clock.nowMs()) : null
  writeJobState(folder, liveBeforeName, { days })
  return days
}

function readLiveBefore(folder: JobFolder) {
  return readJobState<{ readonly days: Record<string, number> | null }>(folder, liveBeforeName)
}

async function countLiveEvents(api: ServiceApi, range: Range): Promise<LiveCounts> {
  return range === null ? { days: {} } : readLiveCounts(api, range)
}

function describeOverlap(counts: LiveCounts, { address }: ServiceApi, at: string): OverlapProblem | null {
  if (!('days' in counts))
    return {
      message: describeUnknownOverlap(address, counts.refused),
      advice: 'To send without this check: --overlap-ok',
      remedy: findUnseenRemedy(counts.refused),
    }
  const names = Object.keys(counts.days)
  if (names.length === 0) return null
  const why = `this is fine if they are different events from those you import; if they are the same, ${otherDaysOnly}`
  return {
    message: `the project has live events on the same days (${names.slice(0, 5).join(', ')}${names.length > 5 ? `, … ${names.length} days` : ''}).`,
    advice: `Next: pennon import run ${at} --overlap-ok; ${why}`,
    remedy: {
      command: 'pennon import run FOLDER --overlap-ok',
      why: `the project has live events on the same days: ${why}`,
    },
  }
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
