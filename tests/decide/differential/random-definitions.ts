// Random definitions of a project, as the private API takes them: flags with every kind of condition, cohorts that
// refer to each other, dependencies. They include what posthog-node reads differently from a server, because those
// differences are asserted too (`documented-differences.ts`).

import { type Pick, picker } from './picker.ts'

export const groupTypes = ['company', 'team'] as const

export interface RandomFilter {
  key: string
  type: 'person' | 'group' | 'cohort' | 'flag'
  operator: string
  value?: unknown
  group_type_index?: number
  negation?: boolean
}

export interface RandomSet {
  properties: RandomFilter[]
  rollout_percentage?: number
  variant?: string
  aggregation_group_type_index?: number | null
}

export interface RandomFlag {
  /** The server's, once it is created. */
  id: number
  key: string
  active: boolean
  bucketing_identifier: string | null
  filters: {
    groups: RandomSet[]
    multivariate?: { variants: { key: string; rollout_percentage: number }[] }
    payloads?: Record<string, string>
    aggregation_group_type_index?: number
    feature_enrollment?: boolean
    holdout?: { id: number; exclusion_percentage: number }
    early_exit?: boolean
  }
}

export type RandomTree = { type: 'AND' | 'OR'; values: (RandomTree | RandomFilter)[] }

export interface RandomCohort {
  /** The server's, once it is created. */
  id: number
  is_static: boolean
  tree: RandomTree
}

/** Property names by what their values are usually like; values of other kinds come as well. */
export const propertyNames = ['plan', 'email', 'age', 'score', 'verified', 'signed_up', 'version', 'tags'] as const
type PropertyName = (typeof propertyNames)[number]

const texts: Record<'plan' | 'email', readonly string[]> = {
  plan: ['free', 'Pro', 'PRO', 'enterprise', 'Straße', 'true', 'FALSE', 'null', '', 'pro plan'],
  email: ['ada@example.com', 'ADA@EXAMPLE.COM', 'bob@mail.test', 'x', 'é@example.com', '12.50'],
}

/** What a subject, or a filter on it, may have as a value of this property. */
export function randomValue(name: PropertyName, pick: Pick): unknown {
  if (pick.chance(0.03)) return pick.one([null, true, false, '', 0, 1, 'text', [], ['a']])
  switch (name) {
    case 'plan':
    case 'email':
      return pick.one(texts[name])
    case 'age':
      return pick.one([17, 18, 36, 36, 64, '18', '36', 'thirty', -3, 1_000_000])
    case 'score':
      return pick.one([0.5, 1.25, 12.5, 99.75, '12.5', '1e1', -0.5])
    case 'verified':
      return pick.one([true, false, 'true', 'False', 'yes'])
    case 'signed_up':
      return pick.one([
        '2024-01-31T10:00:00Z',
        '2024-02-29T23:59:59+02:00',
        '2025-06-01',
        '2026-01-01T00:00:00Z',
        '2019-12-31 12:00:00+00:00',
        'yesterday',
      ])
    case 'version':
      return pick.one(['1.2.3', '1.2.4', '1.10.0', '2.0.0', '0.3.1', '2', '1.2', 'v1.2.3', 'latest'])
    case 'tags':
      return pick.one([['a', 'b'], ['beta'], 'beta', ['true'], []])
  }
}

const textOperators = ['exact', 'is_not', 'icontains', 'not_icontains', 'starts_with', 'not_starts_with', 'ends_with']
const anyOperators = [...textOperators, 'not_ends_with', 'regex', 'not_regex', 'is_set', 'is_not_set']
const numberOperators = ['gt', 'gte', 'lt', 'lte', 'exact', 'is_not', 'between', 'is_set']
const dateOperators = ['is_date_before', 'is_date_after', 'is_set', 'is_date_exact']
const versionOperators = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'tilde', 'caret', 'wildcard'].map(op => `semver_${op}`)
const patterns = ['^a.*com$', '(?i)pro', '[0-9]+', '\\d{2}', 'e', '^$', 'x|y', '(a|b)+@', '^\\w+$', '\\.']

export function randomPropertyFilter(pick: Pick): RandomFilter {
  const key = pick.one(propertyNames)
  const filter: RandomFilter = { key, type: 'person', operator: operatorFor(key, pick) }
  const value = filterValue(key, filter.operator, pick)
  return value === undefined ? filter : { ...filter, value }
}

function operatorFor(name: PropertyName, pick: Pick): string {
  if (pick.chance(0.05)) return pick.one([...anyOperators, ...numberOperators, 'icontains_multi'])
  if (name === 'age' || name === 'score') return pick.one(numberOperators)
  if (name === 'signed_up') return pick.one(dateOperators)
  if (name === 'version') return pick.one(versionOperators)
  return pick.one(anyOperators)
}

function filterValue(name: PropertyName, operator: string, pick: Pick): unknown {
  switch (operator) {
    case 'is_set':
    case 'is_not_set':
      return undefined
    case 'regex':
    case 'not_regex':
      return pick.one(patterns)
    case 'between':
      return pick.one([
        [0, 20],
        [18, 64.5],
      ])
    case 'icontains_multi':
      return ['pro', 'ada']
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return pick.one([18, 36, 12.5, '18', '1e1', 0])
    case 'is_date_before':
    case 'is_date_after':
    case 'is_date_exact':
      return pick.one([
        '2024-06-01T00:00:00Z',
        '-30d',
        '-1y',
        '2025-06-01',
        '-700d',
        '-18m',
        '2024-02-29T23:59:59+02:00',
      ])
    case 'semver_wildcard':
      return pick.one(['1.2.*', '1.*', '2.0.*', '*'])
    case 'exact':
    case 'is_not':
      return pick.chance(0.4) ? [valueText(name, pick), valueText(name, pick)] : valueText(name, pick)
    default:
      return operator.startsWith('semver_') ? pick.one(['1.2.3', '0.3.0', '2.0', '1.10.0']) : valueText(name, pick)
  }
}

/** A value that every operator on texts takes. */
function valueText(name: PropertyName, pick: Pick): unknown {
  const value = randomValue(name, pick)
  return typeof value === 'object' ? 'beta' : value
}

export function randomCohort(pick: Pick, earlier: readonly RandomCohort[]): RandomCohort {
  return { id: 0, is_static: pick.chance(0.1), tree: randomTree(pick, earlier, pick.int(0, 2)) }
}

/** posthog-node takes either groups or leaves within one group. */
function randomTree(pick: Pick, earlier: readonly RandomCohort[], depth: number): RandomTree {
  const count = pick.int(1, 3)
  const values = Array.from({ length: count }, () =>
    depth > 0 ? randomTree(pick, earlier, depth - 1) : randomLeaf(pick, earlier),
  )
  return { type: pick.one(['AND', 'OR']), values }
}

function randomLeaf(pick: Pick, earlier: readonly RandomCohort[]): RandomFilter {
  const negation = pick.chance(0.2) ? { negation: true } : {}
  if (earlier.length === 0 || !pick.chance(0.25)) return { ...randomPropertyFilter(pick), ...negation }
  return { ...cohortFilter(pick, earlier), ...negation }
}

function cohortFilter(pick: Pick, cohorts: readonly RandomCohort[]): RandomFilter {
  return { key: 'id', type: 'cohort', operator: pick.one(['in', 'not_in']), value: pick.one(cohorts).id }
}

export interface DefinitionsSoFar {
  readonly flags: readonly RandomFlag[]
  readonly cohorts: readonly RandomCohort[]
}

export function randomFlag(key: string, pick: Pick, so: DefinitionsSoFar): RandomFlag {
  const variants = randomVariants(pick)
  const groupTypeIndex = pick.chance(0.15) ? pick.int(0, groupTypes.length - 1) : undefined
  const setCount = pick.int(1, 4)
  return {
    id: 0,
    key,
    active: !pick.chance(0.05),
    bucketing_identifier: pick.chance(0.05) ? 'device_id' : null,
    filters: {
      groups: Array.from({ length: setCount }, () => randomSet(pick, so, variants, groupTypeIndex)),
      ...(variants.length > 0 ? { multivariate: { variants } } : {}),
      ...(pick.chance(0.3) ? { payloads: { true: '{"on": true}', [variants[0]?.key ?? 'true']: '"first"' } } : {}),
      ...(groupTypeIndex === undefined ? {} : { aggregation_group_type_index: groupTypeIndex }),
      ...(pick.chance(0.03) ? { feature_enrollment: true } : {}),
      ...(pick.chance(0.05) ? { holdout: { id: 7, exclusion_percentage: pick.one([0, 10, 50, 100]) } } : {}),
      ...(pick.chance(0.1) ? { early_exit: true } : {}),
    },
  }
}

function randomVariants(pick: Pick): { key: string; rollout_percentage: number }[] {
  if (pick.chance(0.5)) return []
  const shares = pick.one([[100], [50, 50], [33.3, 33.3, 33.4], [10, 20, 70], [0, 100], [25, 25, 25, 25]])
  return shares.map((rollout_percentage, index) => ({ key: `variant-${index}`, rollout_percentage }))
}

function randomSet(
  pick: Pick,
  so: DefinitionsSoFar,
  variants: readonly { key: string }[],
  flagGroup: number | undefined,
): RandomSet {
  const ownGroup = pick.chance(0.08) ? pick.one([null, 0, 1]) : undefined
  const group = ownGroup === undefined ? (flagGroup ?? null) : ownGroup
  const filters = Array.from({ length: pick.one([0, 1, 1, 1, 2, 2, 3]) }, () => randomFilter(pick, so, group))
  return {
    properties: filters,
    ...(pick.chance(0.6) ? { rollout_percentage: pick.one([0, 100, 50, 33.3, 12.5, pick.int(1, 99)]) } : {}),
    ...(variants.length > 0 && pick.chance(0.2) ? { variant: pick.one(variants).key } : {}),
    ...(ownGroup === undefined ? {} : { aggregation_group_type_index: ownGroup }),
  }
}

function randomFilter(pick: Pick, { flags, cohorts }: DefinitionsSoFar, group: number | null): RandomFilter {
  if (flags.length > 0 && pick.chance(0.12)) return dependencyOn(pick.one(flags), pick)
  if (cohorts.length > 0 && group === null && pick.chance(0.2)) return cohortFilter(pick, cohorts)
  const filter = randomPropertyFilter(pick)
  return group === null || pick.chance(0.05) ? filter : { ...filter, type: 'group', group_type_index: group }
}

function dependencyOn(flag: RandomFlag, pick: Pick): RandomFilter {
  const variants = flag.filters.multivariate?.variants ?? []
  const value = pick.one([true, true, false, ...variants.map(variant => variant.key)])
  return { key: String(flag.id), type: 'flag', operator: 'flag_evaluates_to', value }
}

export interface RandomSubject {
  readonly distinctId: string
  readonly groups: Record<string, string>
  readonly personProperties: Record<string, unknown>
  readonly groupProperties: Record<string, Record<string, unknown>>
}

/** Most send what the flags read: what is not sent is where local evaluation has to give up. */
export function randomSubject(random: () => number): RandomSubject {
  const pick = picker(random)
  const sent = groupTypes.filter(() => pick.chance(0.8))
  return {
    distinctId: pick.one([`user-${pick.int(0, 1e9)}`, `${pick.int(0, 1e6)}`, `ünï-${pick.int(0, 999)}`]),
    groups: Object.fromEntries(sent.map(type => [type, `${type}-${pick.int(0, 9999)}`])),
    personProperties: {
      ...properties(pick),
      ...(pick.chance(0.7) ? { $device_id: `device-${pick.int(0, 9999)}` } : {}),
    },
    groupProperties: Object.fromEntries(sent.map(type => [type, properties(pick)])),
  }
}

function properties(pick: Pick): Record<string, unknown> {
  const missing = pick.chance(0.25)
  const names = propertyNames.filter(() => !missing || pick.chance(0.8))
  return Object.fromEntries(names.map(name => [name, randomValue(name, pick)]))
}
