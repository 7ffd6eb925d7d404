// Fields of a definition that are ours but for a slip. Unknown ones are kept, but `group` for `groups`, or a misspelt
// percentage or list of filters in a condition set, would switch a flag on for more people than was meant.

import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../json.ts'
import { nearMiss } from '../nearest-name.ts'
import type { FlagIssue } from './flag-issue.ts'

/** Source: docs/wire/evaluation.md 4.2. */
const fieldsOfFilters = [
  ...['groups', 'multivariate', 'payloads', 'aggregation_group_type_index', 'feature_enrollment', 'early_exit'],
  ...['super_groups', 'holdout', 'holdout_groups', 'properties'],
]
const fieldsOfSet = ['properties', 'rollout_percentage', 'variant', 'aggregation_group_type_index']

/** PostHog's definitions hold a few; nothing but unknown names must not hold the event loop. */
const unknownCountMax = 200

/**
 * The misspelt fields of filters and of their condition sets, each `invalid_input` with its path.
 * Source: ours, docs/wire/private-api.md §4.
 */
export function misspeltFields(filters: JsonObject): FlagIssue[] {
  const issues: FlagIssue[] = []
  let unknownCount = 0
  const look = (value: JsonValue, known: readonly string[], path: string) => {
    if (!isJsonObject(value)) return
    for (const name of Object.keys(value)) {
      if (known.includes(name)) continue
      if (++unknownCount > unknownCountMax) return
      const meant = nearMiss(name, known)
      if (meant === null) continue
      const message = `Unknown field ${name}. Did you mean ${meant}?`
      issues.push({ path: `${path}.${name}`, code: 'invalid_input', message })
    }
  }
  look(filters, fieldsOfFilters, 'filters')
  for (const list of ['groups', 'super_groups']) {
    const sets = ownValue(filters, list)
    if (Array.isArray(sets))
      for (const [index, set] of sets.entries()) look(set, fieldsOfSet, `filters.${list}.${index}`)
  }
  return issues
}
