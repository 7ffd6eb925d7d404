// The calendar of a project's insights.

import type { BucketCalendar } from '#core/insights/buckets.ts'
import type { Project } from '#core/project.ts'

export function toBucketCalendar({ timezone, clientSettings }: Project): BucketCalendar {
  return { timezone, weekStartDay: clientSettings.week_start_day === 1 ? 1 : 0 }
}
