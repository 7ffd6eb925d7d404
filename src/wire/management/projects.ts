// Projects. A PostHog "project" and its "environment" (team) are one thing here.

import Type, { type Static } from 'typebox'
import { type IngestionSettings, newCookielessMode, type Project, type Quotas, type SecretKeys } from '#core/project.ts'
import {
  clientSettingsPatchSchema,
  clientSettingsSchema,
  decodeClientSettings,
  encodeClientSettings,
} from './client-settings.ts'
import { instant, instantSchema, nullable, uuidSchema } from './shapes.ts'

const quota = nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))

/** Per UTC month; null means unlimited, 0 always used up. */
export const quotasSchema = Type.Object({
  events: quota,
  feature_flag_requests: quota,
  exceptions: quota,
  recordings: quota,
  llm_events: quota,
  survey_responses: quota,
})

const secretKey = nullable(Type.String({ description: 'Masked, except in the response that creates it.' }))

/** How live events are treated. Settings that PostHog has keep its names. */
const ingestionSettings = {
  drop_events_older_than_seconds: nullable(
    Type.Integer({
      minimum: 0,
      maximum: 10_000_000_000,
      description: 'Drop live events older than this on arrival. null or 0: drop none.',
    }),
  ),
  person_processing_opt_out: Type.Boolean({ description: 'Process every event without a person profile.' }),
  feature_flag_called_dedup: Type.Boolean({
    description:
      'Store only the first of identical $feature_flag_called events per distinct id and UTC day; usage counts all of them.',
  }),
  group_types_frozen: Type.Boolean({ description: 'Events create no new group types; existing ones keep working.' }),
  cookieless_server_hash_mode: nullable(
    Type.Union([Type.Literal(0), Type.Literal(1), Type.Literal(2)], {
      description:
        'Cookieless events: 0 drops them; 1 gives each visitor a hashed id per day; 2 also handles identified visitors and sessions. null: 1.',
    }),
  ),
}

export const projectSchema = Type.Object({
  id: Type.Integer(),
  uuid: uuidSchema,
  organization: uuidSchema,
  name: Type.String(),
  api_token: Type.String(),
  secret_api_token: secretKey,
  secret_api_token_backup: secretKey,
  timezone: Type.String(),
  anonymize_ips: Type.Boolean(),
  geoip_enabled: Type.Boolean(),
  property_matching_version: Type.Union([Type.Literal(1), Type.Literal(2)]),
  quotas: quotasSchema,
  ...ingestionSettings,
  ...clientSettingsSchema.properties,
  person_on_events_querying_enabled: Type.Literal(true, {
    description: "Queries use a person's properties at the time of the event.",
  }),
  created_at: instantSchema,
})
export type ProjectJson = Static<typeof projectSchema>

const projectFields = {
  name: Type.String({ minLength: 1, maxLength: 200 }),
  timezone: Type.String({
    maxLength: 64,
    description: 'IANA time zone for dates and times without a zone, in filters and parameters. Default: UTC.',
  }),
  anonymize_ips: Type.Boolean({ description: 'Store events without `$ip`; its location is still looked up.' }),
  geoip_enabled: Type.Boolean({
    description: 'Add `$geoip_…` properties of the IP address to events. Flag evaluation always uses them.',
  }),
  property_matching_version: Type.Union([Type.Literal(1), Type.Literal(2)], {
    description: '1: `exact` with true or false (also as text) tests truthiness; 2: compares as text.',
  }),
  ...ingestionSettings,
  quotas: Type.Partial(quotasSchema, {
    description: 'Omitted quotas are unchanged.',
    additionalProperties: false,
  }),
}

export const createProjectSchema = Type.Object({
  ...Type.Partial(Type.Object(projectFields)).properties,
  ...clientSettingsPatchSchema.properties,
  name: projectFields.name,
  api_token: Type.Optional(
    Type.String({ description: 'A custom project API key: printable ASCII, at most 64 bytes, unique.' }),
  ),
})

export const updateProjectSchema = Type.Object({
  ...Type.Partial(Type.Object(projectFields)).properties,
  ...clientSettingsPatchSchema.properties,
})
export type UpdateProjectJson = Static<typeof updateProjectSchema>

/** The one organization of an instance. Nothing is stored about it; clients only need an id. */
export const organizationId = '00000000-0000-4000-8000-000000000001'

export function encodeProject(project: Project, secretKeys: SecretKeys): ProjectJson {
  return {
    id: project.id,
    uuid: project.uuid,
    organization: organizationId,
    name: project.name,
    api_token: project.apiToken,
    secret_api_token: secretKeys.primary,
    secret_api_token_backup: secretKeys.backup,
    timezone: project.timezone,
    anonymize_ips: project.anonymizeIps,
    geoip_enabled: project.geoipEnabled,
    property_matching_version: project.propertyMatchingVersion,
    quotas: {
      events: project.quotas.events,
      feature_flag_requests: project.quotas.featureFlagRequests,
      exceptions: project.quotas.exceptions,
      recordings: project.quotas.recordings,
      llm_events: project.quotas.llmEvents,
      survey_responses: project.quotas.surveyResponses,
    },
    drop_events_older_than_seconds: project.ingestion.dropEventsOlderThanSeconds,
    person_processing_opt_out: project.ingestion.personProcessingOptOut,
    feature_flag_called_dedup: project.ingestion.deduplicatesFlagCalls,
    group_types_frozen: project.ingestion.groupTypesFrozen,
    cookieless_server_hash_mode: project.ingestion.cookielessMode,
    ...encodeClientSettings(project.clientSettings),
    person_on_events_querying_enabled: true,
    created_at: instant(project.createdAtMs),
  }
}

/** The fields that a body has, under the core's names. */
export function decodeProject(body: UpdateProjectJson): ProjectChanges {
  const clientSettings = decodeClientSettings(body)
  return {
    ...(body.name === undefined ? {} : { name: body.name }),
    ...(body.timezone === undefined ? {} : { timezone: body.timezone }),
    ...(body.anonymize_ips === undefined ? {} : { anonymizeIps: body.anonymize_ips }),
    ...(body.geoip_enabled === undefined ? {} : { geoipEnabled: body.geoip_enabled }),
    ...(body.property_matching_version === undefined
      ? {}
      : { propertyMatchingVersion: body.property_matching_version }),
    ...(body.quotas === undefined ? {} : { quotas: decodeQuotas(body.quotas) }),
    ...(clientSettings === undefined ? {} : { clientSettings }),
    ingestion: decodeIngestionSettings(body),
  }
}

function decodeIngestionSettings(body: UpdateProjectJson): Partial<IngestionSettings> {
  const {
    drop_events_older_than_seconds: seconds,
    person_processing_opt_out: optOut,
    feature_flag_called_dedup: deduplicates,
    group_types_frozen: frozen,
    cookieless_server_hash_mode: mode,
  } = body
  return {
    ...(seconds === undefined ? {} : { dropEventsOlderThanSeconds: seconds === 0 ? null : seconds }),
    ...(optOut === undefined ? {} : { personProcessingOptOut: optOut }),
    ...(deduplicates === undefined ? {} : { deduplicatesFlagCalls: deduplicates }),
    ...(frozen === undefined ? {} : { groupTypesFrozen: frozen }),
    ...(mode === undefined ? {} : { cookielessMode: mode ?? newCookielessMode }),
  }
}

export type ProjectChanges = Partial<
  Pick<Project, 'name' | 'timezone' | 'anonymizeIps' | 'geoipEnabled' | 'propertyMatchingVersion' | 'clientSettings'>
> & { readonly quotas?: Partial<Quotas>; readonly ingestion?: Partial<IngestionSettings> }

function decodeQuotas(quotas: NonNullable<UpdateProjectJson['quotas']>): Partial<Quotas> {
  const decoded: Partial<Record<keyof Quotas, number | null>> = {}
  for (const [wireName, name] of quotaNames) {
    const value = quotas[wireName]
    if (value !== undefined) decoded[name] = value
  }
  return decoded
}

const quotaNames = [
  ['events', 'events'],
  ['feature_flag_requests', 'featureFlagRequests'],
  ['exceptions', 'exceptions'],
  ['recordings', 'recordings'],
  ['llm_events', 'llmEvents'],
  ['survey_responses', 'surveyResponses'],
] as const
