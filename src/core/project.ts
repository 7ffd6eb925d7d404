// A project: the tenant that a project API key names.

import type { JsonObject } from './json.ts'

/** Per UTC month; null = unlimited, 0 = always over. */
export interface Quotas {
  readonly events: number | null
  readonly featureFlagRequests: number | null
  readonly exceptions: number | null
  readonly recordings: number | null
  readonly llmEvents: number | null
  readonly surveyResponses: number | null
}

/** How a project wants its live events treated; the worker reads it. Source: docs/wire/ingestion.md 6.1, 6.2, 6.9. */
export interface IngestionSettings {
  /** Live events that happened longer ago than this when they arrive are dropped; null when none are. */
  readonly dropEventsOlderThanSeconds: number | null
  /** Every event counts as sent with `$process_person_profile: false`. */
  readonly personProcessingOptOut: boolean
  /** Only the first of the same `$feature_flag_called` events of one id is stored each UTC day; usage counts all of them. */
  readonly thinsFlagCalls: boolean
  /** Events make no further group types; those that there are go on. */
  readonly groupTypesFrozen: boolean
}

export const noIngestionSettings: IngestionSettings = {
  dropEventsOlderThanSeconds: null,
  personProcessingOptOut: false,
  thinsFlagCalls: false,
  groupTypesFrozen: false,
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
  /** What it tells its clients beside flags, as far as it was set; by the names of `wire/management/client-settings.ts`. */
  readonly clientSettings: JsonObject
  readonly ingestion: IngestionSettings
  readonly createdAtMs: number
}

/** What people are shown of a project's secret keys (`phs_…`), masked; null: there is none. */
export interface SecretKeys {
  readonly primary: string | null
  /** The one before, after a rotation: valid until it is deleted or the next rotation. */
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
