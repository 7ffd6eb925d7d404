// Reads PostHog's TrendsQuery. A field that would change the answer but is not supported here is refused.

import { bucketIntervals } from '#core/insights/buckets.ts'
import type { WrittenDateRange } from '#core/insights/date-range.ts'
import {
  numberAggregates,
  seriesMax,
  type TrendComparison,
  type TrendMath,
  type TrendSeries,
  type TrendsQuery,
} from '#core/insights/trends-query.ts'
import type { JsonObject } from '#core/json.ts'
import type { Result } from '#core/result.ts'
import type { WireError } from '../wire-error.ts'
import { readBreakdownFilter } from './breakdown-filter.ts'
import { Fields } from './fields.ts'
import { type ReadFilters, readFilters } from './property-filters.ts'

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

/** @param query the object whose `kind` is TrendsQuery. Fields in errors are named from `query`. */
export function readTrendsQuery(query: JsonObject): Result<TrendsQuery, WireError> {
  return Fields.read(query, 'query', fields => {
    fields.known([...followed, ...ignored], elsewhere)
    fields.refuseUnless('samplingFactor', value => value === 1, 'Sampling is not supported: omit samplingFactor.')
    const isCumulative = fields.object('trendsFilter', readDisplay) ?? false
    const read: ReadFilters = { count: 0 }
    const series = fields.list('series', seriesMax, one => readSeries(one, read), 1)
    if (isCumulative && !series.every(({ math }) => isAdditiveMath(math)))
      fields.fail('trendsFilter.display', 'ActionsLineGraphCumulative supports only total and sum.')
    return {
      series,
      isCumulative,
      interval: fields.choice('interval', bucketIntervals) ?? 'day',
      dates: fields.object('dateRange', readDates) ?? { from: null, to: null, isExplicit: false },
      condition: readFilters(fields, 'properties', read),
      leavesOutTestAccounts: fields.boolean('filterTestAccounts') ?? false,
      breakdowns: fields.object('breakdownFilter', readBreakdownFilter),
      compare: fields.object('compareFilter', readComparison),
    }
  })
}

/** Persons and groups of several buckets are fewer than their sum. */
function isAdditiveMath(math: TrendMath): boolean {
  return math.kind === 'events' || (math.kind === 'numbers' && math.aggregate === 'sum')
}

/** Forms of a chart that draw one figure per bucket. */
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
function readDisplay(fields: Fields): boolean {
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

function readDates(fields: Fields): WrittenDateRange {
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

function readComparison(fields: Fields): TrendComparison | null {
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

function readSeries(fields: Fields, read: ReadFilters): TrendSeries {
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
  const conditions = ['properties', 'fixedProperties'].map(name => readFilters(fields, name, read))
  return {
    event: fields.text('event'),
    customName: fields.text('custom_name'),
    math: readMath(fields),
    condition: { kind: 'all', conditions },
  }
}

const mathNames = ['total', 'dau', 'unique_group', ...numberAggregates] as const

function readMath(fields: Fields): TrendMath {
  const name = fields.choice('math', mathNames) ?? 'total'
  if (name === 'total') return { kind: 'events' }
  if (name === 'dau') return { kind: 'persons' }
  if (name === 'unique_group') {
    return { kind: 'groups', groupTypeIndex: fields.requiredInteger('math_group_type_index', 0, 4) }
  }
  return { kind: 'numbers', aggregate: name, property: fields.requiredText('math_property') }
}
