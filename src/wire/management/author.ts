// The author of a write, in the form of PostHog's users. There are no user accounts: an author is the label of a
// personal API key, so the same label is the same author and has the same ids.

import Type, { type Static } from 'typebox'
import { deriveNumber, deriveUuid } from './made-ids.ts'
import { nullable, uuidSchema } from './shapes.ts'

export const authorFields = {
  id: Type.Integer({ description: 'Derived from the label.' }),
  uuid: uuidSchema,
  distinct_id: Type.String(),
  first_name: Type.String({ description: 'Label of the personal API key that made the change.' }),
  last_name: Type.String(),
  email: Type.String({ description: 'Always empty.' }),
}

export const authorSchema = nullable(Type.Object(authorFields, { title: 'Author' }))
export type AuthorJson = Static<typeof authorSchema>

/** @param label null when it was written without a key. */
export function encodeAuthor(label: string | null): AuthorJson {
  if (label === null) return null
  const uuid = deriveUuid(label)
  return { id: deriveNumber(label), uuid, distinct_id: uuid, first_name: label, last_name: '', email: '' }
}
