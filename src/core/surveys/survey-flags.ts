// The flags that are made for a survey alone: whom it is for, and who has not answered it yet.
// Source: docs/wire/evaluation.md 5.14, 7.1, 7.5; PostHog's survey API.

import type { JsonObject } from '../json.ts'
import type { Survey } from './survey.ts'

const targetingKeyStart = 'survey-targeting-'

/** Whether a flag was made for a survey: SDKs can ask for these alone, and are not given them to evaluate by themselves. */
export function isSurveyFlagKey(key: string): boolean {
  return key.startsWith(targetingKeyStart)
}

/** Keys of the flags of one survey. */
export function surveyFlagKeys(surveyId: string): { readonly targeting: string; readonly internal: string } {
  return { targeting: `${targetingKeyStart}${surveyId}`, internal: `${targetingKeyStart}${surveyId}-custom` }
}

/** Whether browsers may show it now, as far as dates say. An SDK looks at the dates' presence alone. */
export function isSurveyRunning(survey: Pick<Survey, 'startDateMs' | 'endDateMs' | 'archived'>): boolean {
  return survey.startDateMs !== null && survey.endDateMs === null && !survey.archived
}

/**
 * Filters that are true for whoever has neither answered nor dismissed it: a browser sets these person properties with
 * the events `survey sent` and `survey dismissed`, so that the survey is hidden on the person's other devices too.
 * @param iteration the current one of a survey that comes again; null for one that does not.
 */
export function unansweredFilters(surveyId: string, iteration: number | null): JsonObject {
  const suffix = iteration === null ? surveyId : `${surveyId}/${iteration}`
  const isNotSet = (key: string) => ({ key, type: 'person', operator: 'is_not_set', value: 'is_not_set' })
  const properties = [isNotSet(`$survey_dismissed/${suffix}`), isNotSet(`$survey_responded/${suffix}`)]
  return { groups: [{ properties, rollout_percentage: 100 }] }
}
