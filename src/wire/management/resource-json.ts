// The schemas and the JSON of declared resources (`core/resources/resource.ts`).

import Type, { type Static, type TObject, type TProperties, type TSchema, type TUnsafe } from 'typebox'
import type { JsonObject } from '#core/json.ts'
import { type BodyOf, type Field, type ItemOf, type Resource, showItem } from '#core/resources/resource.ts'
import { authorSchema, encodeAuthor } from './author.ts'
import { instantSchema, jsonObjectSchema, nullable } from './shapes.ts'

type Body<R extends Resource, X extends TProperties> = BodyOf<R> & Static<TObject<X>>
type Required<R extends Resource> = Extract<R['required'][number], keyof BodyOf<R>>

export interface BodySchemas<R extends Resource, X extends TProperties> {
  readonly create: TUnsafe<Body<R, X> & { readonly [N in Required<R>]-?: NonNullable<BodyOf<R>[N]> }>
  readonly update: TUnsafe<Body<R, X>>
}

/** @param extra what bodies set besides the fields. One of its properties may be named in `resource.required`. */
export function bodySchemas<R extends Resource, X extends TProperties>(resource: R, extra: X): BodySchemas<R, X> {
  const fields = Object.fromEntries(
    Object.values(resource.fields).flatMap((field): [string, TSchema][] => {
      if (field.kind === 'members')
        return Object.entries(field.members).map(([name, { schema }]) => [name, Type.Unsafe(schema)])
      return field.schema === null ? [] : [[field.name, Type.Unsafe(field.schema)]]
    }),
  )
  const optional = { ...Type.Partial(Type.Object(fields)).properties, ...extra }
  const required = Object.fromEntries(
    resource.required.flatMap(name => (Object.hasOwn(fields, name) ? [[name, fields[name]!]] : [])),
  )
  return { create: Type.Object({ ...optional, ...required }), update: Type.Object(optional) } as never
}

/** @param extra what answers show besides the fields. */
export function itemSchema(resource: Resource, extra: TProperties): TSchema {
  const shown = Object.values(resource.fields).flatMap((field): [string, TSchema][] => {
    if (!field.isShown) return []
    if (field.kind === 'members')
      return Object.entries(field.members).map(([name, { schema }]) => [name, Type.Unsafe(schema)])
    return [
      [field.name, field.isNullable && field.kind !== 'author' ? nullable(valueSchema(field)) : valueSchema(field)],
    ]
  })
  return Type.Object({ ...Object.fromEntries(shown), ...extra })
}

function valueSchema({ kind, schema }: Field): TSchema {
  switch (kind) {
    case 'integer':
      return Type.Integer()
    case 'boolean':
      return Type.Boolean()
    case 'object':
      return jsonObjectSchema()
    case 'instant':
      return instantSchema
    case 'author':
      return authorSchema
    default:
      return schema !== null && 'anyOf' in schema ? Type.Unsafe(schema) : Type.String()
  }
}

/** The item as answers show it, followed by `extra`. */
export function encodeItem<R extends Resource>(resource: R, item: ItemOf<R>, extra: object): object {
  const authors = Object.entries(resource.fields).flatMap(([key, { kind, name }]) =>
    kind === 'author' ? [[name, encodeAuthor(item[key] as Parameters<typeof encodeAuthor>[0])]] : [],
  )
  return { ...(showItem(resource, item) as JsonObject), ...extra, ...Object.fromEntries(authors) }
}
