// Selects the fields of a record that become properties, and renames them. Source: docs/wire/import.md §1.0 (empty values,
// unknown fields), §1.9.

import { getOwnValue, type JsonObject, type JsonValue, mergeObjects, setOwnValue } from '#core/json.ts'
import { type RecordNote, RecordReject } from '#importer/records/imported-event.ts'
import { isEmptyValue, putProperty } from '#importer/records/record-fields.ts'
import { findValueAtPath, parseObjectMembers } from './field-path.ts'
import { fieldTypes, type TypeForm } from './field-types.ts'
import type { FieldSelection, Mapping } from './mapping-schema.ts'
import { listMappedFields } from './mapping-watch.ts'

/** Reads the fields of one record, converted to the types that the mapping gives them. */
export class TypedFields {
  readonly record: JsonObject
  readonly #types: NonNullable<Mapping['types']>
  readonly #nulls: readonly string[]
  readonly #form: TypeForm
  readonly #notes: RecordNote[]

  constructor(record: JsonObject, { types = {}, nulls = [] }: Mapping, form: TypeForm, notes: RecordNote[]) {
    this.record = record
    this.#types = types
    this.#nulls = nulls
    this.#form = form
    this.#notes = notes
  }

  at(path: string): JsonValue | undefined {
    return this.typed(findValueAtPath(this.record, path), path)
  }

  /** A value that does not have the field's type is returned unchanged, with a note, so that nothing is lost. */
  typed(value: JsonValue | undefined, path: string): JsonValue | undefined {
    if (typeof value === 'string' && this.#nulls.includes(value)) return undefined
    const type = Object.hasOwn(this.#types, path) ? this.#types[path] : undefined
    if (type === undefined || value === undefined || isEmptyValue(value)) return value
    const typed = fieldTypes[type](value, this.#form, path)
    if (typed === undefined) this.note(`type_mismatch:${path}`)
    return typed ?? value
  }

  /** Adds each note only once, no matter how many parts of the event use the field. */
  note(note: RecordNote): void {
    if (!this.#notes.includes(note)) this.#notes.push(note)
  }
}

/** The fields that a selection names. @throws RecordReject `properties_not_object` for a path that must lead to an object. */
export function selectFields(fields: TypedFields, selection: FieldSelection): JsonObject {
  const selected: JsonObject = {}
  if (typeof selection === 'string') {
    const value = fields.at(selection)
    if (value === undefined || isEmptyValue(value)) return selected
    const members = parseObjectMembers(value)
    if (members === null) throw new RecordReject('properties_not_object', selection)
    for (const [key, member] of Object.entries(members))
      putProperty(selected, key, fields.typed(member, `${selection}.${key}`))
    return selected
  }
  const entries = Array.isArray(selection) ? selection.map(path => [path, path] as const) : Object.entries(selection)
  for (const [name, path] of entries) putProperty(selected, name, fields.at(path))
  return selected
}

/**
 * @param names new names by old names. If another property has the new name already, that property stays, and the property
 * to rename is dropped.
 */
export function renameFields(properties: JsonObject, names: Readonly<Record<string, string>>): JsonObject {
  if (Object.keys(names).length === 0) return properties
  const result: JsonObject = {}
  for (const [key, value] of Object.entries(properties)) {
    const name = Object.hasOwn(names, key) ? names[key]! : key
    if (name === key || getOwnValue(properties, name) === undefined) setOwnValue(result, name, value)
  }
  return result
}

/** Selects, for each record, the properties of its event and the fields that no part of the event carries. */
export function createFieldSelector(mapping: Mapping) {
  const { omit = [], properties, rename = {} } = mapping
  const fields = listMappedFields(mapping).filter(
    ({ key }) => !/^(?:properties|types|filters|rename|spread)\b/.test(key),
  )
  /** The fields that other parts of the event are made of. */
  const used = new Set(fields.map(({ name }) => name).filter(name => !Object.hasOwn(rename, name)))
  const spread = new Set(mapping.spread)
  const paths = typeof properties === 'string' ? [properties] : Object.values(properties ?? {}).flat()
  const isSelected = (key: string) => paths.some(path => path === key || path.startsWith(`${key}.`))
  return {
    selectProperties: (from: TypedFields): JsonObject =>
      properties === undefined ? selectRemainingFields(from, used, spread) : selectFields(from, properties),
    listDroppedFields(record: JsonObject): string[] {
      const omitted = omit.filter(key => Object.hasOwn(record, key))
      if (properties === undefined) return omitted
      return [...omitted, ...Object.keys(record).filter(key => !used.has(key) && !isSelected(key))]
    },
  }
}

/** All fields that are not used otherwise, with the members of spread fields. */
function selectRemainingFields(
  fields: TypedFields,
  used: ReadonlySet<string>,
  spread: ReadonlySet<string>,
): JsonObject {
  const remaining: JsonObject = {}
  const inner: JsonObject = {}
  for (const [key, value] of Object.entries(fields.record)) {
    if (used.has(key)) continue
    const members = spread.has(key) ? parseObjectMembers(value) : null
    if (members === null && spread.has(key) && !isEmptyValue(value)) fields.note(`spread_no_object:${key}`)
    if (members === null) putProperty(remaining, key, fields.typed(value, key))
    else
      for (const [name, member] of Object.entries(members))
        putProperty(inner, name, fields.typed(member, `${key}.${name}`))
  }
  return mergeObjects(inner, remaining)
}
