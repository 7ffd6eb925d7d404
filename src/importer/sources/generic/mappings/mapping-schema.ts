// The schema of mapping files, which name the fields of a record for each part of an event. Source: docs/wire/import.md §1.9.

import { type JsonObject, toPlainNumbers } from '#core/json.ts'
import { findIntendedName } from '#core/nearest-name.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { type SchemaFault, type Static, Type } from '../../../records/file-schema.ts'
import { fieldTypes } from './field-types.ts'
import { filterSchema, filtersSchema, scalar } from './record-filters.ts'

const strict = { additionalProperties: false }
const name = Type.String({ minLength: 1 })
/** A field such as `user_id`; `user.id` is the field `id` of the object in `user`. */
const path = Type.String({ minLength: 1 })
/** One path or several, of which the first that a record has is used. */
const paths = Type.Union([path, Type.Array(path, { minItems: 1 })])
/** Unit of numeric times. Default: inferred from their size. */
const unit = Type.Enum(['s', 'ms', 'us', 'ns'])
/** The path of an object, a list of paths, or a map from new names to paths. */
const selection = Type.Union([path, Type.Array(path), Type.Record(path)])
const newName = Type.Object(
  {
    event: name,
    properties: Type.Optional(Type.Record(scalar)),
    rename: Type.Optional(Type.Record(name)),
  },
  strict,
)
const leftOut = Type.Object({ skip: Type.Union([Type.Literal('session_marker'), Type.Literal('filtered')]) }, strict)
/** The new name of an event, optionally with fixed properties and renamed fields; or why such events are skipped. */
const renamed = Type.Union([name, newName, leftOut])

export const mappingSchema = Type.Object(
  {
    event: Type.Optional(paths),
    event_constant: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    event_names: Type.Optional(Type.Record(renamed)),
    distinct_id: paths,
    timestamp: paths,
    unit: Type.Optional(unit),
    /** The order in dates such as `01.09.2026` and `1/9/2026`. */
    date_order: Type.Optional(Type.Enum(['dmy', 'mdy'])),
    /** The decimal separator of numbers in texts. Default: a point. */
    decimal_separator: Type.Optional(Type.Enum([',', '.'])),
    uuid: Type.Optional(paths),
    /** Default: every field that has no other use. */
    properties: Type.Optional(selection),
    /** Objects, or JSON texts of objects, whose members become top-level properties. */
    spread: Type.Optional(Type.Array(path)),
    rename: Type.Optional(Type.Record(name)),
    omit: Type.Optional(Type.Array(path)),
    types: Type.Optional(Type.Record(Type.Enum(Object.keys(fieldTypes) as (keyof typeof fieldTypes)[]))),
    /** Texts that mean null, such as `NULL` in warehouse exports. */
    nulls: Type.Optional(Type.Array(name)),
    groups: Type.Optional(Type.Record(path)),
    /** Properties of the person. */
    set: Type.Optional(selection),
    /** Properties of the person that keep their first value. */
    set_once: Type.Optional(selection),
    anon_id: Type.Optional(paths),
    source_timezone: Type.Optional(Type.String({ minLength: 1 })),
    /** Only records that match all of these become events. */
    filters: Type.Optional(filtersSchema),
  },
  strict,
)

export type Mapping = Static<typeof mappingSchema>
export type FieldSelection = NonNullable<Mapping['properties']>
export type RenamedEvent = NonNullable<Mapping['event_names']>[string]

/** @throws ImportConfigError that names the key at fault. */
export function checkMapping(value: JsonObject): Mapping {
  // The mapping keeps literals such as 9.50 as written, but the schema checks plain numbers.
  const faults = mappingSchema.faults(toPlainNumbers(value))
  if (faults.length > 0) {
    const unknown = describeUnknownKey(faults)
    if (unknown !== null) throw new ImportConfigError(`the mapping cannot be used: ${unknown}`)
    // The deepest fault is the most specific; the other faults only say that an alternative does not match.
    const [first] = faults.toSorted((a, b) => countSteps(b.at) - countSteps(a.at))
    throw new ImportConfigError(`the mapping cannot be used: ${first!.at || '/'} ${first!.what}`)
  }
  const mapping = value as Mapping
  if (mapping.event === undefined && mapping.event_constant === undefined)
    throw new ImportConfigError(
      'the mapping needs event, the path of the name, or event_constant, a name for all records',
    )
  return mapping
}

/** The allowed keys of each object in a mapping, by the place of the object. */
const knownKeys: readonly (readonly [place: RegExp, keys: readonly string[]])[] = [
  [/^$/, Object.keys(mappingSchema.properties)],
  [/^\/filters\/\d+$/, Object.keys(filterSchema.properties)],
  [/^\/event_names\/[^/]+$/, [newName, leftOut].flatMap(({ properties }) => Object.keys(properties))],
]

/** @returns a message that names an unknown key and the key that was probably meant; null if all keys are known. */
function describeUnknownKey(faults: readonly SchemaFault[]): string | null {
  for (const { at, unknownKeys = [] } of faults) {
    const keys = knownKeys.find(([place]) => place.test(at))?.[1]
    const key = unknownKeys.find(each => keys?.includes(each) === false)
    if (keys === undefined || key === undefined) continue
    const near = findIntendedName(key, keys)
    const where = at === '' ? 'it' : at
    return `${where} has no key ${JSON.stringify(key)}: ${near === null ? `its keys are ${keys.join(', ')}` : `did you mean ${near}?`}`
  }
  return null
}

function countSteps(path: string): number {
  return path.split('/').length
}
