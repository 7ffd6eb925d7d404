// Signing in and out, and what is a person's own: their session, name and password. Sign-in is open, and every attempt is
// counted before it is checked.

import type { FastifyRequest } from 'fastify'
import type { Static, TSchema } from 'typebox'
import type { SignedIn } from '#core/users/session.ts'
import { toUserAuthor } from '#core/users/user.ts'
import { changeOwnUser, checkLink, endSessions, type NewSignIn, signIn, spendLink } from '#services/manage/sign-in.ts'
import {
  accountSchema,
  changeOwnUserSchema,
  checkedLinkSchema,
  checkLinkSchema,
  encodeAccount,
  encodeCheckedLink,
  encodeSignedIn,
  encodeUserSession,
  signedInSchema,
  signInSchema,
  spendLinkSchema,
  userSessionSchema,
} from '#wire/management/sessions.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import { type Answer, answer, createPermissionDeniedError, noContent, notFoundHere, refusal } from './kit/answers.ts'
import { type Caller, findOwnSession, readBearerSecret, sessionEnded } from './kit/authenticate.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type Call, type InstanceEndpoint, instanceRoutes, type ManagementRoute, openRoutes } from './kit/endpoint.ts'
import { answerCountedList, encodeObjects } from './kit/list-answers.ts'
import { pageParams, type QuerySpec } from './kit/query-params.ts'
import { formatSessionCookie } from './kit/session-cookie.ts'
import { readSignInOrigin, refuseSignIn } from './sign-in-answers.ts'
import { listProjectSummaries } from './users.ts'

/** More than the longest password and name take. */
const bodyBytesMax = 16_384
const tag = 'session'

export function sessionRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...openRoutes(deps, {
      ...{ route: 'POST /api/session', id: 'session_create', tag, bodyBytesMax },
      summary: 'Sign in with e-mail address and password. The answer sets the cookie of the session.',
      body: signInSchema,
      success: { status: 200, schema: signedInSchema },
      handle: async call => {
        const signedIn = await signIn(deps, call.body, readSignInOrigin(deps, call.request))
        return signedIn.ok ? answerNewSession(deps, call.request, signedIn.value) : refuseSignIn(signedIn.error)
      },
    }),
    ...openRoutes(deps, {
      ...{ route: 'POST /api/session/link/check', id: 'session_link_check', tag, bodyBytesMax },
      summary: 'What a link is for, without using it up.',
      body: checkLinkSchema,
      success: { status: 200, schema: checkedLinkSchema },
      handle: async ({ request, body }) => {
        const checked = await checkLink(deps, body.token, readSignInOrigin(deps, request))
        if (!checked.ok) return refuseSignIn(checked.error)
        return answer(200, encodeCheckedLink(checked.value.link, checked.value.user))
      },
    }),
    ...openRoutes(deps, {
      ...{ route: 'POST /api/session/link', id: 'session_link_create', tag, bodyBytesMax },
      summary: 'Sign in with a link, which works once: creates or changes its user. The answer sets the cookie.',
      body: spendLinkSchema,
      success: { status: 200, schema: signedInSchema },
      handle: async call => {
        const { token, ...given } = call.body
        const spent = await spendLink(deps, token, given, readSignInOrigin(deps, call.request))
        return spent.ok ? answerNewSession(deps, call.request, spent.value) : refuseSignIn(spent.error)
      },
    }),
    ...personRoutes(deps, {
      route: 'GET /api/session',
      id: 'session_retrieve',
      summary: 'Get the own session: the user, their role and scopes, and the projects.',
      success: { status: 200, schema: signedInSchema },
      handle: async ({ request, caller }) =>
        answer(200, encodeSignedIn(caller.signedIn, await describeInstance(deps, request, caller))),
    }),
    ...openRoutes(deps, {
      ...{ route: 'DELETE /api/session', id: 'session_destroy', tag },
      summary: 'Sign out: end the own session, if it has not ended, and remove its cookie.',
      success: { status: 204 },
      handle: async ({ request }) => {
        if (readBearerSecret(request) !== null) return refusal(onlyPeople)
        const found = await findOwnSession(deps, request)
        if (found.ok) await endSession(deps, found.value)
        else if (found.error !== null && found.error !== sessionEnded) return refusal(found.error)
        return { ...noContent, setCookie: formatSessionCookie(deps, request, null) }
      },
    }),
    ...personRoutes(deps, {
      route: 'PATCH /api/session/user',
      id: 'session_user_update',
      summary: 'Change the own name, e-mail address or password. A new password ends all other sessions.',
      body: changeOwnUserSchema,
      success: { status: 200, schema: accountSchema },
      handle: async ({ request, caller, body }) => {
        const { current_password: currentPassword, ...given } = body
        const own = { ...given, ...(currentPassword !== undefined && { currentPassword }) }
        const changed = await changeOwnUser(deps, caller.id, own, readSignInOrigin(deps, request))
        if (!changed.ok) return refuseSignIn(changed.error)
        const { user, renewed } = changed.value
        const answered = answer(200, encodeAccount(user))
        return renewed === null
          ? answered
          : { ...answered, setCookie: formatSessionCookie(deps, request, renewed.secret) }
      },
    }),
    ...personRoutes(deps, {
      route: 'GET /api/users/@me/sessions',
      id: 'users_me_sessions_list',
      summary: 'List the own sessions, newest first.',
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(userSessionSchema) },
      handle: call => answerSessions(deps, call, call.caller.id),
    }),
    ...personRoutes(deps, {
      route: 'DELETE /api/users/@me/sessions',
      id: 'users_me_sessions_destroy_others',
      summary: 'End all own sessions except this one.',
      success: { status: 204 },
      handle: async ({ caller, change }) => {
        await endSessions(deps, caller.id, { except: caller.signedIn.session.id }, change)
        return noContent
      },
    }),
    ...personRoutes(deps, {
      route: 'DELETE /api/users/@me/sessions/:sessionId',
      id: 'users_me_sessions_destroy',
      summary: 'End one of the own sessions.',
      success: { status: 204 },
      handle: async ({ caller, change, params }) =>
        answerEnd(await endSessions(deps, caller.id, { only: params.sessionId! }, change)),
    }),
  ]
}

/** The session that the browser had until then ends, since it loses the cookie. */
async function answerNewSession(
  deps: ManagementDeps,
  request: FastifyRequest,
  { secret, ...signedIn }: NewSignIn,
): Promise<Answer> {
  const former = await findOwnSession(deps, request)
  if (former.ok) await endSession(deps, former.value)
  return {
    ...answer(200, encodeSignedIn(signedIn, await describeInstance(deps, request, { scopedProjectIds: [] }))),
    setCookie: formatSessionCookie(deps, request, secret),
  }
}

async function describeInstance(
  deps: ManagementDeps,
  request: FastifyRequest,
  caller: Pick<Caller, 'scopedProjectIds'>,
) {
  const projects = await listProjectSummaries(deps, caller)
  return { projects, build: deps.version, sdkUrl: deps.sdkBase(request) }
}

async function endSession(deps: ManagementDeps, { session, user }: SignedIn): Promise<void> {
  await endSessions(deps, user.id, { only: session.id }, { by: toUserAuthor(user), atMs: deps.clock.nowMs() })
}

type Person = Extract<Caller, { kind: 'person' }>

interface PersonEndpoint<Q extends QuerySpec, S extends TSchema>
  extends Omit<InstanceEndpoint<Q, S>, 'scope' | 'handle'> {
  readonly handle: (call: Call<Q, Static<S>> & { readonly caller: Person }) => Promise<Answer>
}

/** Endpoints for people who signed in, whatever their role; a personal API key has no session. */
function personRoutes<Q extends QuerySpec, S extends TSchema>(
  deps: ManagementDeps,
  endpoint: PersonEndpoint<Q, S>,
): ManagementRoute[] {
  return instanceRoutes<Q, S>(deps, {
    ...endpoint,
    scope: 'any',
    handle: async call => {
      const { caller } = call
      return caller.kind === 'person' ? endpoint.handle({ ...call, caller }) : refusal(onlyPeople)
    },
  })
}

const onlyPeople = createPermissionDeniedError('Only people who signed in have a session; this is a personal API key.')

export async function answerSessions(
  { management, clock }: Pick<ManagementDeps, 'management' | 'clock'>,
  call: Pick<Call<ReturnType<typeof pageParams>, unknown>, 'request' | 'caller' | 'query' | 'signal'>,
  userId: string,
): Promise<Answer> {
  const { caller } = call
  const currentId = caller.kind === 'person' ? caller.signedIn.session.id : null
  const nowMs = clock.nowMs()
  return answerCountedList(
    call,
    call.query,
    async ({ limit, offset }) => {
      // A user has at most 100.
      const sessions = await management.listSessions(userId, nowMs)
      return { count: sessions.length, results: sessions.slice(offset, offset + limit) }
    },
    encodeObjects(session => encodeUserSession(session, currentId)),
  )
}

export function answerEnd(count: number): Answer {
  return count > 0 ? noContent : refusal(notFoundHere)
}
