// Filters on event properties in a query string: equalities, written as a JSON list of PostHog's property filters.

import Type from 'typebox'
import { getOwnValue, isJsonObject, type JsonValue, parseJson } from '#core/json.ts'
import { isNestedDeeperThan } from '#core/json-text.ts'
import type { PropertyEquality } from '#core/live/live-filter.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '#wire/wire-error.ts'
import { createInvalidError, createInvalidInputError } from './answers.ts'
import { filterParam, type QueryParam } from './query-params.ts'

const filterCountMax = 20

export function propertiesParam(): QueryParam<readonly PropertyEquality[] | undefined> {
  const description =
    'JSON list of filters on event properties, all of which must match: [{"key": "plan", "value": "pro"}].'
  return filterParam(Type.String({ description, minLength: 2 }), readProperties)
}

function readProperties(text: string, name: string): Result<readonly PropertyEquality[], WireError> {
  const filters = readFilterList(text, name, '[{"key": "plan", "value": "pro"}]')
  if (!filters.ok) return filters
  const equalities: PropertyEquality[] = []
  for (const [index, filter] of filters.value.entries()) {
    const equality = readEquality(filter, `${name}.${index}`)
    if (!equality.ok) return equality
    equalities.push(equality.value)
  }
  return ok(equalities)
}

/** Reads a JSON list of filters without checking them. @param example an accepted list, for the error. */
export function readFilterList(text: string, name: string, example: string): Result<readonly JsonValue[], WireError> {
  const filters = parseJsonOrUndefined(text)
  if (!Array.isArray(filters)) return err(createInvalidError(name, `Must be a JSON list such as ${example}.`))
  if (filters.length > filterCountMax) return err(createInvalidInputError(name, `At most ${filterCountMax} filters.`))
  return ok(filters)
}

function readEquality(filter: JsonValue, path: string): Result<PropertyEquality, WireError> {
  if (!isJsonObject(filter)) return err(createInvalidError(path, 'A filter must be an object with key and value.'))
  const key = getOwnValue(filter, 'key')
  if (typeof key !== 'string' || key === '') return err(createInvalidError(`${path}.key`, 'A filter needs a key.'))
  const operator = getOwnValue(filter, 'operator') ?? 'exact'
  if (operator !== 'exact') return err(createInvalidInputError(`${path}.operator`, 'Only exact is supported here.'))
  const type = getOwnValue(filter, 'type') ?? 'event'
  if (type !== 'event') return err(createInvalidInputError(`${path}.type`, 'Only event properties are supported here.'))
  const sent = getOwnValue(filter, 'value')
  const value = Array.isArray(sent) && sent.length === 1 ? sent[0] : sent
  if (value === undefined || value === null) return err(createInvalidError(`${path}.value`, 'A filter needs a value.'))
  if (Array.isArray(value))
    return err(createInvalidInputError(`${path}.value`, 'Only a single value is supported here.'))
  return ok({ key, value })
}

/** Undefined for text that is not JSON or is nested too deeply; the caller's error names the expected form. */
export function parseJsonOrUndefined(text: string): JsonValue | undefined {
  if (isNestedDeeperThan(text, 20)) return undefined
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}
