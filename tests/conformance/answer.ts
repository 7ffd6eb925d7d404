// Compares an answer with the `expect` of a step: status, headers, and the body as text, bytes, JSON or places in it.

import {
  exactDifferences,
  type Fields,
  isObject,
  show,
  subsetDifferences,
  textDifferences,
  textFields,
  unequal,
} from './compare.ts'
import { type Answer, comparableText, jsonOf } from './exchange.ts'

export const answerFields = [
  ...['status', 'headers', 'header_contains'],
  ...['body', 'body_prefix', 'body_contains', 'body_base64'],
  ...['body_json', 'body_json_subset', 'json_at', 'json_absent'],
]

/** What differs in an answer from the fields of `expect`. */
export function answerDifferences(expected: Fields, answer: Answer): string[] {
  const json = jsonOf(answer.text)
  const text = comparableText(answer)
  const found: string[] = []
  for (const [field, value] of Object.entries(expected)) {
    if (field === 'status') {
      if (answer.status !== value) found.push(`${unequal('status', value, answer.status)}, with ${text.slice(0, 300)}`)
    } else if (field === 'headers') found.push(...compareHeaders(value as Fields, answer))
    else if (field === 'header_contains') found.push(...compareHeaderParts(value as Record<string, string[]>, answer))
    else if (textFields.includes(field)) found.push(...textDifferences(field, value, text))
    else if (field === 'body_json') found.push(...exactDifferences(value, json, 'body'))
    else if (field === 'body_json_subset') found.push(...subsetDifferences(value, json, 'body'))
    else if (field === 'body_base64') found.push(...exactDifferences(value, answer.bytes.toString('base64'), field))
    else if (field === 'json_at') found.push(...differencesAt(value as Fields, json))
    else if (field === 'json_absent') found.push(...presentAt(value as readonly string[], json))
  }
  return found
}

function compareHeaders(expected: Fields, { headers }: Answer): string[] {
  return Object.entries(expected).flatMap(([name, value]) =>
    exactDifferences(value, headers[name.toLowerCase()], `header ${name}`),
  )
}

function compareHeaderParts(expected: Readonly<Record<string, readonly string[]>>, { headers }: Answer): string[] {
  return Object.entries(expected).flatMap(([name, parts]) => {
    const value = String(headers[name.toLowerCase()] ?? '')
    return parts.filter(part => !value.includes(part)).map(part => unequal(`header ${name}`, part, value))
  })
}

/** @param path keys and indexes, joined by dots. @returns the value there, or `undefined` if there is none. */
export function valueAt(json: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => {
    const holds = (isObject(value) || Array.isArray(value)) && Object.hasOwn(value, name)
    return holds ? (value as Fields)[name] : undefined
  }, json)
}

function differencesAt(expected: Fields, json: unknown): string[] {
  return Object.entries(expected).flatMap(([path, value]) =>
    exactDifferences(value, valueAt(json, path), `body.${path}`),
  )
}

/** A body that is not JSON differs too, or every path would be absent from it. */
function presentAt(paths: readonly string[], json: unknown): string[] {
  if (json === undefined) return ['body: is not JSON']
  return paths.flatMap(path => {
    const value = valueAt(json, path)
    return value === undefined ? [] : [`body.${path}: is there (${show(value)})`]
  })
}
