// Leaves out a request's events when their project has used up its quota for them. Quotas apply to live events alone:
// imports are outside all of them, and so are events that became imports because of their age. Source:
// docs/wire/ingestion.md 5, 9; docs/wire/import.md 3.2.

import { type OutcomeTable, resourceAt, rowCountOf, setOutcomeCode } from '#core/capture/outcome-table.ts'
import { getOverQuotaCode } from '#core/capture/outcomes.ts'
import { type EventResource, eventResources, type QuotaResource } from '#core/capture/quota-resource.ts'
import type { Project } from '#core/project.ts'

/** The quotas that are used up; null when none is, which is cheap to find for a project without quotas. */
export function findUsedUpQuotas(
  project: Project,
  isOverQuota: (project: Project, resource: QuotaResource) => boolean,
): ReadonlySet<EventResource> | null {
  const { events, exceptions, llmEvents, surveyResponses } = project.quotas
  if (events === null && exceptions === null && llmEvents === null && surveyResponses === null) return null
  const usedUp = eventResources.filter(resource => isOverQuota(project, resource))
  return usedUp.length === 0 ? null : new Set(usedUp)
}

/** On v1 the events quota covers all events; on v0 an event with a separate quota counts against that quota alone. */
export function excludeEventsOverQuota(
  table: OutcomeTable,
  usedUp: ReadonlySet<EventResource>,
  protocol: 'v0' | 'v1',
): void {
  for (let row = 0; row < rowCountOf(table); row++) {
    const own = resourceAt(table, row)
    if (own === null) continue
    if (usedUp.has(own)) setOutcomeCode(table, row, getOverQuotaCode(own))
    else if (protocol === 'v1' && usedUp.has('events')) setOutcomeCode(table, row, getOverQuotaCode('events'))
  }
}
