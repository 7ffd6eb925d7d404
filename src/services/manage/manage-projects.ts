// Creates, changes and deletes projects: checks names, time zones and project API keys, and fills in defaults.

import type { Change } from '#core/author.ts'
import {
  type IngestionSettings,
  newCookielessMode,
  noIngestionSettings,
  noQuotas,
  type Project,
  projectResource,
  type Quotas,
} from '#core/project.ts'
import { buildInitialFields } from '#core/resource.ts'
import { err, type Result } from '#core/result.ts'
import type { ProjectStore } from '#ports/state/project-store.ts'
import { waitUntilServed } from './definition-writes.ts'
import { generateProjectKey, type RandomBytes } from './generate-key.ts'

export interface ManageProjectsDeps {
  readonly management: Pick<ProjectStore, 'createProject' | 'updateProject' | 'deleteProject'>
  readonly definitionsReady: (revision: number) => Promise<void>
  readonly newUuid: () => string
  readonly randomBytes: RandomBytes
}

export type ProjectSettings = Partial<
  Pick<Project, 'name' | 'timezone' | 'anonymizeIps' | 'geoipEnabled' | 'propertyMatchingVersion' | 'clientSettings'>
> & { readonly quotas?: Partial<Quotas>; readonly ingestion?: Partial<IngestionSettings> }

export type ProjectRefusal = 'not_found' | 'token_taken' | 'invalid_token' | 'unknown_timezone' | 'blank_name'

/**
 * The tokens that capture accepts: 1–64 printable ASCII characters without white space, except for secret keys. Source:
 * docs/wire/ingestion.md 2.4.
 */
const tokenForm = /^(?!ph[xs]_)[!-~]{1,64}$/
/** A slash, question mark, hash or percent sign would end or change the token in `/array/<token>/`. */
const tokenBreakers = /[/?#%]/

/** Whether a project may have this key. */
export function isProjectKey(token: string): boolean {
  return tokenForm.test(token) && !tokenBreakers.test(token)
}

export async function createProject(
  deps: ManageProjectsDeps,
  input: ProjectSettings & { readonly name: string; readonly apiToken?: string },
  change: Change,
): Promise<Result<Project, ProjectRefusal>> {
  const { apiToken = generateProjectKey(deps.randomBytes), quotas, ingestion, ...settings } = input
  if (!isProjectKey(apiToken)) return err('invalid_token')
  const refusal = findSettingsRefusal(settings)
  if (refusal !== null) return err(refusal)
  const written = await deps.management.createProject(
    {
      ...(buildInitialFields(projectResource) as Pick<
        Project,
        'timezone' | 'anonymizeIps' | 'geoipEnabled' | 'propertyMatchingVersion' | 'clientSettings'
      >),
      ...settings,
      uuid: deps.newUuid(),
      apiToken,
      quotas: { ...noQuotas, ...quotas },
      ingestion: { ...noIngestionSettings, cookielessMode: newCookielessMode, ...ingestion },
    },
    change,
  )
  return waitUntilServed(deps, written)
}

/** Absent quotas, ingestion settings and client settings stay unchanged. */
export async function updateProject(
  deps: ManageProjectsDeps,
  projectId: number,
  settings: ProjectSettings,
  change: Change,
): Promise<Result<Project, ProjectRefusal>> {
  const refusal = findSettingsRefusal(settings)
  return refusal === null ? saveProject(deps, projectId, settings, change) : err(refusal)
}

/** Gives the project a new project API key; the old one stops working at once. */
export function resetProjectKey(
  deps: ManageProjectsDeps,
  projectId: number,
  change: Change,
): Promise<Result<Project, ProjectRefusal>> {
  return saveProject(deps, projectId, { apiToken: generateProjectKey(deps.randomBytes) }, change)
}

export async function deleteProject(
  deps: ManageProjectsDeps,
  projectId: number,
  change: Change,
): Promise<Result<null, 'not_found'>> {
  return waitUntilServed(deps, await deps.management.deleteProject(projectId, change))
}

async function saveProject(
  deps: ManageProjectsDeps,
  projectId: number,
  patch: Parameters<ProjectStore['updateProject']>[1],
  change: Change,
): Promise<Result<Project, ProjectRefusal>> {
  return waitUntilServed(deps, await deps.management.updateProject(projectId, patch, change))
}

function findSettingsRefusal(settings: ProjectSettings): ProjectRefusal | null {
  if (settings.name !== undefined && settings.name.trim() === '') return 'blank_name'
  if (settings.timezone !== undefined && !isTimezone(settings.timezone)) return 'unknown_timezone'
  return null
}

/** Whether the name is an IANA time zone. A bare offset (`+01:00`) is not one: it has no summer time. */
function isTimezone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false // Intl throws RangeError for an unknown time zone
  }
}
