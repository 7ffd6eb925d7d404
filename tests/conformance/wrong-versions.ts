// Derives vectors with wrong expectations from correct ones. A reader of vectors must fail each of them, or its
// successes prove nothing.

import { CannotRun, isObject } from './compare.ts'

/** Lists of absent names: another absent name would not be wrong. */
const saysWhatIsAbsent = /^(?:absent|\w+_absent)$/

/**
 * @param value a part of a vector, as `parseVectorFile` reads it.
 * @returns copies of it, each wrong in one place: another value, or a field that the form does not have.
 */
export function* wrongVersions<T>(value: T): Generator<T> {
  if (Array.isArray(value)) {
    if (value.length === 0) yield ['wrong'] as T
    for (const [index, item] of value.entries())
      for (const wrong of wrongVersions(item)) yield value.with(index, wrong) as T
  } else if (isObject(value) && !JSON.isRawJSON(value)) {
    yield { ...value, unknown_field: 1 }
    for (const [name, item] of Object.entries(value)) {
      if (saysWhatIsAbsent.test(name)) continue
      for (const wrong of wrongVersions(item)) yield { ...value, [name]: wrong }
    }
  } else yield otherThan(value) as T
}

function otherThan(value: unknown): unknown {
  switch (typeof value) {
    case 'string':
      return `${value} wrong`
    case 'number':
      return value + 1
    case 'boolean':
      return !value
    default:
      return 'wrong'
  }
}

/** @returns the wrong versions that pass all the same. */
export async function passing<T>(
  versions: Iterable<T>,
  run: (version: T) => Promise<readonly string[]> | readonly string[],
): Promise<T[]> {
  const passed: T[] = []
  for (const version of versions) {
    try {
      if ((await run(version)).length === 0) passed.push(version)
    } catch (cause) {
      if (!(cause instanceof CannotRun)) throw cause
    }
  }
  return passed
}
