// Canonical JSON according to RFC 8785: keys sorted by UTF-16 code units, numbers as JavaScript formats them. A literal
// that a double cannot represent, such as a 64-bit id, is kept as written, because rounding could make two records equal.

import { isRawNumber, type JsonValue } from '#core/json.ts'

export function toCanonicalJson(value: JsonValue): string {
  if (isRawNumber(value)) return canonicalizeNumber(value.rawJSON)
  if (Array.isArray(value)) return `[${value.map(toCanonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.keys(value)
    .toSorted()
    .map(key => `${JSON.stringify(key)}:${toCanonicalJson(value[key] as JsonValue)}`)
  return `{${members.join(',')}}`
}

function canonicalizeNumber(literal: string): string {
  const value = Number(literal)
  const isExact = !/^-?\d+$/.test(literal) || (Number.isInteger(value) && BigInt(literal) === BigInt(value))
  return isExact && Number.isFinite(value) ? JSON.stringify(value) : literal
}
