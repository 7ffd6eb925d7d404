// Creates what the first start leaves in place: a project with its key, a link with which the first admin signs in, and a
// personal key with all scopes. Later starts find them and change nothing.

import type { Change } from '#core/author.ts'
import type { Clock } from '#ports/clock.ts'
import type { PersonalKeyStore, ProjectStore } from '#ports/state/project-store.ts'
import type { SignInLinkStore, UserStore } from '#ports/state/user-store.ts'
import { generatePersonalKey, type RandomBytes } from './generate-key.ts'
import { createProject, isProjectKey } from './manage-projects.ts'
import { inviteUser } from './manage-users.ts'
import { hashSecret } from './secret-digests.ts'

export interface FirstStartDeps {
  readonly management: Pick<ProjectStore, 'createProject' | 'updateProject' | 'deleteProject' | 'listProjects'> &
    Pick<PersonalKeyStore, 'listPersonalKeys' | 'createPersonalKey'> &
    Pick<UserStore, 'findUserByEmail' | 'listUsers'> &
    Pick<SignInLinkStore, 'createSignInLink'>
  readonly clock: Clock
  readonly newUuid: () => string
  readonly randomBytes: RandomBytes
  /** `PENNON_PROJECT_KEY`; null when a key is to be generated. */
  readonly projectKey: string | null
  /** `PENNON_PERSONAL_KEY`; null when a key is to be generated. */
  readonly personalKey: string | null
  /** Called before keys are made; never when nothing is missing. */
  readonly beforeKeys?: (() => void) | undefined
}

export interface FirstStartResult {
  /** Key of the first project; null when every project was deleted. */
  readonly projectKey: string | null
  /** Null unless this start created the key, since only its hash is stored. */
  readonly personalKey: string | null
  /** Token of the link for the first admin; null unless this start created it, since only its hash is stored. */
  readonly welcomeToken: string | null
  /** Whether someone has signed in, now or earlier. */
  readonly hasUsers: boolean
  /** `PENNON_PROJECT_KEY` names another key than the stored one, and was ignored. */
  readonly ignoredProjectKey: boolean
}

/**
 * Safe to run again after a crash at any point: it keeps what exists and creates what is missing.
 * @throws Error with a line for the operator when `PENNON_PROJECT_KEY` cannot be a project API key.
 */
export async function completeFirstStart(deps: FirstStartDeps): Promise<FirstStartResult> {
  const { management } = deps
  // The personal key is created last, so a start that finds a personal key knows that nothing is missing.
  const isFirst = (await management.listPersonalKeys({ limit: 1, offset: 0 })).count === 0
  const { results } = await management.listProjects({ limit: 1, offset: 0 })
  if (isFirst) deps.beforeKeys?.()
  const first = results[0] ?? (isFirst ? await makeProject(deps) : null)
  const projectKey = first?.apiToken ?? null
  const { count: userCount } = await management.listUsers({ limit: 1, offset: 0 })
  return {
    projectKey,
    welcomeToken: isFirst ? await makeWelcomeToken(deps) : null,
    hasUsers: userCount > 0,
    personalKey: isFirst ? await makePersonalKey(deps) : null,
    ignoredProjectKey: deps.projectKey !== null && projectKey !== null && deps.projectKey !== projectKey,
  }
}

/**
 * Refuses what `completeFirstStart` would refuse, but changes nothing.
 * @throws Error with a line for the operator when `PENNON_PROJECT_KEY` would be used but cannot be a project API key.
 */
export async function checkFirstStart(deps: Pick<FirstStartDeps, 'management' | 'projectKey'>): Promise<void> {
  const { management, projectKey } = deps
  if (projectKey === null || isProjectKey(projectKey)) return
  if ((await management.listPersonalKeys({ limit: 1, offset: 0 })).count > 0) return
  if ((await management.listProjects({ limit: 1, offset: 0 })).results.length === 0)
    throw createUnusableKeyError('invalid_token')
}

async function makeProject(deps: FirstStartDeps) {
  const created = await createProject(
    { ...deps, definitionsReady: async () => undefined },
    { name: 'Default project', ...(deps.projectKey !== null && { apiToken: deps.projectKey }) },
    createStartChange(deps),
  )
  if (created.ok) return created.value
  throw createUnusableKeyError(created.error)
}

function createUnusableKeyError(refusal: string): Error {
  return new Error(`PENNON_PROJECT_KEY cannot be used (${refusal}). Unset it to have a key generated.`)
}

const firstStartLabel = 'First start'

function createStartChange({ clock }: FirstStartDeps): Change {
  return { by: { id: null, label: firstStartLabel }, atMs: clock.nowMs() }
}

async function makeWelcomeToken(deps: FirstStartDeps): Promise<string> {
  const admin = { email: null, name: '', role: 'admin', seesPersons: true, purpose: 'welcome' } as const
  const made = await inviteUser(deps, admin, createStartChange(deps))
  if (!made.ok) throw new Error(`the first sign-in link was refused: ${made.error}`)
  return made.value.token
}

async function makePersonalKey(deps: FirstStartDeps): Promise<string> {
  const secret = deps.personalKey ?? generatePersonalKey(deps.randomBytes)
  await deps.management.createPersonalKey(
    {
      id: deps.newUuid(),
      label: firstStartLabel,
      scopes: ['*'],
      scopedProjectIds: [],
      lastUsedAtMs: null,
      secretHash: hashSecret(secret),
    },
    createStartChange(deps),
  )
  return secret
}
