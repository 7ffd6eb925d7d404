// Reads the fields of a declared resource from a body.

import type { JsonObject } from '#core/json.ts'
import type { Project } from '#core/project.ts'
import { type ItemOf, type Resource, readFields } from '#core/resource.ts'
import type { Result } from '#core/result.ts'
import type { WireError } from '#wire/wire-error.ts'
import { readInstant } from './instants.ts'

/** The fields that the body sets; null removes a value. Times without an offset are in the project's time zone. */
export function readBodyFields<R extends Resource>(
  resource: R,
  body: object,
  { timezone }: Pick<Project, 'timezone'>,
  nowMs: number,
): Result<Partial<ItemOf<R>>, WireError> {
  return readFields(resource, body as JsonObject, (text, name) => readInstant(text, name, { timezone, nowMs }))
}
