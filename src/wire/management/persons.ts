// Persons as the private API shows them.

import Type, { type Static } from 'typebox'
import { ownValue, type PropertyBag } from '#core/json.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import { instant, instantSchema, jsonObjectSchema, uuidSchema } from './shapes.ts'

export const personSchema = Type.Object({
  id: Type.Integer(),
  uuid: uuidSchema,
  name: Type.String({ description: 'E-mail, name or user name from the properties, else the first distinct id.' }),
  distinct_ids: Type.Array(Type.String(), { description: 'Those that look made up by an SDK come last.' }),
  properties: jsonObjectSchema(),
  created_at: instantSchema,
  is_identified: Type.Boolean(),
  version: Type.Integer(),
  distinct_id_versions: Type.Unsafe<PropertyBag>({
    type: 'object',
    additionalProperties: { type: 'integer' },
    description: 'Version of each distinct id; above 0, queries map its older events to this person.',
  }),
  flag_overrides: Type.Array(Type.Object({ feature_flag_key: Type.String(), hash_key: Type.String() })),
})
export type PersonJson = Static<typeof personSchema>

export interface PersonToEncode extends Omit<Person, 'marks'> {
  readonly id: number
  readonly distinctIds: readonly DistinctIdMapping[]
  readonly flagOverrides: readonly { readonly flagKey: string; readonly hashKey: string }[]
}

export function encodePerson(person: PersonToEncode): PersonJson {
  const distinctIds = knownFirst(person.distinctIds.map(({ distinctId }) => distinctId))
  const versions = person.distinctIds.map(({ distinctId, version }) => [distinctId, version] as const)
  return {
    id: person.id,
    uuid: person.uuid,
    name: displayName(person.properties) ?? distinctIds[0] ?? person.uuid,
    distinct_ids: distinctIds,
    properties: person.properties,
    created_at: instant(person.createdAtMs),
    is_identified: person.isIdentified,
    version: person.version,
    distinct_id_versions: Object.fromEntries(versions), // defines own keys, `__proto__` too
    flag_overrides: person.flagOverrides.map(({ flagKey, hashKey }) => ({
      feature_flag_key: flagKey,
      hash_key: hashKey,
    })),
  }
}

/** In the order in which they count. Source: PostHog's default display names. */
const displayNameProperties = ['email', 'Email', '$email', 'name', 'Name', 'username', 'Username', 'UserName'] as const

function displayName(properties: PropertyBag): string | null {
  for (const key of displayNameProperties) {
    const value = ownValue(properties, key)
    if (typeof value === 'string' && value !== '') return value
  }
  return null
}

/** UUIDs, and the longer ids of older browsers' SDKs: five runs of letters and digits. Source: PostHog's own test. */
const anonymousForm = /^(?:[a-z0-9]+-){4}[a-z0-9]+$/i

/** Ids that people gave, then those that SDKs made up, each in the order they came in. */
function knownFirst(distinctIds: readonly string[]): string[] {
  const made = distinctIds.filter(id => anonymousForm.test(id))
  return [...distinctIds.filter(id => !anonymousForm.test(id)), ...made]
}
