// Finds fields of a definition that are a typing error of a known field, or another product's name for a known field. Other
// unknown fields are kept, but `group` for `groups`, `rollout` for a percentage or `operatr` in a filter would switch a
// flag on for the wrong people.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '../../json.ts'
import { findIntendedName } from '../../nearest-name.ts'
import type { FlagIssue } from './flag-issue.ts'

/** One level of a definition: its known names, and wrong names with the names that were probably meant. */
interface Level {
  readonly known: readonly string[]
  readonly wrong: ReadonlyMap<string, string>
}

const percentages = ['rollout', 'percentage', 'percent', 'weight']

/** Source: docs/wire/evaluation.md 4.2. */
const filtersLevel = createLevel(
  [
    ...['groups', 'multivariate', 'payloads', 'aggregation_group_type_index', 'feature_enrollment', 'early_exit'],
    ...['super_groups', 'holdout', 'holdout_groups', 'properties'],
  ],
  {
    groups: ['conditions', 'condition_sets', 'sets', 'targeting', 'filters'],
    'groups, or a document with "version": 2': ['rules'],
    'multivariate.variants': ['variants', 'variations'],
    'groups.0.rollout_percentage': ['rollout_percentage', ...percentages],
  },
)
const setLevel = createLevel(['properties', 'rollout_percentage', 'variant', 'aggregation_group_type_index'], {
  properties: ['conditions', 'filters', 'rules'],
  rollout_percentage: percentages,
})
const filterFields = ['key', 'type', 'value', 'operator', 'group_type_index', 'negation', 'dependency_chain']
const wrongInFilter = {
  operator: ['op', 'comparator', 'comparison', 'condition'],
  group_type_index: ['group_type', 'group_index'],
}
const filterLevel = createLevel(filterFields, wrongInFilter)
/** Only cohorts have `negation`: on a flag's own filter it is ignored, so `not` there cannot have meant it. */
const leafLevel = createLevel(filterFields, { ...wrongInFilter, negation: ['negate', 'negated', 'not', 'inverted'] })
const groupLevel = createLevel(['type', 'values'], {})
const multivariateLevel = createLevel(['variants'], { variants: ['variations'] })
const variantLevel = createLevel(['key', 'name', 'rollout_percentage'], { rollout_percentage: percentages })
const holdoutLevel = createLevel(['id', 'exclusion_percentage'], {
  exclusion_percentage: ['rollout_percentage', ...percentages],
})
const holdoutGroupLevel = createLevel(['properties', 'rollout_percentage', 'variant'], {
  rollout_percentage: percentages,
})

/** Limits the unknown names examined: PostHog's definitions have a few, and many must not block the event loop. */
const unknownCountMax = 200
/** Limits the issues of a definition in which every filter has the same typing errors. */
const issueCountMax = 1_000

/**
 * The first 1,000 misspelt fields at all levels of a flag's filters, each as `invalid_input` with its path.
 * Source: ours, docs/wire/private-api.md §4.
 */
export function findMisspeltFields(filters: JsonObject): FlagIssue[] {
  const fields = new MisspeltFields()
  fields.look(filters, filtersLevel, 'filters')
  for (const name of ['groups', 'super_groups']) {
    for (const [set, path] of iterateWithPaths(getOwnValue(filters, name), `filters.${name}`)) {
      fields.look(set, setLevel, path)
      const properties = isJsonObject(set) ? getOwnValue(set, 'properties') : undefined
      for (const [filter, at] of iterateWithPaths(properties, `${path}.properties`))
        fields.look(filter, filterLevel, at)
    }
  }
  const multivariate = getOwnValue(filters, 'multivariate') ?? null
  fields.look(multivariate, multivariateLevel, 'filters.multivariate')
  const variants = isJsonObject(multivariate) ? getOwnValue(multivariate, 'variants') : undefined
  for (const [variant, at] of iterateWithPaths(variants, 'filters.multivariate.variants'))
    fields.look(variant, variantLevel, at)
  fields.look(getOwnValue(filters, 'holdout') ?? null, holdoutLevel, 'filters.holdout')
  for (const [group, at] of iterateWithPaths(getOwnValue(filters, 'holdout_groups'), 'filters.holdout_groups'))
    fields.look(group, holdoutGroupLevel, at)
  return fields.issues
}

/** Collects the misspelt fields of one definition, object by object. */
export class MisspeltFields {
  readonly issues: FlagIssue[] = []
  /** Per level, the known name that was probably meant by each unknown name; null when it resembles no known name. */
  readonly #meantOf = new Map<Level, Map<string, string | null>>()
  #unknownCount = 0

  /** Checks a filter or a group of filters in a cohort's tree. */
  checkCohortEntry(entry: JsonObject, kind: 'group' | 'filter', path: string): void {
    this.look(entry, kind === 'group' ? groupLevel : leafLevel, path)
  }

  look(value: JsonValue, level: Level, path: string): void {
    if (!isJsonObject(value)) return
    for (const name of Object.keys(value)) {
      if (level.known.includes(name)) continue
      const meant = this.#findMeant(name, level)
      if (meant === null) continue
      if (this.issues.length >= issueCountMax) return
      const message = `Unknown field ${name}. Did you mean ${meant}?`
      this.issues.push({ path: `${path}.${name}`, code: 'invalid_input', message })
    }
  }

  #findMeant(name: string, level: Level): string | null {
    const ofLevel = this.#meantOf.get(level) ?? new Map<string, string | null>()
    this.#meantOf.set(level, ofLevel)
    const remembered = ofLevel.get(name)
    if (remembered !== undefined) return remembered
    if (this.#unknownCount >= unknownCountMax) return null
    this.#unknownCount++
    const meant = level.wrong.get(name.toLowerCase()) ?? findIntendedName(name, level.known)
    ofLevel.set(name, meant)
    return meant
  }
}

function* iterateWithPaths(list: JsonValue | undefined, path: string): Iterable<[JsonValue, string]> {
  if (Array.isArray(list)) for (const [index, entry] of list.entries()) yield [entry, `${path}.${index}`]
}

function createLevel(known: readonly string[], wrongOf: Readonly<Record<string, readonly string[]>>): Level {
  const wrong = new Map(Object.entries(wrongOf).flatMap(([meant, names]) => names.map(name => [name, meant] as const)))
  return { known, wrong }
}
