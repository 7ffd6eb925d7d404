// Reads PostHog's TrendsQuery. A field that would change the answer but is not supported here is refused.

import { cohortIdOf } from '#core/flags/definitions/cohort-tree.ts'
import { bucketIntervals } from '#core/insights/buckets.ts'
import { type Breakdown, breakdownLimitDefault, breakdownLimitMax, breakdownsMax } from '#core/insights/conditions.ts'
import type { WrittenDateRange } from '#core/insights/date-range.ts'
import {
  numberAggregates,
  seriesMax,
  type TrendBreakdowns,
  type TrendComparison,
  type TrendMath,
  type TrendSeries,
  type TrendsQuery,
} from '#core/insights/trends-query.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import type { Result } from '#core/result.ts'
import type { WireError } from '../wire-error.ts'
import { type FilterCounter, filterTypes, readFilterConditions, readPropertySource } from './property-filters.ts'
import { QueryFields } from './query-fields.ts'

const followed = [
  ...['kind', 'series', 'interval', 'dateRange', 'properties', 'filterTestAccounts', 'breakdownFilter'],
  ...['compareFilter', 'trendsFilter', 'samplingFactor'],
]
/** Display and caching options, which are left to the caller. */
const ignored = ['version', 'tags', 'aggregation_group_type_index', 'modifiers', 'response', 'dataColorTheme']

/** Fields that older insights of PostHog have on the query itself. */
const elsewhere = {
  ...{ date_from: 'dateRange.date_from', date_to: 'dateRange.date_to', events: 'series' },
  ...{ breakdown: 'breakdownFilter.breakdown', breakdown_type: 'breakdownFilter.breakdown_type' },
  ...{ breakdowns: 'breakdownFilter.breakdowns', breakdown_limit: 'breakdownFilter.breakdown_limit' },
  ...{ compare: 'compareFilter.compare', compare_to: 'compareFilter.compare_to', display: 'trendsFilter.display' },
  ...{ formula: 'trendsFilter.formula', filter_test_accounts: 'filterTestAccounts' },
}

/** @param query the object whose `kind` is TrendsQuery. Errors name fields by their path, which starts at `query`. */
export function readTrendsQuery(query: JsonObject): Result<TrendsQuery, WireError> {
  return QueryFields.read(query, 'query', fields => {
    fields.known([...followed, ...ignored], elsewhere)
    fields.refuseUnless('samplingFactor', value => value === 1, 'Sampling is not supported: omit samplingFactor.')
    const isCumulative = fields.object('trendsFilter', readIsCumulative) ?? false
    const read: FilterCounter = { count: 0 }
    const series = fields.list('series', seriesMax, one => readSeries(one, read), 1)
    if (isCumulative && !series.every(({ math }) => isAdditiveMath(math)))
      fields.fail('trendsFilter.display', 'ActionsLineGraphCumulative supports only total and sum.')
    return {
      series,
      isCumulative,
      interval: fields.choice('interval', bucketIntervals) ?? 'day',
      dates: fields.object('dateRange', readDates) ?? { from: null, to: null, isExplicit: false },
      condition: readFilterConditions(fields, 'properties', read),
      leavesOutTestAccounts: fields.boolean('filterTestAccounts') ?? false,
      breakdowns: fields.object('breakdownFilter', readBreakdownFilter),
      compare: fields.object('compareFilter', readComparison),
    }
  })
}

/** Whether buckets can be added up. Counts of persons and groups cannot: together they are fewer than the sum. */
function isAdditiveMath(math: TrendMath): boolean {
  return math.kind === 'events' || (math.kind === 'numbers' && math.aggregate === 'sum')
}

/** The forms of a chart that show one figure per bucket. */
const displays = [
  'ActionsLineGraph',
  'ActionsLineGraphCumulative',
  'ActionsAreaGraph',
  'ActionsBar',
  'ActionsStackedBar',
  'ActionsUnstackedBar',
  'Auto',
] as const
const formulas = ['formula', 'formulas', 'formulaNodes']

/** @returns whether figures are added up from bucket to bucket. */
function readIsCumulative(fields: QueryFields): boolean {
  const display = fields.choice('display', displays)
  for (const name of formulas) {
    fields.refuseUnless(
      name,
      value => value === '' || (Array.isArray(value) && value.length === 0),
      'Formulas are not supported.',
    )
  }
  fields.refuseUnless('smoothingIntervals', value => value === 1, 'Smoothing is not supported.')
  return display === 'ActionsLineGraphCumulative'
}

function readDates(fields: QueryFields): WrittenDateRange {
  fields.known(['date_from', 'date_to', 'explicitDate'], {
    ...{ from: 'date_from', after: 'date_from', start: 'date_from', dateFrom: 'date_from' },
    ...{ to: 'date_to', before: 'date_to', end: 'date_to', dateTo: 'date_to' },
  })
  return {
    from: fields.text('date_from'),
    to: fields.text('date_to'),
    isExplicit: fields.boolean('explicitDate') ?? false,
  }
}

const units = { h: 'hours', d: 'days', w: 'weeks', m: 'months', y: 'years' } as const

function readComparison(fields: QueryFields): TrendComparison | null {
  fields.known(['compare', 'compare_to'])
  const text = fields.text('compare_to')
  if (fields.boolean('compare') !== true) return null
  if (text === null) return { back: null }
  const span = /^-?(\d{1,4})([hdwmy])$/.exec(text)
  if (span === null || Number(span[1]) === 0) fields.fail('compare_to', 'Must be a span such as -1w, -1m or -1y.')
  return { back: { [units[span[2] as keyof typeof units]]: Number(span[1]) } }
}

const seriesFields = [
  ...['kind', 'event', 'name', 'custom_name', 'math', 'math_property', 'math_group_type_index'],
  ...['properties', 'fixedProperties'],
]
const ignoredSeriesFields = ['version', 'limit', 'orderBy', 'response', 'optionalInFunnel']

function readSeries(fields: QueryFields, read: FilterCounter): TrendSeries {
  const kind = fields.text('kind')
  if (kind !== 'EventsNode') {
    fields.fail('kind', 'Must be EventsNode: actions and other sources are not supported.')
  }
  fields.known([...seriesFields, 'math_property_type', ...ignoredSeriesFields])
  fields.refuseUnless(
    'math_property_type',
    value => value === 'event_properties' || value === 'numerical_event_properties',
    'Only event properties are supported.',
  )
  const conditions = ['properties', 'fixedProperties'].map(name => readFilterConditions(fields, name, read))
  return {
    event: fields.text('event'),
    customName: fields.text('custom_name'),
    math: readMath(fields),
    condition: { kind: 'all', conditions },
  }
}

const mathNames = ['total', 'dau', 'unique_group', ...numberAggregates] as const

function readMath(fields: QueryFields): TrendMath {
  const name = fields.choice('math', mathNames) ?? 'total'
  if (name === 'total') return { kind: 'events' }
  if (name === 'dau') return { kind: 'persons' }
  if (name === 'unique_group') {
    return { kind: 'groups', groupTypeIndex: fields.requiredInteger('math_group_type_index', 0, 4) }
  }
  return { kind: 'numbers', aggregate: name, property: fields.requiredText('math_property') }
}

const cohortsMax = 10
const notFollowed = ['breakdown_normalize_url', 'breakdown_histogram_bin_count', 'breakdown_path_cleaning']

/** @returns null when the query asks for no breakdown. */
function readBreakdownFilter(fields: QueryFields): TrendBreakdowns | null {
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
    return { key, source: readPropertySource(fields, type, key, 'breakdown_group_type_index') }
  })
  return by.length === 0 ? null : { kind: 'properties', by, isList: by.length > 1, limit, hidesOther }
}

function readBreakdown(fields: QueryFields): Breakdown {
  fields.known(['property', 'type', 'group_type_index', 'normalize_url', 'histogram_bin_count'])
  for (const name of ['normalize_url', 'histogram_bin_count'])
    fields.refuseUnless(name, value => value === false, 'Value transformations are not supported: omit this field.')
  const key = fields.requiredText('property')
  const type = fields.choice('type', filterTypes) ?? 'event'
  if (type === 'cohort')
    fields.fail('type', 'Cohorts cannot be combined with other breakdowns: use breakdown_type cohort.')
  return { key, source: readPropertySource(fields, type, key, 'group_type_index') }
}

function readCohorts(fields: QueryFields, value: JsonValue): (number | null)[] {
  const ids = Array.isArray(value) ? value : [value]
  if (ids.length > cohortsMax) fields.fail('breakdown', `At most ${cohortsMax} cohorts.`)
  return ids.map(id =>
    id === 'all' || id === 0 ? null : (cohortIdOf(id) ?? fields.fail('breakdown', 'Must be cohort ids, or all.')),
  )
}
