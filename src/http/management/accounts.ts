// The people who may sign in, for admins: invitations, roles, links, and everyone's sessions. A personal API key needs all
// scopes and all projects, since a lesser one could extend its own rights.

import type { FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import { omitUndefined } from '#core/omit-undefined.ts'
import type { User } from '#core/users/user.ts'
import {
  buildLinkUrl,
  createLinkForUser,
  deleteUser,
  inviteUser,
  type NewLink,
  updateUser,
} from '#services/manage/manage-users.ts'
import { endSessions } from '#services/manage/sign-in.ts'
import {
  accountSchema,
  encodeAccount,
  encodeInvitation,
  invitationSchema,
  inviteSchema,
  newLinkSchema,
  updateAccountSchema,
  userSessionSchema,
} from '#wire/management/sessions.ts'
import { countedPageSchema, formatInstant } from '#wire/management/shapes.ts'
import { wireError } from '#wire/wire-error.ts'
import {
  type Answer,
  answer,
  changedAtOnce,
  createPermissionDeniedError,
  noContent,
  notFoundHere,
  refusal,
} from './kit/answers.ts'
import { isLimitedToProjects } from './kit/authenticate.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type InstanceEndpoint, instanceRoutes, type ManagementRoute } from './kit/endpoint.ts'
import { answerCountedList, encodeObjects } from './kit/list-answers.ts'
import { pageParams, type QuerySpec } from './kit/query-params.ts'
import { answerEnd, answerSessions } from './session.ts'
import { belowPath, emailTaken, invalidEmail, userDisabled } from './sign-in-answers.ts'

export function accountsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...adminRoutes(deps, {
      route: 'GET /api/users',
      id: 'users_list',
      summary: 'List the people who may sign in, by the time of their first sign-in.',
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(accountSchema) },
      handle: call =>
        answerCountedList(call, call.query, slice => deps.management.listUsers(slice), encodeObjects(encodeAccount)),
    }),
    ...userRoutes(deps, {
      route: 'GET /api/users/:userId',
      id: 'users_retrieve',
      summary: 'Get one user.',
      success: { status: 200, schema: accountSchema },
      handle: async ({ user }) => answer(200, encodeAccount(user)),
    }),
    ...userRoutes(deps, {
      route: 'PATCH /api/users/:userId',
      id: 'users_partial_update',
      summary: 'Change a user. One active admin is always left; more rights end the sessions of the user.',
      body: updateAccountSchema,
      success: { status: 200, schema: accountSchema },
      handle: async ({ user, change, body }) => {
        // Named one by one: a body may also have what the answer shows, such as `id`.
        const { name, email, role, sees_persons: seesPersons, disabled: isDisabled } = body
        const patch = omitUndefined({ name, email, role, seesPersons, isDisabled })
        const updated = await updateUser(deps, user.id, patch, change)
        return updated.ok ? answer(200, encodeAccount(updated.value)) : refusal(userErrors[updated.error])
      },
    }),
    ...userRoutes(deps, {
      route: 'DELETE /api/users/:userId',
      id: 'users_destroy',
      summary: 'Delete a user with their sessions. The activity log keeps their name and e-mail address.',
      success: { status: 204 },
      handle: async ({ user, change }) => {
        const deleted = await deleteUser(deps, user.id, change)
        return deleted.ok ? noContent : refusal(userErrors[deleted.error])
      },
    }),
    ...userRoutes(deps, {
      route: 'POST /api/users/:userId/reset_link',
      id: 'users_reset_link_create',
      summary: 'Create a link with which the user sets a new password, within an hour.',
      success: { status: 201, schema: newLinkSchema },
      handle: async ({ request, user, change }) => {
        const made = await createLinkForUser(deps, user, 'reset', change)
        return made.ok ? answerLink(deps, request, made.value) : refusal(userErrors[made.error])
      },
    }),
    ...userRoutes(deps, {
      route: 'GET /api/users/:userId/sessions',
      id: 'users_sessions_list',
      summary: 'List the sessions of a user, newest first.',
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(userSessionSchema) },
      handle: call => answerSessions(deps, call, call.user.id),
    }),
    ...userRoutes(deps, {
      route: 'DELETE /api/users/:userId/sessions',
      id: 'users_sessions_destroy_all',
      summary: 'End all sessions of a user.',
      success: { status: 204 },
      handle: async ({ user, change }) => {
        await endSessions(deps, user.id, { except: null }, change)
        return noContent
      },
    }),
    ...userRoutes(deps, {
      route: 'DELETE /api/users/:userId/sessions/:sessionId',
      id: 'users_sessions_destroy',
      summary: 'End one session of a user.',
      success: { status: 204 },
      handle: async ({ user, change, params }) =>
        answerEnd(await endSessions(deps, user.id, { only: params.sessionId! }, change)),
    }),
    ...adminRoutes(deps, {
      route: 'GET /api/invitations',
      id: 'invitations_list',
      summary: 'List the links that make a new user and can still be used, oldest first, without their tokens.',
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(invitationSchema) },
      handle: call => {
        const list = (slice: Parameters<typeof deps.management.listUsers>[0]) =>
          deps.management.listInvitations(slice, deps.clock.nowMs())
        return answerCountedList(call, call.query, list, encodeObjects(encodeInvitation))
      },
    }),
    ...adminRoutes(deps, {
      route: 'DELETE /api/invitations/:invitationId',
      id: 'invitations_destroy',
      summary: 'Revoke an invitation: its link stops working.',
      success: { status: 204 },
      handle: async ({ params, change }) => {
        const isDeleted = await deps.management.deleteInvitation(params.invitationId!, change)
        return isDeleted ? noContent : refusal(notFoundHere)
      },
    }),
    ...adminRoutes(deps, {
      route: 'POST /api/invitations',
      id: 'invitations_create',
      summary: 'Create a link that makes a new user, within 7 days. Pass it on: Pennon sends no mail.',
      body: inviteSchema,
      success: { status: 201, schema: newLinkSchema },
      handle: async ({ request, change, body }) => {
        const { role, email = null, name = '', sees_persons: seesPersons = true } = body
        const invited = await inviteUser(deps, { role, email, name: name.trim(), seesPersons }, change)
        return invited.ok ? answerLink(deps, request, invited.value) : refusal(userErrors[invited.error])
      },
    }),
  ]
}

const userErrors = {
  not_found: notFoundHere,
  changed: changedAtOnce,
  email_taken: emailTaken,
  invalid_email: invalidEmail,
  user_disabled: userDisabled,
  last_admin: wireError(
    409,
    'last_admin',
    'This is the last admin who is not disabled. Make another user an admin first.',
  ),
}

function answerLink(deps: ManagementDeps, request: FastifyRequest, { id, token, expiresAtMs }: NewLink): Answer {
  const link = buildLinkUrl(deps.screensBase(request), token)
  return link === null ? refusal(belowPath) : answer(201, { id, link, expires_at: formatInstant(expiresAtMs) })
}

type AdminEndpoint<Q extends QuerySpec, S extends TSchema> = Omit<InstanceEndpoint<Q, S>, 'scope'>

function adminRoutes<Q extends QuerySpec, S extends TSchema>(
  deps: ManagementDeps,
  endpoint: AdminEndpoint<Q, S>,
): ManagementRoute[] {
  return instanceRoutes<Q, S>(deps, {
    ...endpoint,
    scope: '*',
    handle: async call => (isLimitedToProjects(call.caller) ? refusal(limitedKey) : endpoint.handle(call)),
  })
}

const limitedKey = createPermissionDeniedError('A key that is limited to some projects cannot manage users.')

interface UserEndpoint<Q extends QuerySpec, S extends TSchema> extends Omit<AdminEndpoint<Q, S>, 'handle'> {
  readonly handle: (call: Parameters<InstanceEndpoint<Q, S>['handle']>[0] & { readonly user: User }) => Promise<Answer>
}

/** An endpoint of one user; 404 when there is no such user. */
function userRoutes<Q extends QuerySpec, S extends TSchema>(
  deps: ManagementDeps,
  endpoint: UserEndpoint<Q, S>,
): ManagementRoute[] {
  return adminRoutes<Q, S>(deps, {
    ...endpoint,
    handle: async call => {
      const user = await deps.management.findUser(call.params.userId!)
      return user === null ? refusal(notFoundHere) : endpoint.handle({ ...call, user })
    },
  })
}
