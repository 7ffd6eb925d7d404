// The names of a project's events and properties, which tools ask for before they write a condition or a query.

import Type from 'typebox'
import { definedOf } from '#core/defined-of.ts'
import { err, ok } from '#core/result.ts'
import type { EventQueries } from '#ports/events/event-queries.ts'
import {
  encodeEventDefinition,
  encodePropertyDefinition,
  eventDefinitionSchema,
  propertyDefinitionSchema,
} from '#wire/management/definitions.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import { answerFromEventStore, invalidInput } from '../kit/answers.ts'
import type { EndpointDeps } from '../kit/endpoint.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { answerCountedList, encodeObjects } from '../kit/full-page.ts'
import { commaListParam, namesParam } from '../kit/list-filters.ts'
import { booleanParam, optional, pageParams, type QueryParam, textParam, withDefault } from '../kit/query-params.ts'

type DefinitionsDeps = EndpointDeps & { readonly events: Pick<EventQueries, 'listEventNames' | 'listPropertyNames'> }

const tag = 'definitions'
const search = textParam('Part of a name, in any case.')
const kinds = ['event', 'person'] as const

export function definitionsRoutes(deps: DefinitionsDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/event_definitions',
      id: 'event_definitions_list',
      tag,
      summary: 'Names of events that the project has, in their order.',
      scope: 'event_definition:read',
      query: { ...pageParams(), search },
      success: { status: 200, schema: countedPageSchema(eventDefinitionSchema) },
      handle: call => {
        const { project, query, signal } = call
        const asked = { projectId: project.id, ...definedOf({ search: query.search }) }
        return answerFromEventStore(() =>
          answerCountedList(
            call,
            query,
            slice => deps.events.listEventNames({ ...asked, ...slice }, signal),
            encodeObjects(event => encodeEventDefinition(project.id, event)),
          ),
        )
      },
    }),
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/property_definitions',
      id: 'property_definitions_list',
      tag,
      summary: 'Names of properties of the newest events, some 2,000, or of the persons that came with them.',
      scope: 'property_definition:read',
      query: {
        ...pageParams(),
        search,
        type: withDefault(kindParam(), 'event'),
        event_names: namesParam('JSON list of events, of which `is_seen_on_filtered_events` tells.'),
        filter_by_event_names: withDefault(booleanParam('Only properties of events in `event_names`.'), false),
        properties: commaListParam('Only these names, separated by commas.'),
        is_feature_flag: booleanParam('Only `$feature/…`, or all but them.'),
        exclude_core_properties: withDefault(booleanParam('Without `$…`, which SDKs set.'), false),
        exclude_hidden: booleanParam('No property is hidden here, so it changes nothing.'),
      },
      success: { status: 200, schema: countedPageSchema(propertyDefinitionSchema) },
      handle: call => {
        const { project, query, signal } = call
        const { search, type, properties: names, event_names: events, is_feature_flag: ofFlags } = query
        const asked = {
          ...{ projectId: project.id, kind: type },
          ...{ leavesOutCore: query.exclude_core_properties, onlyOfEvents: query.filter_by_event_names },
          ...definedOf({ search, names, events, ofFlags }),
        }
        return answerFromEventStore(() =>
          answerCountedList(
            call,
            query,
            slice => deps.events.listPropertyNames({ ...asked, ...slice }, signal),
            encodeObjects(property => encodePropertyDefinition(project.id, type, property, events !== undefined)),
          ),
        )
      },
    }),
  ]
}

function kindParam(): QueryParam<(typeof kinds)[number] | undefined> {
  return optional(Type.Union(kinds.map(kind => Type.Literal(kind))), (text, name) => {
    const kind = kinds.find(known => known === text)
    return kind === undefined
      ? err(invalidInput(name, `Must be one of: ${kinds.join(', ')}. Groups and sessions have no list here.`))
      : ok(kind)
  })
}
