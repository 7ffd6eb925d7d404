// Shared by answers that stay open: their headers, and when the key that asked for one may no longer read it.

import { type Caller, holdsScope, mayUseProject, readBearerSecret } from './authenticate.ts'
import type { ManagementDeps } from './deps.ts'
import type { ProjectCall } from './endpoint.ts'
import type { QuerySpec } from './query-params.ts'

/** Headers of an answer that is sent piece by piece. They stop nginx from buffering it in memory or temporary files. */
export const streamHeaders = { 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' } as const

export const accessEndDetails = {
  access_ended: 'The key was deleted, or can no longer read this project.',
  project_deleted: 'The project was deleted.',
} as const
export type AccessEnd = keyof typeof accessEndDetails

/** Why the caller may no longer read the answer; null while it may. @param scopes the endpoint's, separated by spaces. */
export async function findAccessEnd(
  { keyCheck, servedProject }: Pick<ManagementDeps, 'keyCheck' | 'servedProject'>,
  { request, caller, project }: Pick<ProjectCall<QuerySpec, unknown>, 'request' | 'caller' | 'project'>,
  scopes: string,
  mayRead: (key: Pick<Caller, 'scopes'>) => boolean = () => true,
): Promise<AccessEnd | null> {
  const key = await keyCheck.find(readBearerSecret(request)!)
  const isAllowed =
    key !== null &&
    key.id === caller.id &&
    scopes.split(' ').every(scope => holdsScope(key, scope)) &&
    mayRead(key) &&
    mayUseProject(key, project.id)
  if (!isAllowed) return 'access_ended'
  return servedProject(project.id) === null ? 'project_deleted' : null
}
