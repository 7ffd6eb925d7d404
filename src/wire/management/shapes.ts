// Parts that the schemas of several resources share.

import Type, { type TSchema } from 'typebox'
import { type JsonObject, setOwnValue } from '#core/json.ts'

/** An instant as ISO 8601 text in UTC with milliseconds. */
export const instantSchema = Type.String({ format: 'date-time' })
export const uuidSchema = Type.String({ format: 'uuid' })
/** An ascending number of at most 15 digits: a double holds no more exactly, and a database's 64 bits cannot hold 1e20. */
export const idSchema = Type.Integer({ minimum: 1, maximum: 999_999_999_999_999 })
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
/**
 * Any JSON object, with the client's literals kept. @param names the members of the object that Pennon uses; a body in
 * which one of them is misspelt is refused.
 */
export const jsonObjectSchema = (description?: string, names: readonly string[] = []) =>
  Type.Unsafe<JsonObject>({
    type: 'object',
    ...(description === undefined ? {} : { description }),
    ...(names.length === 0 ? {} : { properties: Object.fromEntries(names.map(name => [name, Type.Unknown()])) }),
  })

export function formatInstant(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

/** An object from a map whose keys clients chose; safe for any key. */
export function toObjectFromMap(map: ReadonlyMap<string, string>): JsonObject {
  const object: JsonObject = {}
  for (const [key, value] of map) setOwnValue(object, key, value)
  return object
}

/** A list with a count. */
export const countedPageSchema = <T extends TSchema>(item: T) =>
  Type.Object({
    count: Type.Integer(),
    next: nullable(Type.String()),
    previous: nullable(Type.String()),
    results: Type.Array(item),
  })

/** A list that is not counted: persons and groups. */
export const uncountedPageSchema = <T extends TSchema>(item: T) =>
  Type.Object({
    next: nullable(Type.String()),
    previous: nullable(Type.String()),
    results: Type.Array(item),
  })
