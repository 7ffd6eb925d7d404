// The time of the profiles in a Mixpanel export: their rows have none, and the time of the import would be wrong for all of
// them. Source: docs/wire/import.md §1.2 (profile row).

import type { JsonObject } from '#core/json.ts'
import { dayMs } from '#core/time.ts'
import type { FetchedParts } from '#importer/fetch/fetch-state.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import type { ImportPlan } from '#importer/job/plan.ts'
import { formatTime } from '#importer/records/source-time.ts'
import { isMixpanelProfile } from '#importer/sources/mixpanel/mixpanel.ts'
import { decodeRecordContent } from '#importer/stages/staged-line.ts'
import type { StagedRecords } from '#importer/stages/staged-records.ts'

const key = 'profile_timestamp'
const source = 'mixpanel'

/** Sets the time of profiles to the end of the fetched range unless the configuration has one. */
export function addDefaultProfileTime(
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
 * For files that were not fetched, whose range is unknown: takes the time of the last event that was imported with the
 * profiles.
 * @returns the plan with that time; null if there are no profiles, or their time is known.
 * @throws JobStopped if there is no event to take the time from.
 */
export function addPersonProfileTimeToPlan(plan: ImportPlan, records: StagedRecords): ImportPlan | null {
  if (plan.source !== source || plan.config[key] !== undefined || !hasProfiles(records)) return null
  const range = records.range()
  if (range === null)
    throw new JobStopped(
      'profile rows have no time, and there is no event to take it from. Plan again with their export time: --profile-timestamp 2024-06-01T00:00:00Z',
      {
        command: 'pennon import plan FOLDER … --profile-timestamp TIME',
        why: 'profile rows have no time: TIME is their export time, such as 2024-06-01T00:00:00Z',
      },
    )
  return { ...plan, config: { ...plan.config, [key]: formatTime(range.lastUs) }, isProfileTimeFound: true }
}

/** Removes a profile time that was taken from events, so that it is determined again from the events' new times. */
export function removeDerivedProfileTime({ isProfileTimeFound, ...plan }: ImportPlan): ImportPlan {
  if (isProfileTimeFound !== true) return plan
  const { [key]: _, ...config } = plan.config
  return { ...plan, config }
}

function hasProfiles(records: StagedRecords): boolean {
  for (const { extra, json } of records.unknownTimes()) {
    const { parsed } = decodeRecordContent(extra, json.toString())
    if ('value' in parsed && isMixpanelProfile(parsed.value)) return true
  }
  return false
}
