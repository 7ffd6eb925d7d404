// What the endpoints of sessions and users share: where a request comes from, refusals, and the addresses of links.

import type { FastifyRequest } from 'fastify'
import { passwordLength } from '#core/users/user.ts'
import type { LinkRefusal, OwnRefusal, SignInOrigin, SignInRefusal } from '#services/manage/sign-in.ts'
import { findAddressBlock, findClientAddress, findSenderNetwork } from '#wire/address/client-address.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import {
  type Answer,
  changedAtOnce,
  createInvalidInputError,
  createRequiredError,
  notFoundHere,
  refusal,
} from './kit/answers.ts'
import type { ManagementDeps } from './kit/deps.ts'

export function readSignInOrigin(
  { trustedProxies }: Pick<ManagementDeps, 'trustedProxies'>,
  { headers, socket }: FastifyRequest,
): SignInOrigin {
  const address = findClientAddress(headers, socket.remoteAddress, trustedProxies)
  const networks = { network: findSenderNetwork(address), block: findAddressBlock(address) }
  return { address, ...networks, userAgent: headers['user-agent'] ?? '' }
}

export function refuseSignIn(refused: SignInRefusal | LinkRefusal | OwnRefusal): Answer {
  if (refused.kind !== 'throttled') return refusal(toWireError(refused))
  const retryAfterSeconds = Math.ceil(refused.retryAfterMs / 1_000)
  const detail = `Too many tries. Try again in ${retryAfterSeconds} s.`
  return { ...refusal(wireError(429, 'too_many_attempts', detail)), retryAfterSeconds }
}

type Refused = Exclude<SignInRefusal | LinkRefusal | OwnRefusal, { kind: 'throttled' }>

function toWireError(refused: Refused): WireError {
  switch (refused.kind) {
    case 'wrong_credentials':
      return wireError(401, 'wrong_credentials', 'The e-mail address or the password is wrong.')
    case 'wrong_password':
      return wireError(403, 'wrong_password', 'The present password is wrong.', 'current_password')
    case 'current_password_required':
      return createRequiredError('current_password')
    case 'password_required':
      return createRequiredError('password')
    case 'invalid_email':
      return invalidEmail
    case 'invalid_password':
      return createInvalidInputError(
        'password',
        `A password has ${passwordLength.min} to ${passwordLength.max} characters.`,
      )
    case 'email_taken':
      return emailTaken
    case 'user_disabled':
      return userDisabled
    case 'not_found':
      return notFoundHere
    case 'changed':
      return changedAtOnce
    case 'link':
      return linkErrors[refused.problem]
    default:
      return refused satisfies never
  }
}

export const invalidEmail = createInvalidInputError('email', 'This is not an e-mail address.')
export const emailTaken = wireError(
  409,
  'email_taken',
  'Another user or an open invitation has this e-mail address.',
  'email',
)
export const userDisabled = wireError(403, 'user_disabled', 'This user is disabled. An admin can enable them.')
const linkErrors = {
  unknown: wireError(404, 'link_unknown', 'This link is unknown, or was replaced by a newer one.', 'token'),
  used: wireError(410, 'link_used', 'This link has been used. Every link works once.', 'token'),
  expired: wireError(410, 'link_expired', 'This link has expired. Ask for another one.', 'token'),
}

export const belowPath = wireError(
  400,
  'public_url_has_path',
  'People can sign in only at the root of a host, and the public URL of this instance has a path. Give it a host name or a port of its own.',
)
