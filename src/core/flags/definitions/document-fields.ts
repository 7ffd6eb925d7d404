// Reads the fields of one object of a flag document. Such an object is closed: any unknown field is a fault. Source:
// docs/wire/evaluation.md 11.2.

import { getOwnValue, isJsonObject, isRawNumber, type JsonObject, type JsonValue, readJsonNumber } from '../../json.ts'
import type { FlagIssue, FlagIssueCode } from './flag-issue.ts'

const decimalsMax = 2

/** Thrown to leave the nested reading functions at once; `readRules` turns it into a result. */
export class DocumentFault extends Error {
  readonly fault: FlagIssue

  constructor(path: string, code: FlagIssueCode, message: string) {
    super(message)
    this.fault = { path, code, message }
  }
}

export class DocumentFields {
  readonly #object: JsonObject
  readonly #path: string

  constructor(object: JsonObject, path: string) {
    this.#object = object
    this.#path = path
  }

  static of(value: JsonValue, path: string): DocumentFields {
    if (!isJsonObject(value)) throw new DocumentFault(path, 'invalid', 'Must be an object.')
    return new DocumentFields(value, path)
  }

  names(): string[] {
    return Object.keys(this.#object)
  }

  pathOf(name: string): string {
    return `${this.#path}.${name}`
  }

  refuse(name: string, message: string): never {
    throw new DocumentFault(this.pathOf(name), 'invalid_input', message)
  }

  mustBeAmong(known: readonly string[]): void {
    for (const name of this.names()) {
      if (!known.includes(name)) this.refuse(name, `Unknown field. Known fields: ${known.join(', ')}.`)
    }
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#object, name)
  }

  /** Whether the field is present and not null. */
  isSet(name: string): boolean {
    return (getOwnValue(this.#object, name) ?? null) !== null
  }

  required(name: string): JsonValue {
    const value = getOwnValue(this.#object, name)
    if (value === undefined) throw new DocumentFault(this.pathOf(name), 'required', 'This field is required.')
    return value
  }

  text(name: string): string {
    const value = this.required(name)
    return typeof value === 'string' ? value : this.#invalid(name, 'text')
  }

  boolean(name: string): boolean {
    const value = this.required(name)
    return typeof value === 'boolean' ? value : this.#invalid(name, 'true or false')
  }

  object(name: string): DocumentFields {
    return DocumentFields.of(this.required(name), this.pathOf(name))
  }

  list(name: string, countMax: number): JsonValue[] {
    const value = this.required(name)
    if (!Array.isArray(value)) return this.#invalid(name, 'a list')
    return value.length <= countMax ? value : this.refuse(name, `Must have at most ${countMax} entries.`)
  }

  oneOf<T extends string>(name: string, choices: readonly T[]): T {
    const value = this.text(name)
    return choices.find(choice => choice === value) ?? this.refuse(name, `Must be one of ${choices.join(', ')}.`)
  }

  integerOrNull(name: string): number | null {
    const value = this.required(name)
    if (value === null) return null
    const number = readJsonNumber(value)
    return Number.isSafeInteger(number) ? number! : this.#invalid(name, 'a whole number or null')
  }

  percentage(name: string): number {
    const value = this.required(name)
    const number = readJsonNumber(value)
    if (number === undefined) return this.#invalid(name, 'a number')
    const isInRange = number >= 0 && number <= 100 && countDecimals(formatNumberLiteral(value)) <= decimalsMax
    return isInRange ? number : this.refuse(name, 'Must be between 0 and 100, with at most two decimals.')
  }

  #invalid(name: string, form: string): never {
    throw new DocumentFault(this.pathOf(name), 'invalid', `Must be ${form}.`)
  }
}

/** The number's literal as it was written; a plain number is written as a double. */
export function formatNumberLiteral(number: JsonValue): string {
  return isRawNumber(number) ? number.rawJSON : String(number)
}

/** How many decimals a number has as it is written, without zeros at the end: 3 for `1e-3`, 1 for `12.50`. */
function countDecimals(literal: string): number {
  const [mantissa = '', exponent = '0'] = literal.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  let end = digits.length
  while (digits[end - 1] === '0') end--
  const isZero = end === 0 || digits[end - 1] === '-'
  return isZero ? 0 : fraction.length - (digits.length - end) - Number(exponent)
}
