// Event and property definitions, as PostHog's API lists them. Only how a name is used is stored, so the fields for
// people's notes about it are empty.

import Type, { type Static } from 'typebox'
import type { EventName, PropertyName } from '#core/capture/event-and-property-names.ts'
import { deriveUuid } from './derive-uuid.ts'
import { formatInstant, instantSchema, nullable, uuidSchema } from './shapes.ts'

/** Fields for what people note about a name. */
const unsaid = {
  description: nullable(Type.String()),
  owner: Type.Null(),
  tags: Type.Array(Type.String()),
  updated_at: nullable(instantSchema),
  updated_by: Type.Null(),
  verified: Type.Boolean(),
  verified_at: Type.Null(),
  verified_by: Type.Null(),
  hidden: Type.Boolean(),
}
const nothingSaid = {
  ...{ description: null, owner: null, tags: [] as string[], updated_at: null, updated_by: null },
  ...{ verified: false, verified_at: null, verified_by: null, hidden: false },
}

export const eventDefinitionSchema = Type.Object({
  id: uuidSchema,
  name: Type.String(),
  created_at: instantSchema,
  last_seen_at: instantSchema,
  is_action: Type.Boolean(),
  ...unsaid,
})
export type EventDefinitionJson = Static<typeof eventDefinitionSchema>

export const propertyDefinitionSchema = Type.Object({
  id: uuidSchema,
  name: Type.String(),
  property_type: Type.Unsafe<PropertyName['type']>(
    nullable(
      Type.Union(
        ['String', 'Numeric', 'Boolean', 'DateTime'].map(name => Type.Literal(name)),
        { description: 'Null if values have several types, or are lists or objects.' },
      ),
    ),
  ),
  is_numerical: Type.Boolean(),
  is_seen_on_filtered_events: nullable(Type.Boolean({ description: 'Null unless `event_names` is given.' })),
  ...unsaid,
})
export type PropertyDefinitionJson = Static<typeof propertyDefinitionSchema>

export function encodeEventDefinition(projectId: number, event: EventName): EventDefinitionJson {
  return {
    id: deriveUuid(`event:${projectId}:${event.name}`),
    name: event.name,
    created_at: formatInstant(event.firstCapturedAtMs),
    last_seen_at: formatInstant(event.lastSeenMs),
    is_action: false,
    ...nothingSaid,
  }
}

/** @param namesEvents whether the caller asked on which events a property is seen. */
export function encodePropertyDefinition(
  projectId: number,
  kind: string,
  property: PropertyName,
  namesEvents: boolean,
): PropertyDefinitionJson {
  return {
    id: deriveUuid(`property:${projectId}:${kind}:${property.name}`),
    name: property.name,
    property_type: property.type,
    is_numerical: property.type === 'Numeric',
    is_seen_on_filtered_events: namesEvents ? property.isSeenOnEvents : null,
    ...nothingSaid,
  }
}
