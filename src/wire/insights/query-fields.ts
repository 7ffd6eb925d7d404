// Reads the fields of a query's JSON one by one, and stops at the first field that does not fit, naming the field by its
// path.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import { findIntendedName } from '#core/nearest-name.ts'
import { err, ok, type Result } from '#core/result.ts'
import { type WireError, wireError } from '../wire-error.ts'

/** The most characters of a text in a query, such as a name, a key or a value. */
const textCharsMax = 2_000

export function createInvalidFieldError(path: string, detail: string): WireError {
  return wireError(400, 'invalid_input', detail, path)
}

class Refused extends Error {
  readonly error: WireError
  constructor(error: WireError) {
    super(error.detail)
    this.error = error
  }
}

export class QueryFields {
  readonly #object: JsonObject
  readonly path: string

  constructor(object: JsonObject, path: string) {
    this.#object = object
    this.path = path
  }

  /** Runs a reader; the first field that it refuses becomes the error. */
  static read<T>(object: JsonObject, path: string, reader: (fields: QueryFields) => T): Result<T, WireError> {
    try {
      return ok(reader(new QueryFields(object, path)))
    } catch (error) {
      if (error instanceof Refused) return err(error.error)
      throw error
    }
  }

  /** The field, or null when it is absent. */
  value(name: string): JsonValue {
    return getOwnValue(this.#object, name) ?? null
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#object, name)
  }

  fail(name: string, detail: string): never {
    throw new Refused(createInvalidFieldError(name === '' ? this.path : `${this.path}.${name}`, detail))
  }

  /**
   * Refuses every field that is not among `names`, unless it is null: ignoring it could change the answer.
   * @param elsewhere fields that belong in another field or have another name here, each with the right place or name.
   */
  known(names: readonly string[], elsewhere: Readonly<Record<string, string>> = {}): void {
    for (const name of Object.keys(this.#object)) {
      if (names.includes(name) || this.#object[name] === null) continue
      const meant = Object.hasOwn(elsewhere, name) ? elsewhere[name]! : findIntendedName(name, names)
      this.fail(
        name.slice(0, 100),
        meant === null ? `Unknown field. Known fields: ${names.join(', ')}.` : `Unknown field. Did you mean ${meant}?`,
      )
    }
  }

  refuseUnless(name: string, accepts: (value: JsonValue) => boolean, detail: string): void {
    const value = this.value(name)
    if (value !== null && !accepts(value)) this.fail(name, detail)
  }

  text(name: string): string | null {
    const value = this.value(name)
    if (value === null) return null
    if (typeof value !== 'string') this.fail(name, 'Must be a string.')
    if (value.length > textCharsMax) this.fail(name, `Must have at most ${textCharsMax} characters.`)
    return value
  }

  requiredText(name: string): string {
    const text = this.text(name)
    return text === null || text === '' ? this.fail(name, 'This field is required.') : text
  }

  boolean(name: string): boolean | null {
    const value = this.value(name)
    return value === null || typeof value === 'boolean' ? value : this.fail(name, 'Must be true or false.')
  }

  integer(name: string, min: number, max: number): number | null {
    const value = this.value(name)
    if (value === null) return null
    if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
      this.fail(name, `Must be a whole number from ${min} to ${max}.`)
    }
    return value
  }

  requiredInteger(name: string, min: number, max: number): number {
    return (
      this.integer(name, min, max) ?? this.fail(name, `This field is required: a whole number from ${min} to ${max}.`)
    )
  }

  choice<const Name extends string>(name: string, choices: readonly Name[]): Name | null {
    const value = this.value(name)
    if (value === null) return null
    return choices.find(choice => choice === value) ?? this.fail(name, `Must be one of: ${choices.join(', ')}.`)
  }

  object<T>(name: string, reader: (fields: QueryFields) => T): T | null {
    const value = this.value(name)
    if (value === null) return null
    if (!isJsonObject(value)) this.fail(name, 'Must be an object.')
    return reader(new QueryFields(value, `${this.path}.${name}`))
  }

  /** An absent list is empty. */
  list<T>(name: string, countMax: number, reader: (fields: QueryFields) => T, countMin = 0): T[] {
    const value = this.value(name) ?? []
    if (!Array.isArray(value)) this.fail(name, 'Must be a list.')
    if (value.length > countMax) this.fail(name, `Must have at most ${countMax} entries.`)
    if (value.length < countMin) this.fail(name, `Must have at least ${countMin} entry.`)
    return value.map((entry, index) => {
      if (!isJsonObject(entry)) this.fail(`${name}.${index}`, 'Must be an object.')
      return reader(new QueryFields(entry, `${this.path}.${name}.${index}`))
    })
  }
}
