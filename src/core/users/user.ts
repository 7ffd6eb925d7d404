// A person who signs in: the fields of a user, and what each role allows.

import type { Author } from '../author.ts'
import {
  booleanField,
  choiceField,
  type ItemOf,
  instantField,
  integerField,
  nameSchema,
  nullable,
  textField,
  uuidField,
} from '../resource.ts'
import { scopeObjects } from '../scopes.ts'

export const roles = ['viewer', 'editor', 'admin'] as const
export type Role = (typeof roles)[number]

export const userResource = {
  table: 'user',
  required: [],
  fields: {
    id: uuidField('id'),
    /** Lower case and unique. Null only for a person who opened a welcome link without giving an address. */
    email: nullable(textField('email', { schema: { type: 'string', maxLength: 254 } })),
    name: textField('name', { schema: nameSchema(200), initial: '' }),
    role: choiceField('role', roles, { initial: 'viewer' }),
    seesPersons: booleanField('sees_persons', {
      schema: {
        type: 'boolean',
        description: 'Whether a viewer may see persons, events and recordings. Editors and admins always may.',
      },
      initial: true,
    }),
    isDisabled: booleanField('disabled', {
      schema: { type: 'boolean', description: 'A disabled user cannot sign in, and their sessions end.' },
      initial: false,
    }),
    createdAtMs: instantField('created_at'),
    lastSeenAtMs: nullable(instantField('last_seen_at')),
    /** Rises when all sessions end, so that a sign-in or a change which began before is refused. */
    accessVersion: integerField('access_version', { isShown: false }),
  },
} as const

/** A user as stored; the hash of the password is only handed to sign-in. */
export type User = ItemOf<typeof userResource> & { readonly hasPassword: boolean }

/** Objects in which editors may write. `query` is the replay of rejected events. */
const editedObjects = [
  ...(['feature_flag', 'cohort', 'survey', 'early_access_feature', 'experiment'] as const),
  ...(['query', 'import_job'] as const),
]

/** Scopes that show persons: themselves, and what events, queries, recordings and examples of warnings have of them. */
const personScopes = ['person:read', 'query:read', 'session_recording:read', 'ingestion_warning:read']

/** The scopes that a user's role includes, as a personal API key has them. */
export function listScopesOfUser({ role, seesPersons }: Pick<User, 'role' | 'seesPersons'>): readonly string[] {
  if (role === 'admin') return ['*']
  const reads = scopeObjects.map(object => `${object}:read`)
  if (role === 'editor') return [...reads, ...editedObjects.map(object => `${object}:write`)]
  return seesPersons ? reads : reads.filter(scope => !personScopes.includes(scope))
}

/** Whether a change of the user gives them a right that they did not have. */
export function isRiseOfRights(before: User, after: User): boolean {
  const held = new Set(listScopesOfUser(before))
  return !held.has('*') && listScopesOfUser(after).some(scope => !held.has(scope))
}

/** Whether a key with these scopes may do no more than the user, write including read as in a role. */
export function holdsScopes(user: Pick<User, 'role' | 'seesPersons'>, scopes: readonly string[]): boolean {
  const held = listScopesOfUser(user)
  return held.includes('*') || scopes.every(scope => held.includes(scope))
}

export function isActiveAdmin({ role, isDisabled }: Pick<User, 'role' | 'isDisabled'>): boolean {
  return role === 'admin' && !isDisabled
}

/** The user as the author of what they change. */
export function toUserAuthor({ id, name, email }: Pick<User, 'id' | 'name' | 'email'>): Author {
  return { id, label: name.trim() || email || 'Unnamed user', ...(email === null ? {} : { email }) }
}

/** The address as it is stored and compared; null when it cannot be an e-mail address. */
export function normalizeEmail(text: string): string | null {
  const email = text.trim().toLowerCase()
  return email.length <= 254 && /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(email) ? email : null
}

export const passwordLength = { min: 12, max: 200 } as const

/** The password as it is hashed: two keyboards may type the same letter in different ways. */
export function normalizePassword(text: string): string {
  return text.normalize('NFC')
}

export function isUsablePassword(text: string): boolean {
  const { length } = normalizePassword(text)
  return length >= passwordLength.min && length <= passwordLength.max
}
