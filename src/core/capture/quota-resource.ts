// Which of a project's quotas an event counts against. Every live event counts against the `events` quota. Some also have a
// separate quota; they are accepted until that separate quota is used up, even when `events` is used up.

import { findMembersNamed, MemberNames } from '../json-text.ts'
import type { Quotas } from '../project.ts'
import { surveyEvents } from '../surveys/survey-events.ts'

export const quotaResources = ['events', 'exceptions', 'recordings', 'llm_events', 'survey_responses'] as const
export type QuotaResource = (typeof quotaResources)[number]
/** The quotas that an analytics event can count against. Recordings are counted elsewhere. */
export const eventResources = ['events', 'exceptions', 'llm_events', 'survey_responses'] as const
export type EventResource = (typeof eventResources)[number]

export const surveyEventNames: readonly string[] = Object.values(surveyEvents)
/** A survey event with this property belongs to a product tour and is not a survey response. */
export const productTourProperty = '$product_tour_id'
const productTour = new MemberNames([productTourProperty])
export const exceptionEventName = '$exception'
export const llmEventPrefix = '$ai_'

/**
 * Returns an event's separate quota, or `events` when it has none. @param hasProductTour whether the event's properties
 * have `$product_tour_id`, with any value; called for survey events only. Source: docs/wire/ingestion.md 9.
 */
export function quotaResourceOf(name: string, hasProductTour: () => boolean): EventResource {
  if (name === exceptionEventName) return 'exceptions'
  if (name.startsWith(llmEventPrefix)) return 'llm_events'
  if (surveyEventNames.includes(name) && !hasProductTour()) return 'survey_responses'
  return 'events'
}

/** `quotaResourceOf` for an event whose properties are JSON text. */
export function eventResourceOf(name: string, propertiesJson: string): EventResource {
  return quotaResourceOf(name, () => {
    // The property's name is in the text literally or with a `\u` escape; a text without either need not be parsed.
    if (!propertiesJson.includes(`"${productTourProperty}"`) && !propertiesJson.includes('\\u')) return false
    return findMembersNamed(propertiesJson, productTour).length > 0
  })
}

/** Per UTC month; null = unlimited, 0 = always exceeded. */
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
