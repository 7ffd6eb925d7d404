// Reads PostHog's breakdownFilter.

import { cohortIdOf } from '#core/flags/definitions/cohort-tree.ts'
import { type Breakdown, breakdownLimitDefault, breakdownLimitMax, breakdownsMax } from '#core/insights/conditions.ts'
import type { TrendBreakdowns } from '#core/insights/trends-query.ts'
import type { JsonValue } from '#core/json.ts'
import type { Fields } from './fields.ts'
import { filterTypes, readSource } from './property-filters.ts'

const cohortsMax = 10
const notFollowed = ['breakdown_normalize_url', 'breakdown_histogram_bin_count', 'breakdown_path_cleaning']

/** @returns null when it asks for no breakdown. */
export function readBreakdownFilter(fields: Fields): TrendBreakdowns | null {
  fields.known([
    ...['breakdown', 'breakdown_type', 'breakdown_group_type_index', 'breakdowns', 'breakdown_limit'],
    ...['breakdown_hide_other_aggregation', ...notFollowed],
  ])
  for (const name of notFollowed)
    fields.refuseUnless(name, value => value === false, 'Value transformations are not supported: omit this field.')
  const limit = fields.integer('breakdown_limit', 1, breakdownLimitMax) ?? breakdownLimitDefault
  const hidesOther = fields.boolean('breakdown_hide_other_aggregation') ?? false
  const several = fields.list('breakdowns', breakdownsMax, readBreakdown)
  if (several.length > 0) {
    if (fields.value('breakdown') !== null) fields.fail('breakdown', 'Send either breakdown or breakdowns, not both.')
    return { kind: 'properties', by: several, isList: true, limit, hidesOther }
  }
  const value = fields.value('breakdown')
  if (value === null) return null
  const type = fields.choice('breakdown_type', filterTypes) ?? 'event'
  if (type === 'cohort') return { kind: 'cohorts', cohortIds: readCohorts(fields, value) }
  const keys = Array.isArray(value) ? value : [value]
  if (keys.length > breakdownsMax) fields.fail('breakdown', `At most ${breakdownsMax} breakdowns.`)
  const by = keys.map(key => {
    if (typeof key !== 'string' || key === '' || key.length > 2_000)
      fields.fail('breakdown', 'Must be the name of a property.')
    return { key, source: readSource(fields, type, key, 'breakdown_group_type_index') }
  })
  return by.length === 0 ? null : { kind: 'properties', by, isList: by.length > 1, limit, hidesOther }
}

function readBreakdown(fields: Fields): Breakdown {
  fields.known(['property', 'type', 'group_type_index', 'normalize_url', 'histogram_bin_count'])
  for (const name of ['normalize_url', 'histogram_bin_count'])
    fields.refuseUnless(name, value => value === false, 'Value transformations are not supported: omit this field.')
  const key = fields.requiredText('property')
  const type = fields.choice('type', filterTypes) ?? 'event'
  if (type === 'cohort')
    fields.fail('type', 'Cohorts cannot be combined with other breakdowns: use breakdown_type cohort.')
  return { key, source: readSource(fields, type, key, 'group_type_index') }
}

function readCohorts(fields: Fields, value: JsonValue): (number | null)[] {
  const ids = Array.isArray(value) ? value : [value]
  if (ids.length > cohortsMax) fields.fail('breakdown', `At most ${cohortsMax} cohorts.`)
  return ids.map(id =>
    id === 'all' || id === 0 ? null : (cohortIdOf(id) ?? fields.fail('breakdown', 'Must be cohort ids, or all.')),
  )
}
