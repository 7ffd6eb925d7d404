// Finds the first place at which a value does not match a schema. TypeBox's report covers every faulty value, at some
// microseconds each, so its fast check locates the first faulty value, and only that value is reported.

import type { TSchema } from 'typebox'
import { getOwnValue, isJsonObject, type JsonValue } from '#core/json.ts'

/** TypeBox's report of one place that does not match. */
export interface SchemaProblem {
  readonly keyword: string
  readonly instancePath: string
  readonly params: object
  readonly message: string
}

interface Validator {
  Check(value: unknown): boolean
  Errors(value: unknown): unknown
}

export type CompileSchema = (schema: TSchema) => Validator

type Properties = Readonly<Record<string, TSchema>>

/**
 * Reports the problems at the first place that does not match. A list that is too long is refused before its items are
 * checked.
 * @param value does not match `schema`.
 * @returns at least one problem; several for a union, each of whose members reports its own.
 */
export function findFirstProblems(
  schema: TSchema,
  value: JsonValue,
  compile: CompileSchema,
  path = '',
): SchemaProblem[] {
  const isValid = (part: TSchema, of: JsonValue) => compile(part).Check(of)
  if (Array.isArray(value)) {
    const list = findOnlyMember(schema, 'items')
    if (list !== null) {
      const { items, ...withoutItems } = list
      if (!isValid(withoutItems, value)) return listProblemsAt(withoutItems, value, compile, path)
      const item = compile(items as TSchema)
      const index = value.findIndex(each => !item.Check(each))
      if (index >= 0) return findFirstProblems(items as TSchema, value[index]!, compile, `${path}/${index}`)
    }
  } else if (isJsonObject(value)) {
    const object = findOnlyMember(schema, 'properties')
    const { properties = {}, required = [] } = (object ?? {}) as { properties?: Properties; required?: string[] }
    const missing = required.filter(name => !Object.hasOwn(value, name))
    if (missing.length === 0) {
      for (const [name, property] of Object.entries(properties)) {
        const own = getOwnValue(value, name)
        if (own !== undefined && !isValid(property, own))
          return findFirstProblems(property, own, compile, `${path}/${name}`)
      }
    }
  }
  return listProblemsAt(schema, value, compile, path)
}

function listProblemsAt(schema: TSchema, value: JsonValue, compile: CompileSchema, path: string): SchemaProblem[] {
  const problems = compile(schema).Errors(value) as SchemaProblem[]
  return problems.map(problem => ({ ...problem, instancePath: `${path}${problem.instancePath}` }))
}

/**
 * Finds the only member of a union that has a keyword; a schema that is not a union counts as a union with one member. Null
 * unless exactly one member has the keyword.
 */
function findOnlyMember(schema: TSchema, keyword: 'items' | 'properties'): Readonly<Record<string, unknown>> | null {
  const members = ('anyOf' in schema ? schema.anyOf : [schema]) as readonly TSchema[]
  const [member, ...others] = members.filter(each => keyword in each)
  return member === undefined || others.length > 0 ? null : (member as Readonly<Record<string, unknown>>)
}
