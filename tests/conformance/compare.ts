// Compares an answer with what a vector expects: exactly, as a subset, as an instant, with placeholders. Every function
// returns readable differences, each with its path; an empty list means that nothing differs.

import { Label } from './labels.ts'

/** A vector needs something that this runner or the service cannot do. It counts as failed. */
export class CannotRun extends Error {
  constructor(reason: string) {
    super(`cannot be run: ${reason}`)
    this.name = 'CannotRun'
  }
}

declare global {
  // Node has these; the type library does not know them yet.
  interface JSON {
    rawJSON(text: string): { readonly rawJSON: string }
    isRawJSON(value: unknown): value is { readonly rawJSON: string }
  }
}

export type Fields = Readonly<Record<string, unknown>>

/** Fields that explain a vector and are not expectations. */
const explanations = ['id', 'description', 'note', 'title', 'source', 'group', 'checked_by', '$comment']

/** @throws CannotRun naming a field that the runner does not check, so that nothing is skipped silently. */
export function assertKnownFields(object: object, what: string, known: readonly string[]): void {
  for (const name of Object.keys(object)) {
    if (!known.includes(name)) throw new CannotRun(`${what} has a field that the runner does not know: ${name}`)
  }
}

/** The same for a whole vector, which may have explaining fields. */
export function assertKnownVectorFields(vector: Fields, known: readonly string[]): void {
  assertKnownFields(vector, 'the vector', [...explanations, ...known])
}

/** Epoch ms of an instant in a vector. @throws CannotRun for a text that is not an instant. */
export function instantOf(text: string): number {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new CannotRun(`it gives a time that cannot be read: ${text}`)
  return ms
}

/** @throws CannotRun when an object has several of these fields, so that none is ignored silently. */
export function assertAtMostOne(object: Fields, what: string, names: readonly string[]): void {
  const given = names.filter(name => Object.hasOwn(object, name))
  if (given.length > 1) throw new CannotRun(`${what} has ${given.join(' and ')}, of which only one can hold`)
}

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The meaning of a placeholder text in a vector. */
const placeholders: Readonly<Record<string, (actual: unknown) => boolean>> = {
  '<uuid>': actual => typeof actual === 'string' && uuidForm.test(actual),
  '<integer milliseconds>': actual => typeof actual === 'number' && Number.isSafeInteger(actual),
}

/** Equal as JSON: the order of keys is ignored, numbers are compared as doubles. */
export function exactDifferences(expected: unknown, actual: unknown, path: string): string[] {
  return differences(expected, actual, path, 'exact')
}

/** Every key of `expected` must match; keys that only `actual` has are fine. Values below the first level are exact. */
export function subsetDifferences(expected: unknown, actual: unknown, path: string): string[] {
  return differences(expected, actual, path, 'subset')
}

/** Compares instants, however they are written. */
export function instantDifferences(expected: unknown, actual: unknown, path: string): string[] {
  const [expectedMs, actualMs] = [Date.parse(String(expected)), Date.parse(String(actual))]
  if (!Number.isNaN(expectedMs) && expectedMs === actualMs) return []
  return [unequal(path, expected, actual)]
}

export const textFields = ['body', 'body_prefix', 'body_contains']

/** Compares a text by one of `textFields`: the whole text, its beginning or a part of it. */
export function textDifferences(field: string, expected: unknown, text: string): string[] {
  const part = String(expected)
  const holds = field === 'body' ? text === part : field === 'body_prefix' ? text.startsWith(part) : text.includes(part)
  return holds ? [] : [unequal(field, expected, text)]
}

/** `names` must not be keys of `actual`. */
export function presentDifferences(names: readonly string[], actual: unknown, path: string): string[] {
  return names
    .filter(name => isObject(actual) && Object.hasOwn(actual, name))
    .map(name => `${path}.${name}: is there (${show((actual as Fields)[name])})`)
}

/** One difference, `is X instead of Y`, at one path. */
export function unequal(path: string, expected: unknown, actual: unknown): string {
  return `${path}: is ${show(actual)} instead of ${show(expected)}`
}

export function show(value: unknown): string {
  const text = value === undefined ? 'absent' : (JSON.stringify(value) ?? String(value))
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function differences(written: unknown, actual: unknown, path: string, mode: 'exact' | 'subset'): string[] {
  const expected = plainNumber(written)
  if (expected instanceof Label) return expected.accepts(actual) ? [] : [unequal(path, expected, actual)]
  if (typeof expected === 'string' && Object.hasOwn(placeholders, expected)) {
    return placeholders[expected]!(actual) ? [] : [unequal(path, expected, actual)]
  }
  if (Array.isArray(expected) && Array.isArray(actual)) {
    if (expected.length !== actual.length) return [unequal(path, expected, actual)]
    return expected.flatMap((item, index) => exactDifferences(item, actual[index], `${path}[${index}]`))
  }
  if (isObject(expected) && isObject(actual)) {
    const found = Object.entries(expected).flatMap(([key, value]) =>
      Object.hasOwn(actual, key)
        ? exactDifferences(value, actual[key], `${path}.${key}`)
        : [unequal(`${path}.${key}`, value, undefined)],
    )
    if (mode === 'subset') return found
    const unexpected = Object.keys(actual).filter(key => !Object.hasOwn(expected, key))
    return [...found, ...presentDifferences(unexpected, actual, path)]
  }
  return Object.is(expected, plainNumber(actual)) || expected === actual ? [] : [unequal(path, expected, actual)]
}

/** Vector files keep number literals (`1.0`); only their values are compared. */
function plainNumber(value: unknown): unknown {
  return JSON.isRawJSON(value) ? Number(value.rawJSON) : value
}

/**
 * Reads a vector file and keeps its number literals: `1` and `1.0` are different texts in a filter, and both are sent
 * as written. `JSON.stringify` writes them back unchanged.
 */
export function parseVectorFile(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value,
  )
}
