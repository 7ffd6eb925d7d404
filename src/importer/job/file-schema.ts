// What the files of a job have to be, so that one that was damaged or edited is noticed where it is read and not where a
// value of the wrong kind is used. Keys that a schema does not name are let be: later versions may write more.

import Type, { type Static, type TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import type { JsonObject } from '#core/json.ts'

/** An object whose keys are somebody else's. */
export const jsonObject = Type.Unsafe<JsonObject>(Type.Object({}))

export function orNull<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()])
}

/** Compiled, since the manifest of a large export has very many entries. */
const validators = new Map<TSchema, Validator>()

export function isOf<S extends TSchema>(schema: S, value: unknown): value is Static<S> {
  const validator = validators.get(schema) ?? Compile(schema)
  validators.set(schema, validator as Validator)
  return validator.Check(value)
}
