// The schemas and the JSON of declared resources (`core/resource.ts`).

import Type, { type Static, type TObject, type TProperties, type TSchema, type TUnsafe } from 'typebox'
import type { JsonObject } from '#core/json.ts'
import {
  type BodyOf,
  type Field,
  type ItemOf,
  type JsonSchema,
  type Resource,
  type ResourceFields,
  toShownItem,
} from '#core/resource.ts'
import { authorSchema, encodeAuthor } from './author.ts'
import { instantSchema, jsonObjectSchema, nullable, uuidSchema } from './shapes.ts'

type Body<R extends Resource, X extends TProperties> = BodyOf<R> & Static<TObject<X>>
type Required<R extends Resource> = Extract<R['required'][number], keyof BodyOf<R>>

export interface BodySchemas<R extends Resource, X extends TProperties> {
  readonly create: TUnsafe<Body<R, X> & { readonly [N in Required<R>]-?: NonNullable<BodyOf<R>[N]> }>
  readonly update: TUnsafe<Body<R, X>>
}

/** @param extra what bodies set besides the fields. One of its properties may be named in `resource.required`. */
export function buildBodySchemas<R extends Resource, X extends TProperties>(resource: R, extra: X): BodySchemas<R, X> {
  const fields = buildBodyProperties(resource.fields)
  const optional = { ...Type.Partial(Type.Object(fields)).properties, ...extra }
  const required = Object.fromEntries(
    resource.required.flatMap(name => (Object.hasOwn(fields, name) ? [[name, fields[name]!]] : [])),
  )
  return { create: Type.Object({ ...optional, ...required }), update: Type.Object(optional) } as never
}

function buildBodyProperties(fields: ResourceFields): Record<string, TSchema> {
  const properties: Record<string, TSchema> = {}
  for (const { kind, name, schema, ...of } of Object.values(fields)) {
    if (kind === 'members') Object.assign(properties, buildMemberProperties(of.members))
    else if (kind === 'group' && of.isFlat) Object.assign(properties, buildBodyProperties(of.fields))
    else if (kind === 'group')
      properties[name] = Type.Partial(Type.Object(buildBodyProperties(of.fields)), {
        ...schema,
        additionalProperties: false,
      })
    else if (schema !== null) properties[name] = Type.Unsafe(schema)
  }
  return properties
}

function buildMemberProperties(members: Field['members']): Record<string, TSchema> {
  return Object.fromEntries(Object.entries(members).map(([name, { schema }]) => [name, Type.Unsafe(schema)]))
}

/** @param extra what answers show besides the fields. */
export function buildItemSchema<X extends TProperties>({ fields }: Pick<Resource, 'fields'>, extra: X): TObject<X> {
  const properties: Record<string, TSchema> = {}
  for (const field of Object.values(fields)) {
    const { kind, name, isShown, isNullable, ...of } = field
    if (!isShown) continue
    if (kind === 'members') Object.assign(properties, buildMemberProperties(of.members))
    else if (kind === 'group' && of.isFlat) Object.assign(properties, buildItemSchema(of, {}).properties)
    else
      properties[name] = isNullable && kind !== 'author' ? nullable(buildValueSchema(field)) : buildValueSchema(field)
  }
  return Type.Object({ ...properties, ...extra }) as unknown as TObject<X>
}

/**
 * Answers use the schemas of bodies, without null (which stands for an initial value) and without limits of texts, which
 * may be newer than stored texts.
 */
function buildValueSchema({ kind, schema, fields }: Field): TSchema {
  const set = schema && excludeNull(schema)
  switch (kind) {
    case 'text':
      return set !== null && 'anyOf' in set ? Type.Unsafe(set) : Type.String()
    case 'uuid':
      return uuidSchema
    case 'integer':
      return set === null ? Type.Integer() : Type.Unsafe(set)
    case 'boolean':
      return set === null ? Type.Boolean() : Type.Unsafe(set)
    case 'object':
    case 'members':
      return jsonObjectSchema()
    case 'instant':
      return instantSchema
    case 'author':
      return authorSchema
    case 'group':
      return buildItemSchema({ fields }, {})
    case 'texts':
      return Type.Array(Type.String())
    case 'integers':
      return Type.Array(Type.Integer())
  }
}

function excludeNull(schema: JsonSchema): JsonSchema {
  const { anyOf = [] } = schema as { readonly anyOf?: readonly JsonSchema[] }
  const others = anyOf.filter(({ type }) => type !== 'null')
  return others.length === 1 ? others[0]! : schema
}

/** The item as answers show it, followed by `extra`. */
export function encodeItem<R extends Resource>(resource: R, item: ItemOf<R>, extra: object): object {
  const authors = Object.entries(resource.fields).flatMap(([key, { kind, name }]) =>
    kind === 'author' ? [[name, encodeAuthor(item[key] as Parameters<typeof encodeAuthor>[0])]] : [],
  )
  return { ...(toShownItem(resource, item) as JsonObject), ...extra, ...Object.fromEntries(authors) }
}
