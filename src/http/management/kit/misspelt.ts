// Misspelt names in a request. Unknown names are ignored, since PostHog's tools send many that mean nothing here. A
// name that is nearly one of ours is refused: a flag with `filter` for `filters` would be on for every person.

import type { TSchema } from 'typebox'
import { isJsonObject, type JsonObject, ownValue } from '#core/json.ts'
import { nearMiss, shortenedName } from '#core/nearest-name.ts'
import type { WireError } from '#wire/wire-error.ts'
import { invalidInput } from './answers.ts'

/** PostHog's tools send some thirty. A body full of unknown names must not hold the event loop. */
const unknownCountMax = 200

/**
 * The error for the first name that is nearly one of ours; null when there is none.
 * @param kind the kind of the names, for the sentence.
 * @param known names that mean something here; the suggestion is one of them.
 * @param ignored names that are correct although they have no effect.
 * @param wrong unknown names with an obvious meaning, with the right name.
 * Source: ours, docs/wire/private-api.md §2.
 */
export function findMisspelt(
  kind: 'field' | 'parameter',
  sent: object,
  known: readonly string[],
  ignored: ReadonlySet<string> = new Set(),
  wrong: Readonly<Record<string, string>> = {},
): WireError | null {
  let unknownCount = 0
  for (const name of Object.keys(sent)) {
    if (known.includes(name) || ignored.has(name)) continue
    if (++unknownCount > unknownCountMax) return null
    const meant = Object.hasOwn(wrong, name) ? wrong[name]! : meantBy(name, known)
    if (meant !== null) return invalidInput(name, `Unknown ${kind} ${name}. Did you mean ${meant}?`)
  }
  return null
}

/**
 * The same for the objects in a body's fields whose schema names properties. When the schema allows no others, every
 * unknown name is an error: no other tool sends it, and ignoring a condition would let everything pass.
 */
export function findMisspeltWithin(sent: JsonObject, schema: TSchema): WireError | null {
  const fields = ('properties' in schema ? schema.properties : {}) as Readonly<Record<string, TSchema>>
  for (const [field, fieldSchema] of Object.entries(fields)) {
    const value = ownValue(sent, field)
    if (!isJsonObject(value)) continue
    const object = objectOf(fieldSchema)
    const known = propertyNames(object)
    if (known.length === 0) continue
    const error = findMisspelt('field', value, known) ?? (isClosed(object) ? findUnknown(value, known) : null)
    if (error !== null) return { ...error, attr: `${field}.${error.attr}` }
  }
  return null
}

/** The names of an object schema's properties; none for any other schema. */
export function propertyNames(schema: TSchema): readonly string[] {
  return 'properties' in schema ? Object.keys(schema.properties as object) : []
}

function meantBy(name: string, known: readonly string[]): string | null {
  return nearMiss(name, known) ?? shortenedName(name, known)
}

function findUnknown(sent: JsonObject, known: readonly string[]): WireError | null {
  const name = Object.keys(sent).find(name => !known.includes(name))
  return name === undefined ? null : invalidInput(name, `Unknown field ${name}. There are ${known.join(', ')}.`)
}

/** The object schema of a value that may also be null. */
function objectOf(schema: TSchema): TSchema {
  const members = ('anyOf' in schema ? schema.anyOf : [schema]) as readonly TSchema[]
  return members.find(member => 'properties' in member) ?? schema
}

function isClosed(schema: TSchema): boolean {
  return 'additionalProperties' in schema && schema.additionalProperties === false
}
