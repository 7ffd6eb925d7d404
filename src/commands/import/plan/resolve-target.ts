// What planning asks the target: whether it answers, whether it knows the key, and which project the key is for. No event is
// sent.
// Source: docs/wire/import.md §2.1 (stage 0).

import { describeMissingAnswer } from '#commands/client/describe-missing-answer.ts'
import { resolveInstanceAddress } from '#commands/client/instance-address.ts'
import { ClientError, PrivateApi } from '#commands/client/private-api.ts'
import { readConfigOrRefuse, refuse } from '#commands/refuse.ts'
import type { Config } from '#config.ts'
import { parseObjectOrNull } from '#importer/job/job-folder.ts'
import { findMissingScopes, formatScopes, importKeyScopeList } from '#importer/job/key-scopes.ts'
import type { ImportTarget } from '#importer/job/plan.ts'
import { isUnknownPathDetail } from '#wire/wire-error.ts'
import { findProjectWithKey } from '../service/known-project.ts'
import { queryTarget } from '../service/target-api.ts'
import type { PlanOptions } from './plan-options.ts'

const timeoutMs = 15_000

/** A plan's target, and notes to print about what the target or the keys lack. */
export interface PlanTarget {
  readonly target: ImportTarget
  readonly notes: readonly string[]
  /** Whether the project stores all events without persons; false if the target could not be asked. */
  readonly isPersonless: boolean
}

type AskedTarget = Pick<PlanOptions, 'projectKey' | 'host' | 'apiHost'>

/** @returns null without a key: then the job can be rehearsed, but not sent. */
export async function resolveImportTarget(options: AskedTarget): Promise<PlanTarget | null> {
  const projectKey = findProjectKey(options)
  if (projectKey === null) return null
  const config = readConfigOrRefuse()
  const { address, api } = resolveAddresses(options, config)
  const unknown = await findKeyProblem(address, projectKey)
  if (unknown !== null) refuse(unknown.startsWith(noAnswer) ? `${unknown}. Set its URL with --host` : unknown)
  const { notes, isPersonless, ...project } = await findProject(api, projectKey, config)
  const target = { address, ...(api !== address && { apiAddress: api }), projectKey, ...project }
  return { target, notes, isPersonless }
}

/** @returns null if none was given; an empty variable counts as unset. */
export function findProjectKey({ projectKey }: AskedTarget): string | null {
  if (projectKey === '') refuse('--project-key is empty. Omit it to rehearse without a target')
  return projectKey ?? (process.env.PENNON_PROJECT_KEY || null)
}

/** @returns why the text cannot be a public key, without quoting it, since it may be a secret; null if it can. */
export function findProjectKeyProblem(key: string): string | null {
  const where = 'The project API key (phc_…) is in the project’s settings'
  if (key.startsWith('phx_')) return `that is a personal API key, a secret: set it in PENNON_PERSONAL_KEY. ${where}`
  if (key.startsWith('phs_')) return `that is a secret key of a project. ${where}`
  // A key with `/` is refused, since people easily type an address here by mistake.
  return /^[\x21-\x2e\x30-\x7e]{1,64}$/.test(key) ? null : `that is not a project API key. ${where}`
}

/** Where events are sent, and where the private API is: on a separate port if PENNON_ADMIN_PORT is set. */
function resolveAddresses({ host, apiHost }: AskedTarget, config: Config): { address: string; api: string } {
  const sent = resolveInstanceAddress(host, { ...config, adminPort: null })
  if (!sent.ok) refuse(sent.error)
  const asked = resolveInstanceAddress(apiHost ?? host, config)
  if (!asked.ok) refuse(asked.error)
  return { address: sent.value, api: asked.value }
}

/**
 * Whether the project has events that were not imported.
 * @returns null if that cannot be asked: the personal key is missing, belongs to another project, or lacks `query:read`.
 */
export async function hasLiveEvents(target: ImportTarget): Promise<boolean | null> {
  const { projectId } = target
  if (projectId === null) return null
  const query = 'SELECT event FROM events WHERE import_job_id = 0 LIMIT 1'
  const answer = await queryTarget(target, { project: projectId, timeoutMs, noKey: '' }, api =>
    api.post('/query/', { query: { kind: 'HogQLQuery', query } }),
  )
  return answer.ok && Array.isArray(answer.value.results) ? answer.value.results.length > 0 : null
}

/** The address if none is given: the instance that HOST and PORT would start here. */
export function findDefaultAddress(): string {
  return resolveAddresses({}, readConfigOrRefuse()).address
}

/** @returns what is wrong with an address that was typed; null for nothing. */
export function findAddressProblem(host: string): string | null {
  const address = resolveInstanceAddress(host, readConfigOrRefuse())
  return address.ok ? null : address.error
}

/** @returns why events cannot be sent to this address with this key; null if they can. */
export async function findTargetProblem(asked: AskedTarget & { readonly projectKey: string }): Promise<string | null> {
  return findKeyProblem(resolveAddresses(asked, readConfigOrRefuse()).address, asked.projectKey)
}

const noAnswer = 'no instance answers'

/**
 * Requests the project's public configuration, which every instance gives to clients with the key. @returns null when the
 * instance knows the key.
 */
async function findKeyProblem(address: string, projectKey: string): Promise<string | null> {
  const wrong = findProjectKeyProblem(projectKey)
  if (wrong !== null) return `the project API key cannot be used: ${wrong}. Nothing was sent`
  let response: Response
  let text: string
  try {
    const url = `${address}/array/${encodeURIComponent(projectKey)}/config`
    response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: 'manual' })
    text = await response.text()
  } catch (cause) {
    return `${noAnswer} at ${address} (${describeMissingAnswer(cause)})`
  }
  if (response.ok) return null
  if (response.status === 404 && isUnknownPathDetail((parseObjectOrNull(text) as { detail?: unknown } | null)?.detail))
    return `${address} does not accept events: it has no /array/, the client configuration. Set --host to the URL before such paths, such as http://127.0.0.1:8000, not to the port of PENNON_ADMIN_PORT. Nothing was sent`
  if ([400, 401, 403, 404].includes(response.status))
    return `${address} rejected the project API key ${projectKey} (${response.status}). Check whether it belongs to another instance or region. Nothing was sent`
  return `${address} answered ${response.status} when checking the project API key. Try again later. Nothing was sent`
}

const personlessNote =
  'The project does not process persons (person_processing_opt_out): no persons are linked, and records that only link persons are rejected.'

/**
 * Only a personal key of the same project can ask for the project's name. Without such a key, the user has to type the
 * address instead of the name to approve. A key that the instance does not know is refused now, not only when sending
 * begins.
 */
async function findProject(
  instance: string,
  projectKey: string,
  { personalKey }: Config,
): Promise<Omit<PlanTarget, 'target'> & Pick<ImportTarget, 'projectId' | 'projectName'>> {
  const unknown = { projectId: null, projectName: null, isPersonless: false }
  if (personalKey === null)
    return {
      ...unknown,
      notes: [
        `PENNON_PERSONAL_KEY is not set. Planning and rehearsing work without it, but cannot check the project's name and existing data. Sending requires a key with the scopes ${importKeyScopeList} (create one with pennon new-key where the instance runs).`,
      ],
    }
  const asking = { instance, personalKey, timeoutMs }
  const api = new PrivateApi({ ...asking, project: '' })
  const missing = await fetchMissingScopes(api)
  const missingNotes = missing === null || missing.length === 0 ? [] : [describeMissingScopes(missing)]
  if (missing?.includes('project:read') === true) return { ...unknown, notes: missingNotes }
  try {
    const project = await findProjectWithKey(api, projectKey)
    if (project === null)
      return {
        ...unknown,
        notes: [
          `PENNON_PERSONAL_KEY is a key of ${instance}, but has no access to a project with the key ${projectKey}: sending will be refused.`,
        ],
      }
    const { id, name, isPersonless } = project
    const notes = [
      ...(isPersonless ? [personlessNote] : []),
      ...(missingNotes.length > 0 ? missingNotes : await findMissingRights(new PrivateApi({ ...asking, project: id }))),
    ]
    return { projectId: id, projectName: name, isPersonless, notes }
  } catch (error) {
    if (!(error instanceof ClientError)) throw error
    if (error.status === 401) refuse(`${error.message} Nothing was sent`)
    const remedy = error.status === 404 ? ' If the private API is on another port, set its URL with --api-host.' : ''
    return { ...unknown, notes: [`The project could not be queried: ${error.message}${remedy}`] }
  }
}

/** @returns null if the instance does not say what the key may do. */
async function fetchMissingScopes(api: PrivateApi): Promise<readonly string[] | null> {
  try {
    const { scopes } = await api.ownKey()
    return Array.isArray(scopes) ? findMissingScopes(scopes.map(String)) : null
  } catch (error) {
    if (error instanceof ClientError) return null
    throw error
  }
}

function describeMissingScopes(scopes: readonly string[]): string {
  const which = `${scopes.length === 1 ? 'the scope' : 'the scopes'} ${formatScopes(scopes)}`
  return `PENNON_PERSONAL_KEY lacks ${which}, which the import needs. Scopes of a key cannot be changed: create a new key with ${importKeyScopeList} (pennon new-key, where the instance runs, creates one with all scopes).`
}

/** Tries the requests of sending and verifying. @returns a sentence for each right that the personal key lacks. */
async function findMissingRights(api: PrivateApi): Promise<readonly string[]> {
  const asked: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['import jobs', () => api.get('/import_jobs/', { limit: 1 })],
    ['stored events', () => api.post('/query/', { query: { kind: 'HogQLQuery', query: 'SELECT 1' } })],
    ['persons', () => api.get('/persons/', { limit: 1 })],
  ]
  const notes: string[] = []
  for (const [what, ask] of asked)
    try {
      await ask()
    } catch (error) {
      if (!(error instanceof ClientError)) throw error
      notes.push(`PENNON_PERSONAL_KEY may not read ${what}, which the import needs: ${error.message}`)
    }
  return notes
}
