// Persons as the private API shows them.

import Type, { type Static } from 'typebox'
import { ownValue, type PropertyBag } from '#core/json.ts'
import {
  type DistinctIdMapping,
  type Person,
  shownDistinctIdCountMax,
  shownFlagOverrideCountMax,
} from '#core/persons/person.ts'
import { pickProperties } from '#core/pick-properties.ts'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import { instant, instantSchema, jsonObjectSchema, nullable, uuidSchema } from '../shapes.ts'

export const personSchema = Type.Object({
  id: Type.Integer(),
  uuid: uuidSchema,
  name: Type.String({ description: 'E-mail, name or user name from the properties, else the first distinct id.' }),
  distinct_ids: Type.Array(Type.String(), {
    description: `At most ${shownDistinctIdCountMax}; those that look made up by an SDK come last. /persons/:uuid/distinct_ids/ has all.`,
  }),
  distinct_id_count: Type.Integer({
    description: `How many distinct ids there are; ${personDistinctIdCountMax + 1} says that there may be more.`,
  }),
  properties: jsonObjectSchema(),
  created_at: instantSchema,
  is_identified: Type.Boolean(),
  version: Type.Integer(),
  distinct_id_versions: Type.Unsafe<PropertyBag>({
    type: 'object',
    additionalProperties: { type: 'integer' },
    description: 'Version of each distinct id that is shown; above 0, queries map its older events to this person.',
  }),
  flag_overrides: Type.Array(Type.Object({ feature_flag_key: Type.String(), hash_key: Type.String() }), {
    description: `At most ${shownFlagOverrideCountMax}, by flag key.`,
  }),
})
export type PersonJson = Static<typeof personSchema>

export interface PersonToEncode extends Omit<Person, 'marks' | 'properties'> {
  readonly id: number
  readonly propertiesJson: string
  readonly distinctIds: readonly DistinctIdMapping[]
  readonly distinctIdCount: number
  readonly flagOverrides: readonly { readonly flagKey: string; readonly hashKey: string }[]
}

/** JSON text of a person; its properties are spliced in as stored. */
export function encodePerson(person: PersonToEncode): string {
  return `${JSON.stringify(personHead(person)).slice(0, -1)},"properties":${person.propertiesJson}}`
}

/** What is shown of a person beside the properties. */
export function personHead(person: PersonToEncode): Omit<PersonJson, 'properties'> {
  const distinctIds = knownFirst(person.distinctIds.map(({ distinctId }) => distinctId))
  const versions = person.distinctIds.map(({ distinctId, version }) => [distinctId, version] as const)
  return {
    id: person.id,
    uuid: person.uuid,
    name: displayName(person.propertiesJson) ?? distinctIds[0] ?? person.uuid,
    distinct_ids: distinctIds,
    distinct_id_count: person.distinctIdCount,
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

export const distinctIdPageSchema = Type.Object({
  count: Type.Integer(),
  next: nullable(Type.String()),
  previous: Type.Null(),
  results: Type.Array(Type.Object({ distinct_id: Type.String(), version: Type.Integer() })),
})

export function encodeDistinctId({ distinctId, version }: DistinctIdMapping) {
  return { distinct_id: distinctId, version }
}

/** In order of precedence. Source: PostHog's default display names. */
const displayNameProperties = ['email', 'Email', '$email', 'name', 'Name', 'username', 'Username', 'UserName'] as const

const displayNames: ReadonlySet<string> = new Set(displayNameProperties)

function displayName(propertiesJson: string): string | null {
  const properties = pickProperties(propertiesJson, displayNames)
  for (const key of displayNameProperties) {
    const value = ownValue(properties, key)
    if (typeof value === 'string' && value !== '') return value
  }
  return null
}

/** UUIDs and the longer ids of older browser SDKs: five runs of letters and digits. Source: PostHog's own test. */
const anonymousForm = /^(?:[a-z0-9]+-){4}[a-z0-9]+$/i

/** Identified ids first, then anonymous ids that SDKs generated, each in their given order. */
function knownFirst(distinctIds: readonly string[]): string[] {
  const made = distinctIds.filter(id => anonymousForm.test(id))
  return [...distinctIds.filter(id => !anonymousForm.test(id)), ...made]
}
