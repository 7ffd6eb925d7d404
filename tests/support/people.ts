// People of a test: they sign in by invitations, and send requests as a page of the instance does.

import assert from 'node:assert/strict'
import type { Role } from '#core/users/user.ts'
import type { CallOptions, ManagementApi, Reply } from './management-api.ts'
import { testPersonalKey } from './pennon.ts'

export const aPassword = 'correct horse battery'

export interface Person {
  readonly id: string
  readonly email: string
  /** `name=secret`, as a browser sends it. */
  readonly cookie: string
  call(method: string, path: string, options?: CallOptions): Promise<Reply>
}

export const pageHeaders = { 'x-pennon-ui': '1', 'sec-fetch-site': 'same-origin' } as const

/** A request of a page of the instance, before anyone signed in. */
export function callFromPage(
  api: CallApi,
  method: string,
  path: string,
  { headers, ...options }: CallOptions = {},
): Promise<Reply> {
  return api.call(method, path, { key: null, ...options, headers: { ...pageHeaders, ...headers } })
}

type CallApi = Pick<ManagementApi, 'call'>

/** Calls of a front or an instance, with its personal key unless another key or null is given. */
export function callsTo(url: string): CallApi {
  return {
    call: async (method, path, { key = testPersonalKey, body, headers }: CallOptions = {}) => {
      const response = await fetch(url + path, {
        method,
        headers: {
          ...(key !== null && { authorization: `Bearer ${key}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      const isJson = (response.headers.get('content-type') ?? '').startsWith('application/json')
      return {
        status: response.status,
        headers: response.headers,
        text,
        body: isJson && text ? JSON.parse(text) : null,
      }
    },
  }
}

/** The token of an invitation, made with the key that `call` sends by default. */
export async function inviteToken(api: CallApi, body: object): Promise<string> {
  const reply = await api.call('POST', '/api/invitations/', { body })
  assert.equal(reply.status, 201, reply.text)
  return readToken(reply.body.link)
}

export function readToken(link: string): string {
  const match = /\/ui\/welcome#([\w-]{43})$/.exec(link)
  assert.ok(match, link)
  return match[1]!
}

export function readCookie(reply: Reply): string {
  const set = reply.headers.get('set-cookie')
  assert.ok(set, reply.text)
  return set.slice(0, set.indexOf(';'))
}

/** Someone with this role, who signed in and has `aPassword`. */
export async function aSignedInUser(
  api: CallApi,
  role: Role,
  { email = `${role}@x.example`, ...over }: { email?: string; name?: string; sees_persons?: boolean } = {},
): Promise<Person> {
  const token = await inviteToken(api, { role, email, name: role, ...over })
  const reply = await callFromPage(api, 'POST', '/api/session/link/', { body: { token, password: aPassword } })
  assert.equal(reply.status, 200, reply.text)
  return toPerson(api, reply)
}

export function toPerson(api: CallApi, signedIn: Reply): Person {
  const cookie = readCookie(signedIn)
  const { id, email } = signedIn.body.user
  return {
    ...{ id, email, cookie },
    call: (method, path, options) =>
      callFromPage(api, method, path, { ...options, headers: { cookie, ...options?.headers } }),
  }
}

export function signIn(api: CallApi, email: string, password = aPassword, headers = {}) {
  return callFromPage(api, 'POST', '/api/session/', { body: { email, password }, headers })
}
