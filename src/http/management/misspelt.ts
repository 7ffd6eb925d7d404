// A name that a request has wrong. Names that nobody knows are ignored, since PostHog's tools send many that mean nothing
// here; one that is ours but for a slip is refused: a flag with `filter` for `filters` would be on for everybody.

import type { TSchema } from 'typebox'
import { nearMiss } from '#core/nearest-name.ts'
import type { WireError } from '#wire/wire-error.ts'
import { invalidInput } from './answers.ts'

/** PostHog's tools send some thirty; a body of nothing but unknown names must not hold the event loop. */
const unknownCountMax = 200

/**
 * The error of the first name that is none of ours but near one, or null.
 * @param kind what the names are, for the sentence.
 * @param known names that mean something here, among which is what was meant.
 * @param ignored names that are right, although nothing is done with them.
 * @param wrong names that resemble none of ours but are taken for one, with what is meant.
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
    const meant = Object.hasOwn(wrong, name) ? wrong[name]! : nearMiss(name, known)
    if (meant !== null) return invalidInput(name, `Unknown ${kind} ${name}. Did you mean ${meant}?`)
  }
  return null
}

/** Of an object's schema; none of any other. */
export function propertyNames(schema: TSchema): readonly string[] {
  return 'properties' in schema ? Object.keys(schema.properties as object) : []
}
