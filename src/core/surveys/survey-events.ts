// The events that SDKs send about surveys, and their counts. Source: docs/wire/clients.md 13.

export const surveyEvents = { shown: 'survey shown', dismissed: 'survey dismissed', sent: 'survey sent' } as const

export interface SurveyCount {
  readonly count: number
  readonly persons: number
  /** Null without any. */
  readonly firstMs: number | null
  readonly lastMs: number | null
}

export interface SurveyCounts {
  readonly shown: SurveyCount
  /** Does not count dismissals after answered questions. */
  readonly dismissed: SurveyCount
  readonly sent: SurveyCount
  readonly personsDismissedAndSent: number
}
