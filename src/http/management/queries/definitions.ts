// The names of a project's events and properties, which tools ask for before they write a condition or a query.

import Type from 'typebox'
import { definedOf } from '#core/defined-of.ts'
import { err, ok } from '#core/result.ts'
import type { EventNameField, EventNameQuery, EventQueries } from '#ports/events/event-queries.ts'
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
import { asFilter, commaListParam, mapParam, namesParam } from '../kit/list-filters.ts'
import {
  booleanParam,
  choiceParam,
  optional,
  pageParams,
  type QueryParam,
  searchParam,
  withDefault,
} from '../kit/query-params.ts'

type DefinitionsDeps = EndpointDeps & { readonly events: Pick<EventQueries, 'listEventNames' | 'listPropertyNames'> }

const tag = 'definitions'
const search = searchParam('Part of a name, in any case.')
const excludeHidden = booleanParam('No name is hidden here, so it changes nothing.')
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
      query: {
        ...pageParams(),
        search,
        ordering: orderingParam(),
        event_type: asFilter(choiceParam(['all', 'event'], 'Every name is that of an event, so both are the same.')),
        exclude_hidden: excludeHidden,
        exclude_stale: staleParam(),
      },
      success: { status: 200, schema: countedPageSchema(eventDefinitionSchema) },
      handle: call => {
        const { project, query, signal } = call
        const asked = { projectId: project.id, ...definedOf({ search: query.search, order: query.ordering }) }
        return answerFromEventStore(() =>
          answerCountedList(
            call,
            query,
            slice => deps.events.listEventNames({ ...asked, ...slice }, signal),
            encodeObjects(event => encodeEventDefinition(project.id, event)),
            query.limit,
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
        excluded_properties: namesParam('JSON list of names that are left out.'),
        exclude_hidden: excludeHidden,
      },
      success: { status: 200, schema: countedPageSchema(propertyDefinitionSchema) },
      handle: call => {
        const { project, query, signal } = call
        const { search, type, properties: names, event_names: events, is_feature_flag: ofFlags } = query
        const asked = {
          ...{ projectId: project.id, kind: type },
          ...{ leavesOutCore: query.exclude_core_properties, onlyOfEvents: query.filter_by_event_names },
          ...definedOf({ search, names, excludedNames: query.excluded_properties, events, ofFlags }),
        }
        return answerFromEventStore(() =>
          answerCountedList(
            call,
            query,
            slice => deps.events.listPropertyNames({ ...asked, ...slice }, signal),
            encodeObjects(property => encodePropertyDefinition(project.id, type, property, events !== undefined)),
            query.limit,
          ),
        )
      },
    }),
  ]
}

/** PostHog's words. */
const orderFields = new Map<string, EventNameField>([
  ['name', 'name'],
  ['last_seen_at', 'lastSeen'],
  ['created_at', 'firstCaptured'],
])

function orderingParam(): QueryParam<EventNameQuery['order']> {
  const words = [...orderFields.keys()].flatMap(word => [word, `-${word}`])
  const param = choiceParam(words, 'What to order by, with `-` from the last to the first; by name unless given.')
  return mapParam(param, word => {
    const by = word === undefined ? undefined : orderFields.get(word.replace(/^-/, ''))
    return by === undefined ? undefined : { by, isDescending: word!.startsWith('-') }
  })
}

function staleParam(): QueryParam<boolean | undefined> {
  const param = booleanParam('Only `false`: all names are listed, and `last_seen_at` says which are stale.')
  return {
    ...param,
    read(text, name) {
      const read = param.read(text, name)
      return read.ok && read.value === true
        ? err(invalidInput(name, 'Names that are no longer used are listed too: tell them by last_seen_at.'))
        : read
    },
  }
}

function kindParam(): QueryParam<(typeof kinds)[number] | undefined> {
  return optional(Type.Union(kinds.map(kind => Type.Literal(kind))), (text, name) => {
    const kind = kinds.find(known => known === text)
    return kind === undefined
      ? err(invalidInput(name, `Must be one of: ${kinds.join(', ')}. Groups and sessions have no list here.`))
      : ok(kind)
  })
}
