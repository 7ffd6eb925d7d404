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
