// Lists what changed between two JSON values, by path: the diff between two versions of a flag.

import { compactJson, isJsonObject, type JsonValue, ownValue } from './json.ts'

export interface JsonChange {
  /** Keys and list indexes joined by dots: `filters.groups.0.rollout_percentage`. */
  readonly path: string
  readonly action: 'created' | 'changed' | 'deleted'
  /** Null for `created`. */
  readonly before: JsonValue
  /** Null for `deleted`. */
  readonly after: JsonValue
}

/**
 * The innermost values that differ, in the order of `before`'s keys, then new keys. Lists are compared position by
 * position, numbers by their text form: `1` and `1.0` differ, as they do for a filter.
 * Source: ours.
 */
export function diffJson(before: JsonValue, after: JsonValue): JsonChange[] {
  const changes: JsonChange[] = []
  collectChanges('', before, after, changes)
  return changes
}

function collectChanges(path: string, before: JsonValue, after: JsonValue, changes: JsonChange[]): void {
  if (Array.isArray(before) && Array.isArray(after)) {
    for (let index = 0; index < Math.max(before.length, after.length); index++) {
      collectMemberChanges(joinPath(path, String(index)), before[index], after[index], changes)
    }
  } else if (isJsonObject(before) && isJsonObject(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    for (const key of keys)
      collectMemberChanges(joinPath(path, key), ownValue(before, key), ownValue(after, key), changes)
  } else if (compactJson(before) !== compactJson(after)) {
    changes.push({ path, action: 'changed', before, after })
  }
}

function collectMemberChanges(
  path: string,
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  changes: JsonChange[],
): void {
  if (before === undefined && after !== undefined) changes.push({ path, action: 'created', before: null, after })
  else if (before !== undefined && after === undefined) changes.push({ path, action: 'deleted', before, after: null })
  else if (before !== undefined && after !== undefined) collectChanges(path, before, after, changes)
}

function joinPath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}
