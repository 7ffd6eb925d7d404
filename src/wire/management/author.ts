// The author of a write, in the form of PostHog's users. There are no user accounts: an author is a personal API key.

import Type, { type Static } from 'typebox'
import { type Author, computeAuthorNumber } from '#core/author.ts'
import { isUuid } from '#core/events/uuid.ts'
import { deriveUuid } from './derive-uuid.ts'
import { nullable } from './shapes.ts'

export const authorFields = {
  id: Type.Integer({ description: 'Derived from the id of the key, or from its label.' }),
  uuid: Type.String({
    format: 'uuid',
    description: 'Id of the personal API key. For changes without a known key, derived from the label.',
  }),
  distinct_id: Type.String(),
  first_name: Type.String({ description: 'Label of the personal API key that made the change.' }),
  last_name: Type.String(),
  email: Type.String({ description: 'Always empty.' }),
}

export const authorSchema = nullable(Type.Object(authorFields, { title: 'Author' }))
export type AuthorJson = Static<typeof authorSchema>

/** @param author null for a write without a key. */
export function encodeAuthor(author: Author | null): AuthorJson {
  if (author === null) return null
  const { id, label } = author
  const uuid = id !== null && isUuid(id) ? id : deriveUuid(id ?? label)
  return { id: computeAuthorNumber(author), uuid, distinct_id: uuid, first_name: label, last_name: '', email: '' }
}
