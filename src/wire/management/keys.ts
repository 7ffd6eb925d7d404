// Personal API keys: what answers have besides the fields of `core/personal-key.ts`. The key itself (`value`) is shown
// once, in the answer that creates it.

import Type from 'typebox'
import { type PersonalKey, personalKeyResource } from '#core/personal-key.ts'
import { buildBodySchemas, buildItemSchema, encodeItem } from './resource-json.ts'

export const personalKeySchema = buildItemSchema(personalKeyResource, {
  scoped_organizations: Type.Array(Type.String()),
})

export const createdPersonalKeySchema = Type.Object({
  ...personalKeySchema.properties,
  value: Type.String({ description: 'The key itself, returned only once.' }),
})

export const createPersonalKeySchema = buildBodySchemas(personalKeyResource, {}).create

export function encodePersonalKey(key: PersonalKey): object {
  return encodeItem(personalKeyResource, key, { scoped_organizations: [] })
}
