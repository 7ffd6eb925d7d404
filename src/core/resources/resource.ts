// Declares a resource once: its columns, the bodies that set its fields, its JSON in the private API and its entries in
// the activity log follow from the fields. What a write decides stays in `services/manage`.

import type { Author } from '../author.ts'
import { type JsonObject, type JsonValue, ownValue, setOwn } from '../json.ts'
import { ok, type Result } from '../result.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

interface KindValues {
  text: string
  integer: number
  boolean: boolean
  object: JsonObject
  /** An object whose members stand beside the other fields in the private API. */
  members: JsonObject
  /** Epoch ms; ISO 8601 in the private API. */
  instant: number
  author: Author
}
export type FieldKind = keyof KindValues

export interface Field<T = unknown, N extends string = string> {
  readonly kind: FieldKind
  /** The name of the column, and of the field in the private API. */
  readonly name: N
  readonly isNullable: boolean
  /** JSON Schema of the value in a body; null for a field that no body sets. */
  readonly schema: JsonSchema | null
  /** Whether answers show the field. The activity log shows those of them that a body may set. */
  readonly isShown: boolean
  /** Of a field of kind `members`, in the order of answers. */
  readonly members: Readonly<Record<string, Member>>
  /** The value in a new item that does not set it; a nullable field is null then. */
  readonly initial?: T
}

export interface Member {
  readonly schema: JsonSchema
  /** What answers show in the place of null. */
  readonly shown?: JsonValue
}

export interface Resource {
  readonly table: string
  readonly fields: Readonly<Record<string, Field>>
  /** Names of the fields that the body of a new item must have. */
  readonly required: readonly string[]
  /** A deleted item keeps its row, in a column `deleted`, and its id is never used again. */
  readonly keepsDeleted?: true
}

type ValueOf<F> = F extends Field<infer T> ? T : never
type NameOf<F> = F extends Field<unknown, infer N> ? N : never

export type ItemOf<R extends Resource> = { readonly [K in keyof R['fields']]: ValueOf<R['fields'][K]> }

/** What a body says of the fields, by their names; its members of `members` are not typed. */
export type BodyOf<R extends Resource> = {
  readonly [K in keyof R['fields'] as NameOf<R['fields'][K]>]?: ValueOf<R['fields'][K]> extends infer T
    ? R['fields'][K]['kind'] extends 'instant'
      ? string | Extract<T, null>
      : T
    : never
}

/** A row of the resource's table. */
export type RowOf<R extends Resource> = {
  [K in keyof R['fields'] as NameOf<R['fields'][K]>]: ColumnOf<ValueOf<R['fields'][K]>>
}
type ColumnOf<T> = T extends boolean ? number : T extends string | number | null ? T : string

type Options<T> = Partial<Pick<Field<T>, 'schema' | 'isShown' | 'members' | 'initial'>>

function declareField<T, const N extends string>(kind: FieldKind, name: N, options: Options<T>): Field<T, N> {
  return { kind, name, isNullable: false, schema: null, isShown: true, members: {}, ...options }
}

export const textField = <const N extends string>(name: N, options: Options<string> = {}) =>
  declareField<string, N>('text', name, options)
export const choiceField = <const N extends string, const T extends string>(
  name: N,
  choices: readonly T[],
  options: Options<T> = {},
) => declareField<T, N>('text', name, { schema: oneOf(choices), ...options })
export const integerField = <const N extends string>(name: N, options: Options<number> = {}) =>
  declareField<number, N>('integer', name, options)
export const booleanField = <const N extends string>(name: N, options: Options<boolean> = {}) =>
  declareField<boolean, N>('boolean', name, options)
export const objectField = <const N extends string>(name: N, options: Options<JsonObject> = {}) =>
  declareField<JsonObject, N>('object', name, options)
export const membersField = <const N extends string>(name: N, ofMembers: Readonly<Record<string, Member>>) =>
  declareField<JsonObject, N>('members', name, { members: ofMembers, initial: {} })
export const instantField = <const N extends string>(name: N, options: Options<number> = {}) =>
  declareField<number, N>('instant', name, options)
export const authorField = <const N extends string>(name: N) => declareField<Author, N>('author', name, {})

export function nullable<T, N extends string>(field: Field<T, N>): Field<T | null, N> {
  return { ...field, isNullable: true, schema: field.schema && orNull(field.schema) }
}

export const oneOf = (values: readonly string[]): JsonSchema => ({ anyOf: values.map(value => ({ const: value })) })
export const orNull = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, { type: 'null' }] })
export const nameSchema = (maxLength: number): JsonSchema => ({
  ...{ type: 'string', minLength: 1, maxLength, pattern: '\\S' },
})
export const instantSchema: JsonSchema = {
  type: 'string',
  maxLength: 64,
  description: "A time with offset, a date, or a local time in the project's time zone.",
}

/** The values of a new item that its writer does not set. */
export function initialFields<R extends Resource>({ fields }: R): Partial<ItemOf<R>> {
  const values = Object.entries(fields).flatMap(([key, { initial, isNullable }]) =>
    initial !== undefined ? [[key, initial]] : isNullable ? [[key, null]] : [],
  )
  return Object.fromEntries(values)
}

/** The item by the names of its fields, without its author. */
export function showItem<R extends Resource>({ fields }: R, item: ItemOf<R>): JsonObject {
  return showFields(Object.entries(fields), item)
}

/** What the activity log shows of the item: what a body may set. */
export function showLogged<R extends Resource>({ fields }: R, item: ItemOf<R>): JsonObject {
  const logged = Object.entries(fields).filter(([, { kind, schema }]) => schema !== null || kind === 'members')
  return showFields(logged, item)
}

function showFields(fields: readonly (readonly [string, Field])[], item: Readonly<Record<string, unknown>>) {
  const shown: JsonObject = {}
  for (const [key, { kind, name, isShown, members: ofField }] of fields) {
    if (!isShown || kind === 'author') continue
    const value = item[key]
    if (kind === 'members')
      for (const [member, { shown: instead = null }] of Object.entries(ofField))
        setOwn(shown, member, ownValue(value as JsonObject, member) ?? instead)
    else if (kind === 'instant') shown[name] = value === null ? null : new Date(value as number).toISOString()
    else shown[name] = value as JsonValue
  }
  return shown
}

/**
 * The fields that a body sets; members of `members` as an object with those that it has.
 * @param readInstant reads a time; its error is returned.
 */
export function readFields<R extends Resource, E>(
  { fields }: R,
  body: JsonObject,
  readInstant: (text: string, name: string) => Result<number, E>,
): Result<Partial<ItemOf<R>>, E> {
  const read: Record<string, unknown> = {}
  for (const [key, { kind, name, schema, members: ofField }] of Object.entries(fields)) {
    const value = schema === null ? undefined : ownValue(body, name)
    if (kind === 'members') {
      const sent = Object.keys(ofField).flatMap(member => {
        const one = ownValue(body, member)
        return one === undefined ? [] : [[member, one] as const]
      })
      if (sent.length > 0) read[key] = toObject(sent)
    } else if (kind === 'instant' && typeof value === 'string') {
      const time = readInstant(value, name)
      if (!time.ok) return time
      read[key] = time.value
    } else if (value !== undefined) read[key] = value
  }
  return ok(read as Partial<ItemOf<R>>)
}

function toObject(entries: readonly (readonly [string, JsonValue])[]): JsonObject {
  const made: JsonObject = {}
  for (const [name, value] of entries) setOwn(made, name, value)
  return made
}
