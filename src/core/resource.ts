// Declares a resource once: its columns, the bodies that set its fields, its JSON in the private API and its entries in the
// activity log follow from the fields. The rules for writes are in `services/manage`.

import type { Author } from './author.ts'
import { getOwnValue, type JsonObject, type JsonValue, mergeObjects, setOwnValue } from './json.ts'
import { ok, type Result } from './result.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

interface KindValues {
  text: string
  uuid: string
  integer: number
  boolean: boolean
  object: JsonObject
  texts: readonly string[]
  integers: readonly number[]
  /** An object whose fields are declared too (`Field.fields`). */
  group: object
  /** An object whose members appear next to the other fields in the private API. */
  members: JsonObject
  /** Epoch ms; ISO 8601 in the private API. */
  instant: number
  author: Author
}
export type FieldKind = keyof KindValues

export interface Field<T = unknown, N extends string = string, C extends string = string> {
  readonly kind: FieldKind
  /** The name in the private API. */
  readonly name: N
  /** The name of the column, usually the same as `name`. */
  readonly column: C
  readonly isNullable: boolean
  /** JSON Schema of the value in a body; null for a field that no body sets. */
  readonly schema: JsonSchema | null
  /** Whether responses of the private API show the field. */
  readonly isShown: boolean
  /** Whether the activity log shows the field too: usually when a body may set it. */
  readonly isLogged: boolean
  /**
   * For a field of kind `members`: its members, in the order in which responses show them. If none are declared, responses
   * show every member.
   */
  readonly members: Readonly<Record<string, Member>>
  /** For a field of kind `group`: its fields. */
  readonly fields: ResourceFields
  /** The fields of the group appear next to the other fields in the private API. */
  readonly isFlat: boolean
  /** The field's value in a new item whose body does not set it. If absent, a nullable field is null then. */
  readonly initial?: T
}

export interface Member {
  readonly schema: JsonSchema
  /** The value that responses show in place of null. */
  readonly shown?: JsonValue
}

export type ResourceFields = Readonly<Record<string, Field>>

export interface Resource {
  readonly table: string
  readonly fields: ResourceFields
  /** Names of the fields that the body of a new item must have. */
  readonly required: readonly string[]
  /** A deleted item keeps its row, in a column `deleted`, and its id is never used again. */
  readonly keepsDeleted?: true
  /** A write does not change the revision of definitions: flag evaluation and browsers do not use this resource. */
  readonly keepsRevision?: true
}

type ValueOf<F> = F extends Field<infer T> ? T : never
type NameOf<F> = F extends Field<unknown, infer N> ? N : never
type ColumnNameOf<F> = F extends Field<unknown, string, infer C> ? C : never

export type ItemOf<R extends Pick<Resource, 'fields'>> = { readonly [K in keyof R['fields']]: ValueOf<R['fields'][K]> }

/** The fields that the body of a new item must have. */
export type RequiredKey<R extends Resource> = {
  [K in keyof R['fields']]: NameOf<R['fields'][K]> extends R['required'][number] ? K : never
}[keyof R['fields']]

/** The fields that a body sets, by name; the members of a field of kind `members` are not typed. */
export type BodyOf<R extends Resource> = {
  readonly [K in keyof R['fields'] as NameOf<R['fields'][K]>]?: ValueOf<R['fields'][K]> extends infer T
    ? R['fields'][K]['kind'] extends 'instant'
      ? string | Extract<T, null>
      : T
    : never
}

/** A row of the resource's table. */
export type RowOf<R extends Pick<Resource, 'fields'>> = {
  [K in keyof R['fields'] as ColumnNameOf<R['fields'][K]>]: ColumnOf<ValueOf<R['fields'][K]>>
}
type ColumnOf<T> = T extends boolean ? number : T extends string | number | null ? T : string

type Options<T> = Partial<Omit<Field<T>, 'kind' | 'name' | 'column' | 'isNullable'>>

function declareField<T, const N extends string>(kind: FieldKind, name: N, options: Options<T>): Field<T, N, N> {
  return {
    kind,
    name,
    column: name,
    isNullable: false,
    schema: null,
    isShown: true,
    isLogged: ['members', 'group'].includes(kind) || (options.schema ?? null) !== null,
    members: {},
    fields: {},
    isFlat: false,
    ...options,
  }
}

export const textField = <const N extends string>(name: N, options: Options<string> = {}) =>
  declareField<string, N>('text', name, options)
export const uuidField = <const N extends string>(name: N) => declareField<string, N>('uuid', name, {})
export const choiceField = <const N extends string, const T extends string>(
  name: N,
  choices: readonly T[],
  options: Options<T> = {},
) => declareField<T, N>('text', name, { schema: oneOf(choices), ...options })
export const integerField = <const N extends string, T extends number = number>(name: N, options: Options<T> = {}) =>
  declareField<T, N>('integer', name, options)
export const booleanField = <const N extends string>(name: N, options: Options<boolean> = {}) =>
  declareField<boolean, N>('boolean', name, options)
export const objectField = <const N extends string>(name: N, options: Options<JsonObject> = {}) =>
  declareField<JsonObject, N>('object', name, options)
export const membersField = <const N extends string>(name: N, ofMembers: Readonly<Record<string, Member>>) =>
  declareField<JsonObject, N>('members', name, { members: ofMembers, initial: {} })
export const textsField = <const N extends string>(name: N, options: Options<readonly string[]> = {}) =>
  declareField<readonly string[], N>('texts', name, options)
export const integersField = <const N extends string>(name: N, options: Options<readonly number[]> = {}) =>
  declareField<readonly number[], N>('integers', name, options)
export const groupField = <const N extends string, F extends ResourceFields>(
  name: N,
  fields: F,
  options: Partial<Pick<Field, 'isFlat' | 'schema'>>,
) => declareField<ItemOf<{ readonly fields: F }>, N>('group', name, { fields, ...options })
export const instantField = <const N extends string>(name: N, options: Options<number> = {}) =>
  declareField<number, N>('instant', name, options)
export const authorField = <const N extends string>(name: N) => declareField<Author, N>('author', name, {})

/** A copy of the field that is stored in a column with another name. */
export function storeInColumn<T, N extends string, const C extends string>(
  column: C,
  field: Field<T, N>,
): Field<T, N, C> {
  return { ...field, column }
}

export function nullable<T, N extends string, C extends string>(field: Field<T, N, C>): Field<T | null, N, C> {
  return { ...field, isNullable: true, schema: field.schema && orNull(field.schema) }
}

export const oneOf = (values: readonly string[]): JsonSchema => ({ anyOf: values.map(value => ({ const: value })) })
export const orNull = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, { type: 'null' }] })
/** A double holds no more than 15 digits exactly, and no engine's 64 bits hold 1e20. */
export const idSchema: JsonSchema = { type: 'integer', minimum: 1, maximum: 999_999_999_999_999 }
export const nameSchema = (maxLength: number): JsonSchema => ({
  ...{ type: 'string', minLength: 1, maxLength, pattern: '\\S' },
})
export const instantSchema: JsonSchema = {
  type: 'string',
  maxLength: 64,
  description: "A time with offset, a date, or a local time in the project's time zone.",
}

/** A new item's initial values for the fields that its body does not set. */
export function buildInitialFields<R extends Pick<Resource, 'fields'>>({ fields }: R): Partial<ItemOf<R>> {
  const values = Object.entries(fields).flatMap(([key, { initial, isNullable }]) =>
    initial !== undefined ? [[key, initial]] : isNullable ? [[key, null]] : [],
  )
  return Object.fromEntries(values)
}

/** @param patch for a field of kind `members` or `group`, only what changes in it. */
export function patchItem<R extends Resource>(
  { fields }: R,
  item: ItemOf<R>,
  patch: { readonly [K in keyof R['fields']]?: unknown },
): ItemOf<R> {
  const patched: Record<string, unknown> = {}
  for (const [key, { kind }] of Object.entries(fields)) {
    const change = patch[key as keyof typeof patch]
    if (change === undefined) patched[key] = item[key]
    else if (kind === 'members' || kind === 'group')
      patched[key] = mergeObjects(item[key] as JsonObject, change as JsonObject)
    else patched[key] = change
  }
  return patched as ItemOf<R>
}

/** The item as the private API shows it, with the names of its fields, but without its author. */
export function toShownItem<R extends Resource>({ fields }: R, item: ItemOf<R>): JsonObject {
  return showFields(Object.entries(fields), item)
}

/** The item as the activity log shows it. */
export function toActivityLogFields<R extends Resource>({ fields }: R, item: ItemOf<R>): JsonObject {
  return showFields(
    Object.entries(fields).filter(([, { isLogged }]) => isLogged),
    item,
  )
}

function showFields(fields: readonly (readonly [string, Field])[], item: Readonly<Record<string, unknown>>) {
  const shown: JsonObject = {}
  for (const [key, { kind, name, isShown, isFlat, ...of }] of fields) {
    if (!isShown || kind === 'author') continue
    const value = item[key]
    if (kind === 'members') showMembers(of.members, value as JsonObject, shown)
    else if (kind === 'group') {
      const group = showFields(Object.entries(of.fields), value as Readonly<Record<string, unknown>>)
      if (isFlat) Object.assign(shown, group)
      else shown[name] = group
    } else if (kind === 'instant') shown[name] = value === null ? null : new Date(value as number).toISOString()
    else shown[name] = value as JsonValue
  }
  return shown
}

function showMembers(members: Field['members'], value: JsonObject, shown: JsonObject): void {
  const names = Object.keys(members)
  for (const name of names.length > 0 ? names : Object.keys(value))
    setOwnValue(shown, name, getOwnValue(value, name) ?? members[name]?.shown ?? null)
}

/**
 * The fields that a body sets; for a field of kind `group` or `members`, an object with what it sets. Null means the
 * initial value of a field that is never null.
 * @param readInstant reads a time; if it fails, its error is returned.
 */
export function readFields<R extends Pick<Resource, 'fields'>, E>(
  { fields }: R,
  body: JsonObject,
  readInstant: (text: string, name: string) => Result<number, E>,
): Result<Partial<ItemOf<R>>, E> {
  const read: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(fields)) {
    const { kind, name, schema, isNullable, initial, members, fields: ofGroup, isFlat } = field
    const value = getOwnValue(body, name)
    if (kind === 'members') {
      const sent = pickMembers(Object.keys(members), body)
      if (sent !== null) read[key] = sent
    } else if (kind === 'group') {
      const of = isFlat ? body : (value ?? {})
      const group = readFields({ fields: ofGroup }, of as JsonObject, readInstant)
      if (!group.ok) return group
      if (Object.keys(group.value).length > 0) read[key] = group.value
    } else if (schema === null || value === undefined) continue
    else if (value === null && !isNullable) read[key] = initial
    else if (kind === 'instant' && typeof value === 'string') {
      const time = readInstant(value, name)
      if (!time.ok) return time
      read[key] = time.value
    } else read[key] = value
  }
  return ok(read as Partial<ItemOf<R>>)
}

function pickMembers(names: readonly string[], body: JsonObject): JsonObject | null {
  const picked: JsonObject = {}
  for (const name of names) {
    const value = getOwnValue(body, name)
    if (value !== undefined) setOwnValue(picked, name, value)
  }
  return Object.keys(picked).length === 0 ? null : picked
}
