// Finds the project of a public key by a personal key: when an import is planned, or later if there was no personal key at
// that time.

import type { PrivateApi } from '#commands/client/private-api.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { type ImportPlan, type ImportTarget, writePlan } from '#importer/job/plan.ts'
import type { ServiceApi } from '#importer/send/service-api.ts'
import { quotePath } from '../messages/print.ts'
import { queryJobTarget } from './target-api.ts'

const timeoutMs = 15_000

/** A project of the target instance. */
export interface KnownProject {
  readonly id: string
  readonly name: string | null
  /** Whether the project stores all events without persons. */
  readonly isPersonless: boolean
}

/**
 * @param api a client that is not limited to one project. @returns null if the personal key sees no project with this
 * public key. @throws ClientError
 */
export async function findProjectWithKey(api: PrivateApi, projectKey: string): Promise<KnownProject | null> {
  // The key may see several projects, so the first one need not be the right one.
  const found = await api.list('')
  const project = found.find(({ api_token }) => api_token === projectKey)
  return project === undefined
    ? null
    : {
        id: String(project.id),
        name: typeof project.name === 'string' ? project.name : null,
        isPersonless: project.person_processing_opt_out === true,
      }
}

/**
 * Adds the id and the name of its project to the plan in the folder, if they were unknown when the job was planned. If the
 * service does not reveal them, the plan is unchanged.
 * @throws JobStopped if the project stores no persons: the rehearsal assumed that it does, and must run again.
 */
export async function addKnownProjectToPlan(folder: JobFolder, plan: ImportPlan): Promise<ImportPlan> {
  const { target, limits } = plan
  if (target === null || target.projectId !== null) return plan
  const found = await queryJobTarget({ folder, plan }, { project: '', timeoutMs, noKey: '' }, api =>
    findProjectWithKey(api, target.projectKey),
  )
  const project = found.ok ? found.value : null
  if (project === null) return plan
  const known = { ...plan, target: { ...target, projectId: project.id, projectName: project.name } }
  if (!project.isPersonless || limits.isPersonless === true) {
    writePlan(folder, known)
    return known
  }
  writePlan(folder, { ...known, limits: { ...limits, isPersonless: true } })
  throw new JobStopped(
    `the project does not process persons (person_processing_opt_out), which was unknown when this was planned. To rehearse it again: pennon import run ${quotePath(folder.path)}`,
  )
}

/**
 * Called before a job is created in the personal key's project, for a plan that was approved before its project was known.
 * @param at the folder of the job as a shell takes it.
 * @throws JobStopped if the public key is for another project.
 */
export async function checkTargetIsOwnProject(
  at: string,
  { projectId, projectKey }: ImportTarget,
  api: ServiceApi,
): Promise<void> {
  if (projectId !== null) return
  const { api_token: token, name } = await api.call('GET', '/')
  if (typeof token !== 'string' || token === projectKey) return
  throw new JobStopped(
    `the project with the key ${projectKey} was unknown when this was approved, and the personal key's project, ${String(name)}, has another key. Look it up, then approve again: pennon import run ${at} --rehearse-again`,
    {
      command: 'pennon import run FOLDER --rehearse-again',
      why: 'look up the project of the key; then approve again',
    },
  )
}
