// The author of a write, in the form of PostHog's users: a person who signed in, or a personal API key.

import Type, { type Static } from 'typebox'
import { type Author, computeAuthorNumber } from '#core/author.ts'
import { isUuid } from '#core/events/uuid.ts'
import { deriveUuid } from './derive-uuid.ts'
import { nullable } from './shapes.ts'

export const authorFields = {
  id: Type.Integer({ description: 'Derived from the id of the user or key, or from the label.' }),
  uuid: Type.String({
    format: 'uuid',
    description: 'Id of the user or personal API key. For changes without either, derived from the label.',
  }),
  distinct_id: Type.String(),
  first_name: Type.String({ description: 'Name of the user, or label of the personal API key, that made the change.' }),
  last_name: Type.String(),
  email: Type.String({ description: 'E-mail address of the user; empty for a key.' }),
}

export const authorSchema = nullable(Type.Object(authorFields, { title: 'Author' }))
export type AuthorJson = Static<typeof authorSchema>

/** @param author null for a write without a user or key. */
export function encodeAuthor(author: Author | null): AuthorJson {
  if (author === null) return null
  const { id, label, email = '' } = author
  const uuid = id !== null && isUuid(id) ? id : deriveUuid(id ?? label)
  return { id: computeAuthorNumber(author), uuid, distinct_id: uuid, first_name: label, last_name: '', email }
}
