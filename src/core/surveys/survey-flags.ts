// The flags that exist for a single survey: one for its audience, and one for the persons who have not answered it yet.
// Source: docs/wire/evaluation.md 5.14, 7.1, 7.5; PostHog's survey API.

import type { JsonObject } from '../json.ts'
import type { Survey } from '../resources/survey.ts'

const targetingKeyStart = 'survey-targeting-'

/** Whether a flag was made for a survey. SDKs can request only survey flags, and never get them for local evaluation. */
export function isSurveyFlagKey(key: string): boolean {
  return key.startsWith(targetingKeyStart)
}

/** The keys of a survey's flags. */
export function buildSurveyFlagKeys(surveyId: string): { readonly targeting: string; readonly internal: string } {
  return { targeting: `${targetingKeyStart}${surveyId}`, internal: `${targetingKeyStart}${surveyId}-custom` }
}

/** Whether browsers may show the survey now. An SDK checks only whether the dates are set, not their values. */
export function isSurveyRunning(survey: Pick<Survey, 'startDateMs' | 'endDateMs' | 'archived'>): boolean {
  return survey.startDateMs !== null && survey.endDateMs === null && !survey.archived
}

/**
 * Filters that match persons who have neither answered nor dismissed the survey. A browser sets these person properties
 * with the events `survey sent` and `survey dismissed`, so that the survey is hidden on the person's other devices too.
 * @param iteration the current iteration of a repeated survey; null for any other.
 */
export function buildUnansweredSurveyFilters(surveyId: string, iteration: number | null): JsonObject {
  const suffix = iteration === null ? surveyId : `${surveyId}/${iteration}`
  const createNotSetFilter = (key: string) => ({ key, type: 'person', operator: 'is_not_set', value: 'is_not_set' })
  const properties = [
    createNotSetFilter(`$survey_dismissed/${suffix}`),
    createNotSetFilter(`$survey_responded/${suffix}`),
  ]
  return { groups: [{ properties, rollout_percentage: 100 }] }
}
