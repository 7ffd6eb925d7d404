// Checks for unknown names in a request. A field of a body is accepted if the request uses it or if tools send it back
// as they received it. Any other field is refused: ignoring it would make the 200 misleading. Parameters of a query are
// in `query-params.ts`.

import type { TSchema } from 'typebox'
import { getOwnValue, isJsonObject, type JsonObject } from '#core/json.ts'
import { findAbbreviatedName, findIntendedName } from '#core/nearest-name.ts'
import { isEmptyOrOff, type PostHogFields } from '#wire/management/posthog-fields.ts'
import type { WireError } from '#wire/wire-error.ts'
import { createInvalidInputError } from './answers.ts'

/** A query full of unknown names must not block the event loop. */
const unknownCountMax = 200

/**
 * The error for the first name that resembles a known name; null when none does.
 * @param kind the kind of name, for the message.
 * @param known names that mean something here; the suggestion is one of them.
 * @param ignored names that are accepted although they have no effect. Source: ours, docs/wire/private-api.md §2.
 */
export function findMisspeltName(
  kind: 'field' | 'parameter',
  sent: object,
  known: readonly string[],
  ignored: ReadonlySet<string> = new Set(),
): WireError | null {
  let unknownCount = 0
  for (const name of Object.keys(sent)) {
    if (known.includes(name) || ignored.has(name)) continue
    if (++unknownCount > unknownCountMax) return null
    const meant = suggestName(name, known)
    if (meant !== null) return misspeltError(kind, name, meant)
  }
  return null
}

/** Which fields a body may have. */
export interface AcceptedFields {
  /** Fields with a meaning here. */
  readonly known: readonly string[]
  /** The fields of the answer: a client may send back what it received. */
  readonly answered: ReadonlySet<string>
  readonly ofPostHog: PostHogFields
  /** Unknown names with an obvious meaning, each with the right name. */
  readonly wrong: Readonly<Record<string, string>>
}

/**
 * Returns the error for the first field that the request does not accept; null when it accepts all of them.
 * Source: ours, docs/wire/private-api.md §2.
 */
export function findUnacceptedField(sent: JsonObject, taken: AcceptedFields): WireError | null {
  const { known, answered, ofPostHog, wrong } = taken
  for (const [name, value] of Object.entries(sent)) {
    if (known.includes(name) || ofPostHog.withoutEffect.includes(name)) continue
    if (ofPostHog.onlyOff.includes(name)) {
      if (isEmptyOrOff(value)) continue
      return createInvalidInputError(name, 'This field is not supported, so it is not stored. Omit it.')
    }
    if (answered.has(name)) continue
    const meant = Object.hasOwn(wrong, name) ? wrong[name]! : suggestName(name, known)
    if (meant !== null) return misspeltError('field', name, meant)
    return createInvalidInputError(truncateName(name), `Unknown field ${truncateName(name)}: it would have no effect.`)
  }
  return null
}

/**
 * Returns the error for the first wrong name in nested objects whose schema names properties. If the schema allows no other
 * properties, every unknown name is an error: no tool sends such names, and a condition whose fields are ignored would
 * match everything.
 */
export function findMisspeltMember(sent: JsonObject, schema: TSchema): WireError | null {
  const fields = ('properties' in schema ? schema.properties : {}) as Readonly<Record<string, TSchema>>
  for (const [field, fieldSchema] of Object.entries(fields)) {
    const value = getOwnValue(sent, field)
    if (!isJsonObject(value)) continue
    const object = findObjectSchema(fieldSchema)
    const known = listSchemaPropertyNames(object)
    if (known.length === 0) continue
    const error =
      findMisspeltName('field', value, known) ?? (isClosed(object) ? findUnknownFieldError(value, known) : null)
    if (error !== null) return { ...error, attr: `${field}.${error.attr}` }
  }
  return null
}

/** The names of an object schema's properties; none for any other schema. */
export function listSchemaPropertyNames(schema: TSchema): readonly string[] {
  return 'properties' in schema ? Object.keys(schema.properties as object) : []
}

function misspeltError(kind: 'field' | 'parameter', name: string, meant: string): WireError {
  return createInvalidInputError(name, `Unknown ${kind} ${name}. Did you mean ${meant}?`)
}

/** The most characters of a name that a message shows, far more than any field's name has. */
const shownCharsMax = 200

function truncateName(name: string): string {
  return name.length > shownCharsMax ? `${name.slice(0, shownCharsMax)}…` : name
}

function suggestName(name: string, known: readonly string[]): string | null {
  return findIntendedName(name, known) ?? findAbbreviatedName(name, known)
}

function findUnknownFieldError(sent: JsonObject, known: readonly string[]): WireError | null {
  const name = Object.keys(sent).find(name => !known.includes(name))
  return name === undefined
    ? null
    : createInvalidInputError(name, `Unknown field ${name}. Known fields: ${known.join(', ')}.`)
}

/** The object schema of a value that may also be null. */
function findObjectSchema(schema: TSchema): TSchema {
  const members = ('anyOf' in schema ? schema.anyOf : [schema]) as readonly TSchema[]
  return members.find(member => 'properties' in member) ?? schema
}

function isClosed(schema: TSchema): boolean {
  return 'additionalProperties' in schema && schema.additionalProperties === false
}
