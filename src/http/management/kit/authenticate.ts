// Authenticates and authorizes callers of the private API: `Authorization: Bearer phx_…` or the cookie of a session, scopes,
// and the projects a key is limited to. The route table names the scope of each route; handlers check whether a project
// exists.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { PersonalKey } from '#core/personal-key.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { SignedIn } from '#core/users/session.ts'
import { listScopesOfUser, toUserAuthor } from '#core/users/user.ts'
import { PortError } from '#ports/port-error.ts'
import { isSecretKey } from '#services/manage/generate-key.ts'
import { type PersonalKeyCheck, personalKeyPrefix } from '#services/manage/personal-key-check.ts'
import type { SessionCheck } from '#services/manage/session-check.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import { corsMethods } from '../../shared/cors.ts'
import { type Route, sendError } from '../../shared/route.ts'
import type { LogStateOutage } from '../../shared/state-outage.ts'
import { stateUnavailable } from './answers.ts'
import type { GetBaseUrl } from './base-url.ts'
import {
  findCrossSiteError,
  formatSessionCookie,
  readSessionSecrets,
  type SessionCookieDeps,
} from './session-cookie.ts'

/** What finds the caller of a request. */
export interface CallerChecks extends SessionCookieDeps {
  readonly keyCheck: PersonalKeyCheck
  readonly sessionCheck: SessionCheck
}

export interface AuthorizerDeps extends CallerChecks {
  readonly addressBase: GetBaseUrl
  /** `operator` routes need a key even from this machine. */
  readonly operatorsNeedKey: boolean
  readonly noteStateAway: LogStateOutage
}

/** Makes the `authorize` of `createHttpServer`. It answers the request itself when it refuses. */
export function createAuthorizer(
  deps: AuthorizerDeps,
): (route: Route, request: FastifyRequest, reply: FastifyReply) => Promise<boolean> {
  return async (route, request, reply) => {
    try {
      const refusal = await findAccessError(deps, route, request)
      // Otherwise the browser would send the cookie of the ended session for up to 30 days.
      if (refusal === sessionEnded) reply.header('set-cookie', formatSessionCookie(deps, request, null))
      if (refusal !== null) refuseCaller(reply, refusal)
      return refusal === null
    } catch (error) {
      if (!(error instanceof PortError)) throw error
      deps.noteStateAway(error, request)
      refuseCaller(reply, stateUnavailable)
      return false
    }
  }
}

interface AnyCaller {
  readonly id: string
  readonly label: string
  /** `*`, or scopes such as `feature_flag:read`. */
  readonly scopes: readonly string[]
  /** Ids of the projects that the caller is limited to; empty means all. */
  readonly scopedProjectIds: readonly number[]
}

/** Who sends a request, and what it may do: a personal API key, or a person who signed in. */
export type Caller =
  | (AnyCaller & { readonly kind: 'key' })
  | (AnyCaller & { readonly kind: 'person'; readonly email?: string; readonly signedIn: SignedIn })

function toKeyCaller({ id, label, scopes, scopedProjectIds }: PersonalKey): Caller {
  return { kind: 'key', id, label, scopes, scopedProjectIds }
}

function toPersonCaller(signedIn: SignedIn): Caller {
  const author = { ...toUserAuthor(signedIn.user), id: signedIn.user.id }
  return { kind: 'person', ...author, scopes: listScopesOfUser(signedIn.user), scopedProjectIds: [], signedIn }
}

/** The caller as it is now, for an answer that stays open; null when its key or session ended. */
export async function findCallerAgain(
  deps: CallerChecks,
  request: FastifyRequest,
  caller: Caller,
): Promise<Caller | null> {
  if (caller.kind === 'key') {
    const key = await deps.keyCheck.find(readBearerSecret(request)!)
    return key?.id === caller.id ? toKeyCaller(key) : null
  }
  const found = await findOwnSession(deps, request)
  return found.ok ? toPersonCaller(found.value) : null
}

/**
 * The session of the request's cookies. Without one the error is null: no cookie. Cookies of two sessions are refused, since
 * another host of the domain may have set one of them, and ended ones are passed over.
 */
export async function findOwnSession(
  deps: Omit<CallerChecks, 'keyCheck'>,
  request: FastifyRequest,
): Promise<Result<SignedIn, WireError | null>> {
  const secrets = readSessionSecrets(deps, request)
  if (secrets.size > sessionCookiesMax) return err(severalSessions)
  let found: SignedIn | null = null
  for (const secret of secrets) {
    const signedIn = await deps.sessionCheck.find(secret)
    if (signedIn !== null && found !== null) return err(severalSessions)
    found ??= signedIn
  }
  if (found !== null) return ok(found)
  return err(secrets.size === 0 ? null : sessionEnded)
}

/** Each costs a look-up in the state. */
const sessionCookiesMax = 5

const callers = new WeakMap<FastifyRequest, Caller>()

/** @throws when the request was not authorized. */
export function readCaller(request: FastifyRequest): Caller {
  const caller = callers.get(request)
  if (caller === undefined) throw new Error('the caller of an unauthorized request was requested')
  return caller
}

/** Whether a caller holds a scope: by name, by `*`, or by the write scope that includes it. Source: PostHog's scopes. */
export function hasScope(caller: Pick<Caller, 'scopes'>, scope: string): boolean {
  if (scope === 'any' || caller.scopes.includes('*') || caller.scopes.includes(scope)) return true
  return scope.endsWith(':read') && caller.scopes.includes(`${scope.slice(0, -':read'.length)}:write`)
}

/** Whether a caller is limited to some projects. */
export function isLimitedToProjects(caller: Pick<Caller, 'scopedProjectIds'>): boolean {
  return caller.scopedProjectIds.length > 0
}

/** Whether a caller may see a project. */
export function mayUseProject(caller: Pick<Caller, 'scopedProjectIds'>, projectId: number): boolean {
  return !isLimitedToProjects(caller) || caller.scopedProjectIds.includes(projectId)
}

async function findAccessError(deps: AuthorizerDeps, route: Route, request: FastifyRequest): Promise<WireError | null> {
  const secret = readBearerSecret(request)
  // Checked before the key itself: a key in a URL ends up in the logs of every server on the way.
  if (hasKeyInQuery(request)) return keyInQuery
  let caller: Caller
  if (secret !== null) {
    const key = await deps.keyCheck.find(secret)
    if (key === null) return secret.startsWith(personalKeyPrefix) ? unknownKey : otherKindOfKey
    caller = toKeyCaller(key)
  } else {
    if (request.headers.authorization?.startsWith(personalKeyPrefix)) return withoutBearer
    // Pages of other sites may call the other groups, with the cookies of their users.
    const isForPeople = corsMethods[route.group] === null
    if (!isForPeople || readSessionSecrets(deps, request).size === 0) {
      if (route.access !== 'operator') return notAuthenticated
      return !deps.operatorsNeedKey && isLocalPeer(request) ? null : operatorUnknown
    }
    const crossSite = findCrossSiteError(request, deps.addressBase)
    if (crossSite !== null) return crossSite
    const found = await findOwnSession(deps, request)
    if (!found.ok) return found.error
    caller = toPersonCaller(found.value)
  }
  const lacking = listNeededScopes(route, caller).find(one => !hasScope(caller, one))
  if (lacking !== undefined)
    return caller.kind === 'key' ? createMissingScopeError(lacking) : createMissingRightError(caller.signedIn, lacking)
  const { projectId } = request.params as { projectId?: string }
  if (projectId !== undefined && /^\d+$/.test(projectId) && !mayUseProject(caller, Number(projectId))) {
    return otherProject
  }
  callers.set(request, caller)
  return null
}

function listNeededScopes(route: Route, caller: Caller): readonly string[] {
  if (caller.kind === 'person' && route.scopeOfPersons !== undefined) return route.scopeOfPersons.split(' ')
  if (route.scope !== undefined) return route.scope.split(' ')
  return [route.access === 'operator' && caller.kind === 'key' ? 'any' : '*']
}

export function readBearerSecret(request: FastifyRequest): string | null {
  const match = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')
  return match === null ? null : match[1]!
}

export function hasKeyInQuery(request: FastifyRequest): boolean {
  for (const [name, value] of Object.entries(request.query as Record<string, string | string[]>)) {
    if (name === 'personal_api_key') return true
    if ([value].flat().some(isSecretKey)) return true
  }
  return false
}

const forwardingHeaders = ['forwarded', 'x-real-ip', 'via', 'x-client-ip', 'true-client-ip', 'cf-connecting-ip']

/**
 * Whether the peer is a process on this machine that acts for itself, neither a proxy nor a page. A proxy adds a header or,
 * like nginx by default, speaks HTTP/1.0. A page names its origin or, when its domain was pointed here (DNS rebinding),
 * sends that domain as the host.
 */
function isLocalPeer({ raw: { headers, httpVersion, socket } }: FastifyRequest): boolean {
  const address = socket.remoteAddress ?? ''
  const isLoopback = /^(::ffff:)?127\./.test(address) || address === '::1'
  if (!isLoopback || httpVersion === '1.0' || headers.origin !== undefined) return false
  if (!/^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i.test(headers.host ?? '')) return false
  return !Object.keys(headers).some(name => forwardingHeaders.includes(name) || name.startsWith('x-forwarded-'))
}

export function refuseCaller(reply: FastifyReply, error: WireError): void {
  if (error.status === 401) reply.header('www-authenticate', 'Bearer realm="api"')
  if (error.status === 503) reply.header('retry-after', '1')
  sendError(reply, error)
}

const notAuthenticated = wireError(
  401,
  'not_authenticated',
  'Authentication credentials were not provided. Send a personal API key: Authorization: Bearer phx_…',
)
const operatorUnknown = wireError(
  401,
  'not_authenticated',
  'Send a personal API key: Authorization: Bearer phx_… Without a key, only direct requests from this machine to http://127.0.0.1 or http://localhost are answered, without a proxy, and only if PENNON_METRICS_REQUIRE_KEY is not set.',
)
const withoutBearer = wireError(
  401,
  'not_authenticated',
  'The Authorization header lacks the word Bearer before the key. Send Authorization: Bearer phx_…',
)
export const keyInQuery = wireError(
  401,
  'not_authenticated',
  'Secret keys are not accepted in URLs, which end up in logs. Send the key as a header: Authorization: Bearer phx_…',
)
/** Stable, since pages then ask to sign in again. */
export const sessionEnded = wireError(401, 'session_ended', 'The session has ended. Sign in again.')
const severalSessions = wireError(
  403,
  'several_sessions',
  'The browser sent the cookies of several sessions. Remove the cookies of this host and of its domain, then sign in.',
)
const unknownKey = wireError(401, 'not_authenticated', 'This personal API key is unknown or was deleted.')
const otherKindOfKey = wireError(
  401,
  'not_authenticated',
  'Not a personal API key, which starts with phx_. A project API key works for flags and capture, not for the private API.',
)
const otherProject = wireError(403, 'permission_denied', 'This personal API key has no access to this project.')

/** @param reason why this request needs the scope, if only some requests to a route do. */
export function createMissingScopeError(scope: string, reason = ''): WireError {
  return wireError(403, 'permission_denied', `This personal API key lacks the scope '${scope}'. ${reason}`.trimEnd())
}

function createMissingRightError({ user }: SignedIn, scope: string): WireError {
  const what =
    scope === '*' ? 'may not do this: only an admin may' : `lacks the scope '${scope}'. An admin can change it`
  return wireError(403, 'permission_denied', `Your role, ${user.role}, ${what}.`)
}
