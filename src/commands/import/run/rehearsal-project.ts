// Finds the project of `pennon import run --rehearsal-project` and asks the user to confirm it: events that are sent there
// are part of it at once. Source: docs/wire/import.md §2.7, §2.11 (guards).

import { ClientError, PrivateApi } from '#commands/client/private-api.ts'
import { refuse } from '#commands/refuse.ts'
import { readConfig } from '#config.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { findApiAddress } from '#importer/job/plan.ts'
import { rehearsalMark } from '#importer/send/sampled-job.ts'
import { confirmTarget } from '../messages/confirm-target.ts'
import { quotePath } from '../messages/next-line.ts'
import { findProjectKeyProblem } from '../plan/ask-target.ts'
import { parseShare } from '../plan/plan-options.ts'
import { findProjectWithKey, type KnownProject } from '../service/known-project.ts'
import { type JobOfFolder, recordedTarget } from '../service/recorded-target.ts'

/** As commander gives them. */
export interface RehearsalProjectOptions {
  /** Public key of a project for tests. */
  readonly rehearsalProject?: string
  readonly share?: string
  /** The name of that project, given as an option instead of typed. */
  readonly rehearsalProjectName?: string
}

export interface RehearsalRequest {
  readonly projectKey: string
  /** The share of the persons, more than 0 and at most 1. */
  readonly share: number
  readonly name: string | undefined
}

const timeoutMs = 15_000

/** @returns null for a run that sends nothing to another project. */
export function parseRehearsalOptions(options: RehearsalProjectOptions): RehearsalRequest | null {
  const { rehearsalProject, share, rehearsalProjectName: name } = options
  if (rehearsalProject === undefined) {
    if (share !== undefined) refuse('--share requires --rehearsal-project')
    if (name !== undefined) refuse('--rehearsal-project-name requires --rehearsal-project')
    return null
  }
  const given = parseShare(share ?? '1%', '--share')
  if (given === 0) refuse(`--share must be more than 0, such as 1% or 0.01, not ${share}`)
  const problem = findProjectKeyProblem(rehearsalProject)
  if (problem !== null) refuse(problem)
  return { projectKey: rehearsalProject, share: given, name }
}

/**
 * Finds the project, and asks for its name if it has events from outside rehearsals, or if that is unknown.
 * @param path of the job's folder as the user wrote it.
 * @returns its id.
 * @throws JobStopped if it is the target itself, or the personal key does not see it.
 */
export async function agreeOnProject(
  job: JobOfFolder,
  { projectKey, name }: RehearsalRequest,
  path: string,
): Promise<string> {
  if (job.plan.target === null)
    throw new JobStopped('the plan has no target, so the URL of the rehearsal project is unknown')
  const target = recordedTarget(job)
  if (projectKey === target.projectKey) throw createTargetRefusal()
  const { project, hasOthers } = await findRehearsalProject(findApiAddress(target), projectKey)
  if (project.id === target.projectId) throw createTargetRefusal()
  // A name that was given is always checked.
  if (hasOthers !== false || name !== undefined)
    await confirmTarget(project.name ?? projectKey, name, {
      ...{ option: '--rehearsal-project-name', whose: 'rehearsal project' },
      what: 'send to it',
      scripted: `pennon import run ${quotePath(path)} --rehearsal-project ${projectKey}`,
      reason:
        hasOthers === null
          ? 'Cannot check whether the rehearsal project has its own events. Events sent there become visible immediately.'
          : 'The rehearsal project has events that do not come from a rehearsal. Events sent there become visible immediately.',
    })
  return project.id
}

function createTargetRefusal(): JobStopped {
  return new JobStopped('--rehearsal-project is the target itself; use the key of a test project')
}

/** Finds the project among those that the personal key may see. */
async function findRehearsalProject(
  instance: string,
  projectKey: string,
): Promise<{ readonly project: KnownProject; readonly hasOthers: boolean | null }> {
  const read = readConfig(process.env)
  if (!read.ok) throw new JobStopped(read.error)
  const personalKey = read.value.personalKey ?? ''
  let reason = ''
  try {
    const project = await findProjectWithKey(instance, personalKey, projectKey)
    if (project !== null)
      return {
        project,
        hasOthers: await hasOtherEvents(new PrivateApi({ instance, personalKey, project: project.id, timeoutMs })),
      }
  } catch (error) {
    if (!(error instanceof ClientError)) throw error
    reason = `: ${error.message}`
  }
  throw new JobStopped(
    `the key in PENNON_PERSONAL_KEY has no access to a project with the key ${projectKey} at ${instance}${reason}`,
  )
}

/** @returns null if that is unknown, such as without the scope `query:read`. */
async function hasOtherEvents(api: PrivateApi): Promise<boolean | null> {
  const mark = "JSONExtractString(properties, '$import_job_id')"
  const query = `SELECT event FROM events WHERE NOT endsWith(${mark}, {rehearsal}) LIMIT 1`
  const values = { rehearsal: rehearsalMark }
  try {
    const { results } = await api.post('/query/', { query: { kind: 'HogQLQuery', query, values } })
    return Array.isArray(results) ? results.length > 0 : null
  } catch (error) {
    if (error instanceof ClientError) return null
    throw error
  }
}
