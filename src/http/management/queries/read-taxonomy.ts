// Lists a project's events, properties and values, in PostHog's query kinds. Actions and sessions do not exist in Pennon.
// Names come from stored data, like those of `event_definitions` and `property_definitions`.

import type { JsonObject } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { PropertyNameQuery, PropertyValueQuery } from '#ports/events/event-queries.ts'
import { formatEventsText, formatPropertiesText, formatValuesText } from '#wire/insights/tool-texts.ts'
import type { WireError } from '#wire/wire-error.ts'
import {
  createInvalidError,
  createInvalidInputError,
  createNotFoundError,
  createRequiredError,
} from '../kit/answers.ts'
import { type Caller, createMissingScopeError, hasScope } from '../kit/authenticate.ts'
import type { ManagementDeps } from '../kit/deps.ts'

/** As in PostHog. */
const eventCountMax = 500
const valueCountMax = 25
const propertyCountMax = 500

/** The text of an answer. Errors name fields by their path from `args.query` on. */
type Taxonomy = Promise<Result<string, WireError>>

interface Asked {
  readonly caller: Caller
  readonly projectId: number
  readonly fields: JsonObject
  readonly signal: AbortSignal
}

interface Kind {
  readonly fields: readonly string[]
  readonly read: (deps: ManagementDeps, asked: Asked) => Taxonomy
}

const noActions = createNotFoundError('Actions are not supported: use kind event_properties with event names.')

const kinds: Readonly<Record<string, Kind>> = {
  events: { fields: ['limit', 'offset'], read: readEvents },
  event_properties: { fields: ['event_name'], read: readEventProperties },
  event_property_values: { fields: ['event_name', 'property_name'], read: readEventValues },
  entity_properties: { fields: ['entity'], read: readEntityProperties },
  entity_property_values: { fields: ['entity', 'property_name'], read: readEntityValues },
  action_properties: { fields: ['action_id'], read: async () => err(noActions) },
  action_property_values: { fields: ['action_id', 'property_name'], read: async () => err(noActions) },
}
export const taxonomyKinds = Object.keys(kinds)

export async function readTaxonomy(deps: ManagementDeps, query: JsonObject, asked: Omit<Asked, 'fields'>): Taxonomy {
  const { kind: name, ...fields } = query
  if (name === undefined) return err(createRequiredError('args.query.kind'))
  const kind = typeof name === 'string' && Object.hasOwn(kinds, name) ? kinds[name]! : null
  if (kind === null)
    return err(createInvalidInputError('args.query.kind', `Must be one of ${taxonomyKinds.join(', ')}.`))
  const unknown = Object.keys(fields).find(field => !kind.fields.includes(field))
  if (unknown !== undefined)
    return err(
      createInvalidInputError(
        `args.query.${unknown}`,
        `Unknown field. Fields of this kind: ${kind.fields.join(', ')}.`,
      ),
    )
  return kind.read(deps, { ...asked, fields })
}

async function readEvents({ events }: ManagementDeps, { projectId, fields, signal }: Asked): Taxonomy {
  const limit = readWholeNumber(fields, 'limit', { unlessGiven: eventCountMax, minimum: 1, maximum: eventCountMax })
  if (!limit.ok) return limit
  const offset = readWholeNumber(fields, 'offset', { unlessGiven: 0, minimum: 0, maximum: 10_000_000 })
  if (!offset.ok) return offset
  const page = { limit: limit.value, offset: offset.value }
  const { count, results } = await events.listEventNames(
    { projectId, ...page, order: { by: 'count', isDescending: true } },
    signal,
  )
  const next = offset.value + results.length
  return ok(formatEventsText(results, next < count ? next : null))
}

async function readEventProperties(deps: ManagementDeps, asked: Asked): Taxonomy {
  const name = readText(asked.fields, 'event_name')
  if (!name.ok) return name
  const of = { kind: 'event', events: [name.value], onlyOfEvents: true } as const
  const listed = await readProperties(deps, asked, of, 'the newest 2,000 events of this name')
  if (listed !== null) return ok(listed)
  const isKnown = await hasEvent(deps, asked, name.value)
  return isKnown ? ok('These events have no property of at most 16,384 characters.') : err(noSuchEvent)
}

async function readEventValues(deps: ManagementDeps, asked: Asked): Taxonomy {
  const event = readText(asked.fields, 'event_name')
  if (!event.ok) return event
  const sampled = { kind: 'event', events: [event.value], onlyOfEvents: true } as const
  return readValues(deps, asked, { of: { event: event.value }, sampled, whose: 'the newest 2,000 events' }, async () =>
    (await hasEvent(deps, asked, event.value)) ? noSuchProperty : noSuchEvent,
  )
}

async function readEntityProperties(deps: ManagementDeps, asked: Asked): Taxonomy {
  const entity = await findEntity(deps, asked)
  if (!entity.ok) return entity
  const { sampled, of } = entity.value
  const who = of === 'person' ? 'the persons of the newest 2,000 events' : '2,000 groups of this type'
  return ok((await readProperties(deps, asked, sampled, who)) ?? 'There are no properties.')
}

async function readEntityValues(deps: ManagementDeps, asked: Asked): Taxonomy {
  const entity = await findEntity(deps, asked)
  if (!entity.ok) return entity
  const isPerson = entity.value.of === 'person'
  const scope = isPerson ? 'person:read' : 'group:read'
  if (!hasScope(asked.caller, scope)) return err(createMissingScopeError(scope))
  const whose = isPerson ? '50,000 persons' : '50,000 groups'
  return readValues(deps, asked, { ...entity.value, whose }, async () => noSuchProperty)
}

type Sampled = Pick<PropertyNameQuery, 'kind' | 'events' | 'onlyOfEvents'>

async function readProperties(
  { events }: ManagementDeps,
  { projectId, signal }: Asked,
  sampled: Sampled,
  of: string,
): Promise<string | null> {
  const page = { limit: propertyCountMax, offset: 0 }
  const { count, results } = await events.listPropertyNames({ projectId, ...sampled, ...page }, signal)
  return count === 0 ? null : formatPropertiesText(results, { count, of })
}

/** @param explainAbsence creates the error for a property that was not found. */
async function readValues(
  { events }: ManagementDeps,
  { projectId, fields, signal }: Asked,
  { of, sampled, whose }: { readonly of: PropertyValueQuery['of']; readonly sampled: Sampled; readonly whose: string },
  explainAbsence: () => Promise<WireError>,
): Taxonomy {
  const name = readText(fields, 'property_name')
  if (!name.ok) return name
  const found = await events.listPropertyValues({ projectId, of, name: name.value, limit: valueCountMax }, signal)
  if (found.results.length === 0) {
    const page = { limit: 1, offset: 0 }
    const { count } = await events.listPropertyNames({ projectId, ...sampled, names: [name.value], ...page }, signal)
    if (count === 0) return err(await explainAbsence())
  }
  return ok(formatValuesText(found, whose))
}

/** An event name is known if an event with this name exists. */
async function hasEvent({ events }: ManagementDeps, { projectId, signal }: Asked, event: string): Promise<boolean> {
  const found = await events.listEvents({ projectId, event, descending: true, limit: 1 }, signal)
  return found.events.length > 0
}

interface Entity {
  readonly of: 'person' | { readonly groupTypeIndex: number }
  readonly sampled: Sampled
}

/** As in PostHog, an entity may also be named in the plural. */
async function findEntity(
  { management }: ManagementDeps,
  { projectId, fields }: Asked,
): Promise<Result<Entity, WireError>> {
  const entity = readText(fields, 'entity')
  if (!entity.ok) return entity
  const names = [
    entity.value,
    entity.value.replace(/ies$/, 'y'),
    entity.value.replace(/e?s$/, ''),
    entity.value.replace(/s$/, ''),
  ]
  const types = await management.listGroupTypes(projectId)
  const type = names.map(name => types.find(known => known.name === name)).find(known => known !== undefined)
  if (type !== undefined) {
    const groups = { groupTypeIndex: type.index }
    return ok({ of: groups, sampled: { kind: groups } })
  }
  if (names.includes('person')) return ok({ of: 'person', sampled: { kind: 'person' } })
  const there = ['person', ...types.map(({ name }) => name)].join(', ')
  const detail = names.includes('session')
    ? 'There is no sessions table: use the column $session_id of events.'
    : `Unknown entity. Available: ${there}.`
  return err(createInvalidInputError('args.query.entity', detail))
}

const noSuchEvent = createNotFoundError('The project has no event with this name. Use kind events to list event names.')
const noSuchProperty = createNotFoundError(
  'No property with this name was found. Use event_properties or entity_properties to list property names.',
)

const textLengthMax = 1_000

function readText(fields: JsonObject, name: string): Result<string, WireError> {
  const value = fields[name]
  const attr = `args.query.${name}`
  if (value === undefined || value === '') return err(createRequiredError(attr))
  if (typeof value !== 'string') return err(createInvalidError(attr, 'Must be of type string.'))
  const isRead = value.length <= textLengthMax && !value.includes('\0')
  return isRead ? ok(value) : err(createInvalidInputError(attr, `At most ${textLengthMax} characters, without NUL.`))
}

function readWholeNumber(
  fields: JsonObject,
  name: string,
  {
    unlessGiven,
    minimum,
    maximum,
  }: { readonly unlessGiven: number; readonly minimum: number; readonly maximum: number },
): Result<number, WireError> {
  const value = fields[name] ?? unlessGiven
  const attr = `args.query.${name}`
  if (typeof value !== 'number' || !Number.isInteger(value))
    return err(createInvalidError(attr, 'Must be of type integer.'))
  return value >= minimum && value <= maximum
    ? ok(value)
    : err(createInvalidInputError(attr, `Must be ${minimum} to ${maximum}.`))
}
