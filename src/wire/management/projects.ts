// Projects. A PostHog "project" and its "environment" (team) are one thing here.

import Type from 'typebox'
import { getOwnValue, type JsonObject } from '#core/json.ts'
import {
  type IngestionSettings,
  newCookielessMode,
  type Project,
  projectResource,
  type Quotas,
  type SecretKeys,
} from '#core/project.ts'
import { readFields } from '#core/resource.ts'
import { err, type Result } from '#core/result.ts'
import { decodeClientSettings } from './client-settings.ts'
import { buildBodySchemas, buildItemSchema, encodeItem } from './resource-json.ts'
import { nullable, uuidSchema } from './shapes.ts'

const secretKey = nullable(Type.String({ description: 'Masked, except in the response that creates it.' }))

export const projectSchema = buildItemSchema(projectResource, {
  organization: uuidSchema,
  secret_api_token: secretKey,
  secret_api_token_backup: secretKey,
  person_on_events_querying_enabled: Type.Literal(true, {
    description: "Queries use a person's properties at the time of the event.",
  }),
})
export const createProjectSchema = buildBodySchemas(projectResource, {
  api_token: Type.Optional(
    Type.String({ description: 'A custom project API key: printable ASCII, at most 64 bytes, unique.' }),
  ),
}).create
export const updateProjectSchema = buildBodySchemas(projectResource, {}).update

/** The one organization of an instance. Nothing is stored about it; clients only need an id. */
export const organizationId = '00000000-0000-4000-8000-000000000001'

export function encodeProject(project: Project, secretKeys: SecretKeys): object {
  return encodeItem(projectResource, project, {
    organization: organizationId,
    secret_api_token: secretKeys.primary,
    secret_api_token_backup: secretKeys.backup,
    person_on_events_querying_enabled: true,
  })
}

export type ProjectChanges = Partial<Omit<Project, 'quotas' | 'ingestion'>> & {
  readonly quotas?: Partial<Quotas>
  readonly ingestion?: Partial<IngestionSettings>
}

/** The fields that a body has, under the core's names. */
export function decodeProject(body: object): ProjectChanges {
  const fields = readFields(projectResource, body as JsonObject, () => err(null)) as Result<ProjectChanges, null>
  if (!fields.ok) throw new Error('no field of a project is a time')
  const { ingestion, clientSettings, ...others } = fields.value
  return {
    ...others,
    ...(ingestion === undefined ? {} : { ingestion: normalizeIngestion(ingestion, body as JsonObject) }),
    ...(clientSettings === undefined ? {} : { clientSettings: decodeClientSettings(clientSettings) }),
  }
}

function normalizeIngestion(sent: Partial<IngestionSettings>, body: JsonObject): Partial<IngestionSettings> {
  const isModeNull = getOwnValue(body, 'cookieless_server_hash_mode') === null
  return {
    ...sent,
    ...(sent.dropEventsOlderThanSeconds === 0 ? { dropEventsOlderThanSeconds: null } : {}),
    ...(isModeNull ? { cookielessMode: newCookielessMode } : {}),
  }
}
