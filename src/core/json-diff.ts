// Lists what changed between two JSON values, by path: the diff between two versions of a flag.

import {
  getOwnValue,
  isJsonObject,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  type RawNumber,
  toCompactJson,
} from './json.ts'

export interface JsonChange {
  /** Keys and list indexes joined by dots: `filters.groups.0.rollout_percentage`. */
  readonly path: string
  readonly action: 'created' | 'changed' | 'deleted'
  /** Null for `created`. */
  readonly before: JsonValue
  /** Null for `deleted`. */
  readonly after: JsonValue
}

/** Changes of a member that take no more text than this are listed one by one, however small the member is. */
const detailCharsMin = 10_000
/** How many characters a change takes in addition to its path and values. */
const charsPerChange = 50

/**
 * The innermost values that differ, in the order of `before`'s keys, then new keys. Lists are compared position by
 * position, numbers by their text form: `1` and `1.0` differ, as they do for a filter. Where the changes in a member of the
 * two objects take more text than the member before and after (possible for a long list or a long key), the member is
 * listed as a whole, so that the changes never take much more text than the values. Source: ours.
 */
export function diffJson(before: JsonValue, after: JsonValue): JsonChange[] {
  if (!isJsonObject(before) || !isJsonObject(after)) return diffMember('', before, after)
  return listKeys(before, after).flatMap(key => diffMember(key, getOwnValue(before, key), getOwnValue(after, key)))
}

function diffMember(path: string, before: JsonValue | undefined, after: JsonValue | undefined): JsonChange[] {
  if (before === undefined) return [{ path, action: 'created', before: null, after: after! }]
  if (after === undefined) return [{ path, action: 'deleted', before, after: null }]
  const whole: JsonChange = { path, action: 'changed', before, after }
  const listWithin = (charsMax: number) => {
    const found: Found = { changes: [], charsLeft: charsMax }
    collectChanges(path, before, after, found)
    return found.charsLeft < 0 ? null : found.changes
  }
  return listWithin(detailCharsMin) ?? listWithin(countChars(whole)) ?? [whole]
}

/** Once `charsLeft` is negative, the changes take too much text, and no more of them are collected. */
interface Found {
  readonly changes: JsonChange[]
  charsLeft: number
}

function collectChanges(path: string, before: JsonValue, after: JsonValue, found: Found): void {
  if (Array.isArray(before) && Array.isArray(after)) {
    for (let index = 0; index < Math.max(before.length, after.length) && found.charsLeft >= 0; index++)
      collectMemberChanges(path, index, before[index], after[index], found)
  } else if (isJsonObject(before) && isJsonObject(after)) {
    for (const key of Object.keys(before)) {
      if (found.charsLeft < 0) return
      collectMemberChanges(path, key, getOwnValue(before, key), getOwnValue(after, key), found)
    }
    for (const key of Object.keys(after)) {
      if (found.charsLeft < 0) return
      if (!Object.hasOwn(before, key)) collectMemberChanges(path, key, undefined, getOwnValue(after, key), found)
    }
  } else if (!isSameScalar(before, after)) {
    addChange({ path, action: 'changed', before, after }, found)
  }
}

function collectMemberChanges(
  parentPath: string,
  key: string | number,
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  found: Found,
): void {
  // Checked before a path is built, because most values are the same and then need no path.
  if (isSameScalar(before, after)) return
  const path = parentPath === '' ? String(key) : `${parentPath}.${key}`
  if (before !== undefined && after !== undefined) collectChanges(path, before, after, found)
  else if (after !== undefined) addChange({ path, action: 'created', before: null, after }, found)
  else if (before !== undefined) addChange({ path, action: 'deleted', before, after: null }, found)
}

function addChange(change: JsonChange, found: Found): void {
  found.changes.push(change)
  found.charsLeft -= countChars(change)
}

function countChars({ path, before, after }: JsonChange): number {
  return charsPerChange + path.length + JSON.stringify(before).length + JSON.stringify(after).length
}

function listKeys(before: JsonObject, after: JsonObject): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
}

/** False for two lists or objects, even equal ones, unless they are the same instance. */
function isSameScalar(before: JsonValue | undefined, after: JsonValue | undefined): boolean {
  if (before === after) return true
  return isNumber(before) && isNumber(after) && toCompactJson(before) === toCompactJson(after)
}

function isNumber(value: JsonValue | undefined): value is number | RawNumber {
  return typeof value === 'number' || (typeof value === 'object' && value !== null && isRawNumber(value))
}
