// Who wrote something, in the form of PostHog's users. There are no user accounts: an author is the label of a personal API
// key, so the same label is the same author, also in ids.

import { hash } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { nullable, uuidSchema } from './shapes.ts'

export const authorSchema = nullable(
  Type.Object(
    {
      id: Type.Integer({ description: 'Made of the label.' }),
      uuid: uuidSchema,
      distinct_id: Type.String(),
      first_name: Type.String({ description: 'Label of the personal API key that wrote it.' }),
      last_name: Type.String(),
      email: Type.String({ description: 'Always empty.' }),
    },
    { title: 'Author' },
  ),
)
export type AuthorJson = Static<typeof authorSchema>

/** @param label null: nobody's key, so nobody. */
export function encodeAuthor(label: string | null): AuthorJson {
  if (label === null) return null
  const hex = hash('sha256', label, 'hex')
  const uuid = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
  const id = Number.parseInt(hex.slice(32, 40), 16) >>> 1
  return { id, uuid, distinct_id: uuid, first_name: label, last_name: '', email: '' }
}
