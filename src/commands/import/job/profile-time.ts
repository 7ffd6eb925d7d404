// The time of the profiles in a Mixpanel export: their rows have none, and the time of the import would be wrong for all of
// them. Source: docs/wire/import.md §1.2 (profile row).

import type { JsonObject } from '#core/json.ts'
import type { FetchedParts } from '#importer/fetch/fetch-state.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import type { Manifest } from '#importer/job/manifest.ts'
import type { ImportPlan } from '#importer/job/plan.ts'
import { isProfile } from '#importer/sources/mixpanel/mixpanel-profile.ts'
import { readPartLines } from '#importer/stages/part-lines.ts'
import { unknownDay } from '#importer/stages/spill.ts'

const key = 'profile_timestamp'
const source = 'mixpanel'
const dayMs = 86_400_000

/** Sets the time of profiles to the end of the fetched range unless the configuration has one. */
export function withDefaultProfileTime(
  config: JsonObject,
  plannedSource: string,
  fetched: FetchedParts | null,
): JsonObject {
  if (plannedSource !== source || config[key] !== undefined || fetched === null) return config
  const { to } = fetched.config as { to?: unknown }
  const lastDayMs = typeof to === 'string' ? Date.parse(to) : Number.NaN
  return Number.isNaN(lastDayMs) ? config : { ...config, [key]: new Date(lastDayMs + dayMs).toISOString() }
}

/**
 * For files that were not fetched, whose range is unknown: takes the time of the last event beside the profiles.
 * @returns the plan to stage again with; null if there are no profiles, or their time is known.
 * @throws JobStopped if there is no event to take the time from.
 */
export async function planWithProfileTime(
  folder: JobFolder,
  plan: ImportPlan,
  manifest: Manifest,
): Promise<ImportPlan | null> {
  if (plan.source !== source || plan.config[key] !== undefined) return null
  if (!(await hasProfiles(folder, manifest))) return null
  const { sourceRange } = manifest
  if (sourceRange === null)
    throw new JobStopped(
      'profile rows have no time, and there is no event to take it from. Plan again with their export time: --profile-timestamp 2024-06-01T00:00:00Z',
      {
        command: 'pennon import plan FOLDER … --profile-timestamp TIME',
        why: 'profile rows have no time: TIME is their export time, such as 2024-06-01T00:00:00Z',
      },
    )
  return { ...plan, config: { ...plan.config, [key]: sourceRange.last }, isProfileTimeFound: true }
}

/** Removes a time of profiles that was taken from events, so that it is found again when the events' times change. */
export function removeFoundTime({ isProfileTimeFound, ...plan }: ImportPlan): ImportPlan {
  if (isProfileTimeFound !== true) return plan
  const { [key]: _, ...config } = plan.config
  return { ...plan, config }
}

/** Profiles without a time are staged with the records of unknown day. */
async function hasProfiles(folder: JobFolder, { parts }: Manifest): Promise<boolean> {
  for (const part of parts.filter(({ id }) => id.startsWith(`${unknownDay}/`)))
    for await (const { staged } of readPartLines(folder, part))
      if ('value' in staged.parsed && isProfile(staged.parsed.value)) return true
  return false
}
