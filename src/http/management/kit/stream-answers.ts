// What answers that stay open share: their headers, and the check of whether the caller's key may still read the answer.

import { type Caller, type CallerChecks, findCallerAgain, hasScope, mayUseProject } from './authenticate.ts'
import type { ManagementDeps } from './deps.ts'
import type { ProjectCall } from './endpoint.ts'
import type { QuerySpec } from './query-params.ts'

/** Headers of an answer that is sent bit by bit. They keep nginx from buffering the answer in memory or temporary files. */
export const streamHeaders = { 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' } as const

export const accessEndDetails = {
  access_ended: 'The key or session has ended, or can no longer read this project.',
  project_deleted: 'The project was deleted.',
} as const
export type AccessEndReason = keyof typeof accessEndDetails

/**
 * Why the caller may no longer read the answer; null while it may. @param scopes the endpoint's scopes, separated by
 * spaces.
 */
export async function findAccessLossReason(
  deps: CallerChecks & Pick<ManagementDeps, 'servedProject'>,
  { request, caller, project }: Pick<ProjectCall<QuerySpec, unknown>, 'request' | 'caller' | 'project'>,
  scopes: string,
  mayRead: (now: Pick<Caller, 'scopes'>) => boolean = () => true,
): Promise<AccessEndReason | null> {
  const now = await findCallerAgain(deps, request, caller)
  const isAllowed =
    now !== null &&
    scopes.split(' ').every(scope => hasScope(now, scope)) &&
    mayRead(now) &&
    mayUseProject(now, project.id)
  if (!isAllowed) return 'access_ended'
  return deps.servedProject(project.id) === null ? 'project_deleted' : null
}
