// The names of a project's events and properties, which tools request before they write a condition or a query.

import Type from 'typebox'
import { omitUndefined } from '#core/omit-undefined.ts'
import { err, ok } from '#core/result.ts'
import type { EventNameField, EventNameQuery } from '#ports/events/event-queries.ts'
import {
  encodeEventDefinition,
  encodePropertyDefinition,
  eventDefinitionSchema,
  propertyDefinitionSchema,
} from '#wire/management/definitions.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import { answerFromEventStore, createInvalidInputError } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { answerCountedList, encodeObjects } from '../kit/list-answers.ts'
import { asFilter, commaListParam, convertParam, namesParam } from '../kit/list-filters.ts'
import {
  addDefaultValue,
  booleanParam,
  choiceParam,
  optionalParam,
  pageParams,
  type QueryParam,
  searchParam,
} from '../kit/query-params.ts'

const tag = 'definitions'
const search = searchParam('Substring of the name, case-insensitive.')
const excludeHidden = booleanParam('No effect: names are never hidden.')
const kinds = ['event', 'person'] as const

export function definitionsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'GET /event_definitions',
      id: 'event_definitions_list',
      tag,
      summary: "List the names of the project's events, in alphabetical order.",
      scope: 'event_definition:read',
      query: {
        ...pageParams(),
        search,
        ordering: orderingParam(),
        event_type: asFilter(choiceParam(['all', 'event'], 'No effect: every definition is an event.')),
        exclude_hidden: excludeHidden,
        exclude_stale: staleParam(),
      },
      success: { status: 200, schema: countedPageSchema(eventDefinitionSchema) },
      handle: call => {
        const { project, query, signal } = call
        const asked = { projectId: project.id, ...omitUndefined({ search: query.search, order: query.ordering }) }
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
      route: 'GET /property_definitions',
      id: 'property_definitions_list',
      tag,
      summary: 'List the property names of about 2,000 of the newest events, or of their persons.',
      scope: 'property_definition:read',
      query: {
        ...pageParams(),
        search,
        type: addDefaultValue(kindParam(), 'event'),
        event_names: namesParam('JSON list of event names for `is_seen_on_filtered_events`.'),
        filter_by_event_names: addDefaultValue(booleanParam('Only properties of events in `event_names`.'), false),
        properties: commaListParam('Only these names, comma-separated.'),
        is_feature_flag: booleanParam('true: only `$feature/…` properties. false: all others.'),
        exclude_core_properties: addDefaultValue(booleanParam('Exclude `$…` properties, which SDKs set.'), false),
        excluded_properties: namesParam('JSON list of names to exclude.'),
        exclude_hidden: excludeHidden,
      },
      success: { status: 200, schema: countedPageSchema(propertyDefinitionSchema) },
      handle: call => {
        const { project, query, signal } = call
        const { search, type, properties: names, event_names: events, is_feature_flag: ofFlags } = query
        const asked = {
          ...{ projectId: project.id, kind: type },
          ...{ leavesOutCore: query.exclude_core_properties, onlyOfEvents: query.filter_by_event_names },
          ...omitUndefined({ search, names, excludedNames: query.excluded_properties, events, ofFlags }),
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

/** PostHog's names for the fields by which event names are ordered. */
const orderFields = new Map<string, EventNameField>([
  ['name', 'name'],
  ['last_seen_at', 'lastSeen'],
  ['created_at', 'firstCaptured'],
])

function orderingParam(): QueryParam<EventNameQuery['order']> {
  const choices = [...orderFields.keys()].flatMap(word => [word, `-${word}`])
  const param = choiceParam(choices, 'Sort field; prefix `-` for descending. Default: name.')
  return convertParam(param, word => {
    const by = word === undefined ? undefined : orderFields.get(word.replace(/^-/, ''))
    return by === undefined ? undefined : { by, isDescending: word!.startsWith('-') }
  })
}

function staleParam(): QueryParam<boolean | undefined> {
  const param = booleanParam('Only `false`: all names are listed; `last_seen_at` shows which are stale.')
  return {
    ...param,
    read(text, name) {
      const read = param.read(text, name)
      return read.ok && read.value === true
        ? err(createInvalidInputError(name, 'stale names cannot be excluded: see last_seen_at.'))
        : read
    },
  }
}

function kindParam(): QueryParam<(typeof kinds)[number] | undefined> {
  return optionalParam(Type.Union(kinds.map(kind => Type.Literal(kind))), (text, name) => {
    const kind = kinds.find(known => known === text)
    return kind === undefined
      ? err(
          createInvalidInputError(name, `Must be one of: ${kinds.join(', ')}. Groups and sessions are not supported.`),
        )
      : ok(kind)
  })
}
