// Which of a project's quotas an event falls under. Every live event uses the quota of events; some use one of their own
// besides, and stay welcome while that one has room.

import type { Quotas } from '../project.ts'
import { surveyEvents } from '../surveys/survey-events.ts'

export const quotaResources = ['events', 'exceptions', 'recordings', 'llm_events', 'survey_responses'] as const
export type QuotaResource = (typeof quotaResources)[number]
/** What an analytics event can use: recordings come by a path of their own. */
export type EventResource = Exclude<QuotaResource, 'recordings'>

export const surveyEventNames: readonly string[] = Object.values(surveyEvents)
/** A product tour's surveys are no survey responses. */
export const productTourProperty = '$product_tour_id'
export const exceptionEventName = '$exception'
export const llmEventPrefix = '$ai_'

/**
 * The quota that an event has of its own; `events` when it has none.
 * @param hasProductTour whether its properties have `$product_tour_id`, whatever its value; asked of survey events only.
 * Source: docs/wire/ingestion.md 9.
 */
export function quotaResourceOf(name: string, hasProductTour: () => boolean): EventResource {
  if (name === exceptionEventName) return 'exceptions'
  if (name.startsWith(llmEventPrefix)) return 'llm_events'
  if (surveyEventNames.includes(name) && !hasProductTour()) return 'survey_responses'
  return 'events'
}

/** Per UTC month; null = unlimited, 0 = always over. */
export function quotaOf(quotas: Quotas, resource: QuotaResource): number | null {
  return quotas[quotaNames[resource]]
}

const quotaNames = {
  events: 'events',
  exceptions: 'exceptions',
  recordings: 'recordings',
  llm_events: 'llmEvents',
  survey_responses: 'surveyResponses',
} as const satisfies Record<QuotaResource, keyof Quotas>
