// A project: the tenant that a project API key names.

import { clientSettings } from './client-settings.ts'
import {
  booleanField,
  buildInitialFields,
  groupField,
  type ItemOf,
  instantField,
  integerField,
  membersField,
  nullable,
  textField,
  uuidField,
} from './resource.ts'

/**
 * How events of cookieless mode are handled, including imported ones: 0 drops them; 1 gives each visitor an id for the
 * day, computed at the edge; 2 does so with state, so that visitors can be identified and have sessions.
 */
export type CookielessMode = 0 | 1 | 2
/** The mode of new projects: a page that asks for cookieless mode can only mean that its visitors should be counted. */
export const newCookielessMode: CookielessMode = 1

/** Per UTC month; null = unlimited, 0 = always exceeded. */
const quotas = {
  events: quotaField('events'),
  featureFlagRequests: quotaField('feature_flag_requests'),
  exceptions: quotaField('exceptions'),
  recordings: quotaField('recordings'),
  llmEvents: quotaField('llm_events'),
  surveyResponses: quotaField('survey_responses'),
}
export type Quotas = ItemOf<{ readonly fields: typeof quotas }>
export const noQuotas = buildInitialFields({ fields: quotas }) as Quotas

function quotaField<const N extends string>(name: N) {
  return nullable(integerField(name, { schema: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } }))
}

const onOff = (description?: string) => ({ type: 'boolean', ...(description !== undefined && { description }) })

/**
 * A project's settings for its live events. Settings that PostHog has too keep PostHog's names. Source:
 * docs/wire/ingestion.md 6.1, 6.2, 6.9, 13.
 */
const ingestion = {
  /** A live event that is older than this when it arrives is dropped; null for no limit. */
  dropEventsOlderThanSeconds: nullable(
    integerField('drop_events_older_than_seconds', {
      schema: {
        ...{ type: 'integer', minimum: 0, maximum: 10_000_000_000 },
        description: 'Drop live events older than this on arrival. null or 0: drop none.',
      },
    }),
  ),
  /** Treats every event as if it were sent with `$process_person_profile: false`. */
  personProcessingOptOut: booleanField('person_processing_opt_out', {
    schema: onOff('Process every event without a person profile.'),
    initial: false,
  }),
  /** Stores only the first of a distinct id's equal `$feature_flag_called` events per UTC day; usage counts all. */
  deduplicatesFlagCalls: booleanField('feature_flag_called_dedup', {
    schema: onOff(
      'Store only the first of identical $feature_flag_called events per distinct id and UTC day; usage counts all of them.',
    ),
    initial: false,
  }),
  /** Events create no new group types; existing ones keep working. */
  groupTypesFrozen: booleanField('group_types_frozen', {
    schema: onOff('Events create no new group types; existing ones keep working.'),
    initial: false,
  }),
  cookielessMode: integerField('cookieless_server_hash_mode', {
    schema: {
      anyOf: [
        {
          anyOf: [{ const: 0 }, { const: 1 }, { const: 2 }],
          description:
            'Cookieless events: 0 drops them; 1 gives each visitor a hashed id per day; 2 also handles identified visitors and sessions. null: 1.',
        },
        { type: 'null' },
      ],
    },
    initial: 0 as CookielessMode,
  }),
}
export type IngestionSettings = ItemOf<{ readonly fields: typeof ingestion }>
export const noIngestionSettings = buildInitialFields({ fields: ingestion }) as IngestionSettings

export const projectResource = {
  table: 'project',
  required: ['name'],
  fields: {
    /** Ascending from 1, never reused; also PostHog's team id. */
    id: integerField('id'),
    uuid: uuidField('uuid'),
    name: textField('name', { schema: { type: 'string', minLength: 1, maxLength: 200 } }),
    /** The public project API key (`phc_…`). */
    apiToken: textField('api_token', { isLogged: true }),
    /** IANA name; date filters without a zone are read in it. */
    timezone: textField('timezone', {
      schema: {
        ...{ type: 'string', maxLength: 64 },
        description: 'IANA time zone for dates and times without a zone, in filters and parameters. Default: UTC.',
      },
      initial: 'UTC',
    }),
    anonymizeIps: booleanField('anonymize_ips', {
      schema: onOff('Store events without `$ip`; its location is still looked up.'),
      initial: false,
    }),
    geoipEnabled: booleanField('geoip_enabled', {
      schema: onOff('Add `$geoip_…` properties of the IP address to events. Flag evaluation always uses them.'),
      initial: true,
    }),
    /** 1 or 2: whether the operator `exact` treats boolean-like values specially. Source: docs/wire/evaluation.md 5.9. */
    propertyMatchingVersion: integerField('property_matching_version', {
      schema: {
        anyOf: [{ const: 1 }, { const: 2 }],
        description: '1: `exact` with true or false (also as text) tests truthiness; 2: compares as text.',
      },
      initial: 1 as 1 | 2,
    }),
    quotas: groupField('quotas', quotas, { schema: { description: 'Omitted quotas are unchanged.' } }),
    ingestion: groupField('ingestion_settings', ingestion, { isFlat: true }),
    /** Only the settings that were set. */
    clientSettings: membersField('client_settings', clientSettings),
    createdAtMs: instantField('created_at'),
  },
} as const

export type Project = ItemOf<typeof projectResource>

/** A project's secret keys (`phs_…`), masked for display; null when there is none. */
export interface SecretKeys {
  readonly primary: string | null
  /** The previous key after a rotation; it is valid until it is deleted or the key is rotated again. */
  readonly backup: string | null
}

export const noSecretKeys: SecretKeys = { primary: null, backup: null }
