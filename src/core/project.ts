// A project: the tenant that a project API key names.

import type { JsonObject } from './json.ts'

/** Per UTC month; null = unlimited, 0 = always exceeded. */
export interface Quotas {
  readonly events: number | null
  readonly featureFlagRequests: number | null
  readonly exceptions: number | null
  readonly recordings: number | null
  readonly llmEvents: number | null
  readonly surveyResponses: number | null
}

/** A project's settings for its live events. Source: docs/wire/ingestion.md 6.1, 6.2, 6.9, 13. */
export interface IngestionSettings {
  /** A live event that is older than this when it arrives is dropped; null for no limit. */
  readonly dropEventsOlderThanSeconds: number | null
  /** Treats every event as if it were sent with `$process_person_profile: false`. */
  readonly personProcessingOptOut: boolean
  /** Stores only the first of an id's equal `$feature_flag_called` events each UTC day; usage counts all of them. */
  readonly deduplicatesFlagCalls: boolean
  /** Events create no new group types; existing ones keep working. */
  readonly groupTypesFrozen: boolean
  readonly cookielessMode: CookielessMode
}

/**
 * How events of cookieless mode are handled, including imported ones: 0 drops them; 1 gives each visitor an id for the
 * day, computed at the edge; 2 does so with state, so that visitors can be identified and have sessions.
 */
export type CookielessMode = 0 | 1 | 2
/** For new projects: a page that asks for the mode can only mean that its visitors should be counted. */
export const newCookielessMode: CookielessMode = 1

export const noIngestionSettings: IngestionSettings = {
  dropEventsOlderThanSeconds: null,
  personProcessingOptOut: false,
  deduplicatesFlagCalls: false,
  groupTypesFrozen: false,
  cookielessMode: 0,
}

export interface Project {
  /** Ascending from 1, never reused; also PostHog's team id. */
  readonly id: number
  readonly uuid: string
  readonly name: string
  /** The public project API key (`phc_…`). */
  readonly apiToken: string
  /** IANA name; date filters without a zone are read in it. */
  readonly timezone: string
  readonly anonymizeIps: boolean
  readonly geoipEnabled: boolean
  /** 1 or 2: whether `exact` knows boolean-like values. Source: docs/wire/evaluation.md 5.9. */
  readonly propertyMatchingVersion: 1 | 2
  readonly quotas: Quotas
  /**
   * The settings that clients get besides flags, as far as they are set; keys as in
   * `wire/management/client-settings.ts`.
   */
  readonly clientSettings: JsonObject
  readonly ingestion: IngestionSettings
  readonly createdAtMs: number
}

/** A project's secret keys (`phs_…`), masked for display; null when there is none. */
export interface SecretKeys {
  readonly primary: string | null
  /** The previous key after a rotation; valid until it is deleted or the next rotation. */
  readonly backup: string | null
}

export const noSecretKeys: SecretKeys = { primary: null, backup: null }

export const noQuotas: Quotas = {
  events: null,
  featureFlagRequests: null,
  exceptions: null,
  recordings: null,
  llmEvents: null,
  surveyResponses: null,
}
