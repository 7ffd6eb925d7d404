// Counts the live events that a project has on the days of an import, before anything is sent.
// Source: docs/wire/import.md §2.11 (guards).

import type { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped, type Remedy } from '#importer/job/job-paused.ts'
import { allowNull, Type } from '#importer/records/file-schema.ts'
import type { ServiceApi } from '#importer/send/job-api.ts'
import type { TargetAnswer } from '#importer/stages/report/import-report.ts'
import { otherDaysOnly } from '#importer/stages/report/target-facts.ts'
import { type LiveCounts, readLiveCounts, selectSettledDays } from '#importer/verify/verify-stage.ts'
import { quotePath } from '../messages/print.ts'
import type { StageRun } from './job-stages.ts'

/** Counts of live events by day, taken once before anything is sent. */
export const liveBeforeFile = 'live-before.json'
/** The days for which sending was refused, so that the next step is not the same command again. */
export const liveOverlapFile = 'live-overlap.json'
const liveOverlapSchema = Type.Object({ days: Type.Array(Type.String()) })
const liveBeforeSchema = Type.Object({ days: allowNull(Type.Record(Type.Number())) })

/**
 * Days with live events that the user has not accepted yet, from the last refusal and the target's answer to the rehearsal.
 * @returns how many.
 */
export function countOverlapDays(folder: JobFolder, answer: TargetAnswer | undefined): number {
  if (folder.readJson(liveBeforeFile, liveBeforeSchema) !== null) return 0
  const refused = folder.readJson(liveOverlapFile, liveOverlapSchema)?.days ?? []
  const known = answer === undefined || 'notAsked' in answer ? [] : answer.overlap.filter(({ live }) => live > 0)
  return new Set([...refused, ...known.map(({ day }) => day)]).size
}

/** When --overlap-ok is right, and the alternative. */
export const overlapRemedy = `this is fine if they are different events from those you import; if they are the same, ${otherDaysOnly}`

/**
 * Counts live events before the first event is sent, so that verifying can detect missing live events.
 * @param path of the job's folder as the user wrote it.
 */
export async function findLiveEventsBefore(
  { folder, progress }: Pick<StageRun, 'folder' | 'progress'>,
  api: ServiceApi,
  range: { readonly first: string; readonly last: string } | null,
  { path, overlapOk = false }: { readonly path: string; readonly overlapOk?: boolean },
): Promise<Record<string, number> | null> {
  const known = folder.readJson(liveBeforeFile, liveBeforeSchema)
  if (known !== null) return known.days
  const counts: LiveCounts = range === null ? { days: {} } : await readLiveCounts(api, range)
  if (!('days' in counts)) {
    const message = unknownOverlapMessage(api.address, counts.refused)
    if (!overlapOk)
      throw new JobStopped(`${message} To send without this check: --overlap-ok`, findUnseenRemedy(counts.refused))
    progress.say(`WARNING: ${message} Sending anyway (--overlap-ok).`)
    folder.writeJson(liveBeforeFile, { days: null })
    return null
  }
  const names = Object.keys(counts.days)
  if (names.length > 0 && !overlapOk) {
    folder.writeJson(liveOverlapFile, { days: names })
    throw new JobStopped(
      `the project has live events on the same days (${names.slice(0, 5).join(', ')}${names.length > 5 ? `, … ${names.length} days` : ''}). ` +
        `Next: pennon import run ${quotePath(path)} --overlap-ok; ${overlapRemedy}`,
    )
  }
  folder.remove(liveOverlapFile)
  const days = selectSettledDays(counts.days, api.clock.nowMs())
  folder.writeJson(liveBeforeFile, { days })
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

function unknownOverlapMessage(address: string, refused: number | null): string {
  const unseen = `cannot check whether the project has live events on the same days: ${address}`
  if (refused === null) return `${unseen} returned an unreadable response.`
  const scope =
    refused === 403 ? ' The key in PENNON_PERSONAL_KEY lacks the scope query:read: use a key that has it.' : ''
  return `${unseen} answered ${refused} to /query/.${scope}`
}
