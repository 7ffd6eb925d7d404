// What a plan asks of its target: whether it is there, whether it knows the key, and whose key it is. Nothing is sent.
// Source: docs/wire/import.md §2.1 (stage 0).

import { type Config, readConfig } from '#config.ts'
import type { ImportTarget } from '#importer/job/plan.ts'
import { instanceAddress } from '../client/instance-address.ts'
import { ClientError, PrivateApi } from '../client/private-api.ts'
import { refuse } from '../refuse.ts'
import type { PlanOptions } from './plan-options.ts'

const timeoutMs = 15_000

/** @returns null without a key: then the job can be rehearsed, but not sent. */
export async function askTarget(options: PlanOptions): Promise<ImportTarget | null> {
  const projectKey = options.projectKey ?? process.env.PENNON_PROJECT_KEY
  if (projectKey === undefined) return null
  const read = readConfig(process.env)
  if (!read.ok) refuse(read.error)
  const address = instanceAddress(options.host, read.value, '--host')
  if (!address.ok) refuse(address.error)
  await checkKey(address.value, projectKey)
  return { address: address.value, projectKey, ...(await projectOf(address.value, projectKey, read.value)) }
}

/**
 * Whether the project has events that no import brought.
 * @returns null where that cannot be asked: the personal key is missing, another project's, or without `query:read`.
 */
export async function hasLiveEvents({ address, projectId }: ImportTarget): Promise<boolean | null> {
  const read = readConfig(process.env)
  if (!read.ok || read.value.personalKey === null || projectId === null) return null
  const { personalKey } = read.value
  const query = 'SELECT event FROM events WHERE import_job_id = 0 LIMIT 1'
  try {
    const api = new PrivateApi({ instance: address, personalKey, project: projectId, timeoutMs })
    const { results } = await api.post('/query/', { query: { kind: 'HogQLQuery', query } })
    return Array.isArray(results) ? results.length > 0 : null
  } catch (error) {
    if (error instanceof ClientError) return null
    throw error
  }
}

/** Asks for the public configuration of the project, which every instance gives to anybody with the key. */
async function checkKey(address: string, projectKey: string): Promise<void> {
  let response: Response
  try {
    const url = `${address}/array/${encodeURIComponent(projectKey)}/config`
    response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: 'manual' })
    await response.arrayBuffer()
  } catch (cause) {
    const why =
      (cause as Error).cause instanceof Error ? ((cause as Error).cause as Error).message : (cause as Error).message
    refuse(`no instance answers at ${address} (${why}). Say where it is with --host`)
  }
  if (response.ok) return
  if ([400, 401, 403, 404].includes(response.status))
    refuse(
      `${address} does not know the project key ${projectKey} (${response.status}). Is it the key of another instance or region? Nothing was sent`,
    )
  refuse(
    `${address} answers ${response.status} to the question for the project's key. Try again later. Nothing was sent`,
  )
}

/** Told only to a personal key of the same project; without it, approving asks for the address instead of the name. */
async function projectOf(
  instance: string,
  projectKey: string,
  { personalKey }: Config,
): Promise<Pick<ImportTarget, 'projectId' | 'projectName'>> {
  const unknown = { projectId: null, projectName: null }
  if (personalKey === null) return unknown
  try {
    const project = await new PrivateApi({ instance, personalKey, project: '@current', timeoutMs }).get('/')
    if (project.api_token !== projectKey) return unknown
    return { projectId: String(project.id), projectName: typeof project.name === 'string' ? project.name : null }
  } catch (error) {
    if (error instanceof ClientError) return unknown
    throw error
  }
}
