// The stored text of property marks. One event usually leaves the same mark on twenty keys, so keys are grouped by mark:
// `[[mark, ["key", …]], …]`, with the mark as a list of its parts. That takes a fifth of the bytes.

import { isJsonObject, type JsonObject, type JsonValue, parseJson, setOwnValue } from '../json.ts'
import type { PropertyMark, PropertyMarks } from './person.ts'

const kinds = [
  'live_once',
  'import_set',
  'import_once',
  'import_unset',
] as const satisfies readonly PropertyMark['kind'][]

export function encodePropertyMarks(marks: PropertyMarks): string {
  const keysOf = new Map<string, string[]>()
  let lastMark: PropertyMark | null = null
  let lastKeys: string[] = []
  for (const key of Object.keys(marks)) {
    const mark = marks[key]!
    if (mark !== lastMark) {
      const text = encodeMark(mark)
      lastMark = mark
      lastKeys = keysOf.get(text) ?? []
      keysOf.set(text, lastKeys)
    }
    lastKeys.push(key)
  }
  return `[${Array.from(keysOf, ([text, keys]) => `[${text},${JSON.stringify(keys)}]`).join(',')}]`
}

function encodeMark({ kind, timestampMs, uuid, importJobId, once, unset }: PropertyMark): string {
  const beneath = once === undefined && unset === undefined ? [] : [{ once, unset }]
  return JSON.stringify([kinds.indexOf(kind), timestampMs, uuid, importJobId, ...beneath])
}

const noMarks: PropertyMarks = {}

/** @throws Error for text that `encodePropertyMarks` does not write. */
export function decodePropertyMarks(text: string): PropertyMarks {
  if (text === '[]') return noMarks
  const groups = parseJson(text)
  if (!Array.isArray(groups)) throw new Error('stored marks are not a list')
  const marks: JsonObject = {}
  for (const group of groups) {
    const [parts, keys] = Array.isArray(group) ? group : []
    const mark = decodeMark(parts)
    if (mark === null || !Array.isArray(keys)) throw new Error('a stored mark cannot be read')
    for (const key of keys) setOwnValue(marks, String(key), mark as unknown as JsonValue)
  }
  return marks as unknown as PropertyMarks
}

function decodeMark(parts: JsonValue | undefined): PropertyMark | null {
  if (!Array.isArray(parts)) return null
  const [kindIndex, timestampMs, uuid, importJobId, beneath] = parts
  const kind = kinds[Number(kindIndex)]
  if (kind === undefined || typeof timestampMs !== 'number' || typeof uuid !== 'string') return null
  const mark = { kind, timestampMs, uuid, importJobId: Number(importJobId) }
  return isJsonObject(beneath) ? ({ ...mark, ...beneath } as unknown as PropertyMark) : mark
}
