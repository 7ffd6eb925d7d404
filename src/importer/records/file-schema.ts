// Validates files of an import, so that a damaged or edited file is noticed when it is read, not when a value of the wrong
// type is used. Unknown keys are allowed unless a schema is strict, since later versions may write additional keys. We
// define these few types ourselves because a schema library takes longer to load than most commands run.

import type { JsonObject } from '#core/json.ts'

export interface SchemaFault {
  /** A JSON pointer; empty for the whole value. */
  readonly at: string
  /** The fault, such as `must be string`: completes a sentence that starts with the place. */
  readonly what: string
  /** The keys that a strict object must not have. */
  readonly unknownKeys?: readonly string[]
}

export interface Schema<T> {
  readonly faults: (value: unknown) => readonly SchemaFault[]
  /** Never set; only tells the compiler the type. */
  readonly type?: T
}

interface OptionalSchema<T> extends Schema<T> {
  readonly isOptional: true
}

interface ObjectSchema<P extends Properties> extends Schema<ObjectOf<P>> {
  readonly properties: P
}

interface Properties {
  readonly [key: string]: Schema<unknown>
}

export type Static<S> = S extends Schema<infer T> ? T : never

/** Makes arrays and objects read-only, except `jsonObject`, which stays as it is. */
export type DeepReadonly<T> = T extends readonly (infer U)[]
  ? readonly DeepReadonly<U>[]
  : T extends object
    ? JsonObject extends T
      ? T
      : { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T

type OptionalKeys<P> = { [K in keyof P]: P[K] extends OptionalSchema<unknown> ? K : never }[keyof P]
type ObjectOf<P> = { -readonly [K in Exclude<keyof P, OptionalKeys<P>>]: Static<P[K]> } & {
  -readonly [K in OptionalKeys<P>]?: Static<P[K]>
}

const none: readonly SchemaFault[] = []

function createSchema<T>(what: string, isOfKind: (value: unknown) => boolean): Schema<T> {
  const faults = [{ at: '', what }]
  return { faults: value => (isOfKind(value) ? none : faults) }
}

/** Creates schemas, with the same names as in TypeBox, which validates requests. */
export const Type = {
  Number: () => createSchema<number>('must be number', Number.isFinite),
  Boolean: () => createSchema<boolean>('must be boolean', value => typeof value === 'boolean'),
  Null: () => createSchema<null>('must be null', value => value === null),
  Literal: <const V extends string | number | boolean>(literal: V) =>
    createSchema<V>(`must be ${JSON.stringify(literal)}`, value => value === literal),
  Enum: <const V extends string>(values: readonly V[]) =>
    createSchema<V>(`must be one of ${values.join(', ')}`, value => values.includes(value as V)),
  String: ({ minLength = 0, maxLength = Number.POSITIVE_INFINITY } = {}): Schema<string> => {
    const text = createSchema<string>('must be string', value => typeof value === 'string')
    const fits = createSchema<string>(`must have ${minLength} to ${maxLength} characters`, value =>
      hasAllowedLength(value as string),
    )
    const hasAllowedLength = ({ length }: string) => length >= minLength && length <= maxLength
    return { faults: value => (typeof value === 'string' ? fits : text).faults(value) }
  },
  Array: <T>(entry: Schema<T>, { minItems = 0 } = {}): Schema<T[]> => ({
    faults: value => {
      if (!Array.isArray(value)) return [{ at: '', what: 'must be array' }]
      if (value.length < minItems) return [{ at: '', what: `must have ${minItems} items or more` }]
      return findEntryFaults(value.entries(), entry)
    },
  }),
  Object: <P extends Properties>(
    properties: P,
    { additionalProperties = true }: { readonly additionalProperties?: boolean } = {},
  ): ObjectSchema<P> => {
    const known = Object.entries(properties)
    return {
      properties,
      faults: value => {
        if (!isObject(value)) return [{ at: '', what: 'must be object' }]
        const missing: string[] = []
        const faults: SchemaFault[] = []
        for (const [key, schema] of known) {
          const entry = value[key]
          if (entry !== undefined) faults.push(...prefixFaultPaths(key, schema.faults(entry)))
          else if (!('isOptional' in schema)) missing.push(key)
        }
        if (missing.length > 0) faults.push({ at: '', what: `must have required properties ${missing.join(', ')}` })
        const unknownKeys = additionalProperties
          ? []
          : Object.keys(value).filter(key => !Object.hasOwn(properties, key))
        if (unknownKeys.length > 0) faults.push({ at: '', what: 'must not have additional properties', unknownKeys })
        return faults
      },
    }
  },
  /** An object with arbitrary keys. */
  Record: <T>(entry: Schema<T>): Schema<Record<string, T>> => ({
    faults: value =>
      isObject(value) ? findEntryFaults(Object.entries(value), entry) : [{ at: '', what: 'must be object' }],
  }),
  Union: <const S extends readonly Schema<unknown>[]>(alternatives: S): Schema<Static<S[number]>> => ({
    faults: value => {
      const all = alternatives.map(({ faults }) => faults(value))
      return all.some(faults => faults.length === 0) ? none : all.flat()
    },
  }),
  Optional: <T>({ faults }: Schema<T>): OptionalSchema<T> => ({ faults, isOptional: true }),
  /** Gives a schema a TypeScript type that is narrower than what the schema checks. */
  Unsafe: <T>({ faults }: Schema<unknown>): Schema<T> => ({ faults }),
}

/** Any object. */
export const jsonObject = Type.Unsafe<JsonObject>(Type.Object({}))

export function allowNull<T>(schema: Schema<T>): Schema<T | null> {
  return Type.Union([schema, Type.Null()])
}

export function matchesSchema<T>(schema: Schema<T>, value: unknown): value is T {
  return schema.faults(value).length === 0
}

function findEntryFaults(
  entries: Iterable<readonly [string | number, unknown]>,
  schema: Schema<unknown>,
): readonly SchemaFault[] {
  const found: SchemaFault[] = []
  for (const [key, entry] of entries) found.push(...prefixFaultPaths(key, schema.faults(entry)))
  return found
}

function prefixFaultPaths(key: string | number, faults: readonly SchemaFault[]): readonly SchemaFault[] {
  if (faults.length === 0) return none
  const place = String(key).replaceAll('~', '~0').replaceAll('/', '~1')
  return faults.map(fault => ({ ...fault, at: `/${place}${fault.at}` }))
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
