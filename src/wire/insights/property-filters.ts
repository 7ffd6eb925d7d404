// Reads PostHog's property filters of a query: a list combined with AND, or groups of AND and OR.

import { cohortIdOf } from '#core/flags/definitions/cohort-tree.ts'
import { operatorNames } from '#core/flags/match/match-property.ts'
import {
  always,
  type Condition,
  conditionDepthMax,
  conditionsMax,
  conditionValuesMax,
  type PropertySource,
} from '#core/insights/conditions.ts'
import { isJsonObject, type JsonValue } from '#core/json.ts'
import type { Result } from '#core/result.ts'
import type { WireError } from '../wire-error.ts'
import { QueryFields } from './query-fields.ts'

/** The project's filters for excluding its own staff. @param stored its setting `test_account_filters`. */
export function readTestAccountFilters(stored: JsonValue): Result<Condition, WireError> {
  return QueryFields.read({ test_account_filters: stored }, 'project', fields =>
    readFilterConditions(fields, 'test_account_filters', { count: 0 }),
  )
}

/** Counts filters, so that all filters of a query together are bounded. */
export interface FilterCounter {
  count: number
}

/** The condition in a field that may be absent. */
export function readFilterConditions(fields: QueryFields, name: string, read: FilterCounter): Condition {
  const value = fields.value(name)
  if (Array.isArray(value))
    return { kind: 'all', conditions: fields.list(name, conditionsMax, one => readFilter(one, read)) }
  return fields.object(name, group => readEntry(group, read, 0)) ?? always
}

function readEntry(fields: QueryFields, read: FilterCounter, depth: number): Condition {
  if (!fields.has('values')) return readFilter(fields, read)
  if (depth > conditionDepthMax) fields.fail('', `Groups may be nested at most ${conditionDepthMax} levels deep.`)
  fields.known(['type', 'values'])
  const type = fields.choice('type', ['AND', 'OR']) ?? fields.fail('type', 'Must be AND or OR.')
  const conditions = fields.list('values', conditionsMax, entry => readEntry(entry, read, depth + 1))
  if (conditions.length === 0) return always
  return { kind: type === 'AND' ? 'all' : 'any', conditions }
}

export const filterTypes = ['event', 'feature', 'person', 'group', 'cohort'] as const
const operators = operatorNames.filter(name => !['in', 'not_in', 'flag_evaluates_to'].includes(name))

const tooManyFilters = `A query may have at most ${conditionsMax} filters; each list value can count as one.`

function readFilter(fields: QueryFields, read: FilterCounter): Condition {
  if (++read.count > conditionsMax) fields.fail('', tooManyFilters)
  const type = fields.choice('type', filterTypes) ?? 'event'
  fields.known([
    'type',
    'key',
    'value',
    'operator',
    'group_type_index',
    'negation',
    'label',
    'cohort_name',
    'group_key_names',
  ])
  const condition = type === 'cohort' ? readCohort(fields) : readProperty(fields, type, read)
  return fields.boolean('negation') ? { kind: 'not', condition } : condition
}

function readCohort(fields: QueryFields): Condition {
  const cohortId = cohortIdOf(fields.value('value')) ?? fields.fail('value', 'Must be the id of a cohort.')
  const operator = fields.choice('operator', ['in', 'not_in', 'exact', 'is_not']) ?? 'in'
  const isMember = operator === 'in' || operator === 'exact'
  return { kind: 'cohort', cohortId, isMember, path: `${fields.path}.value` }
}

function readProperty(
  fields: QueryFields,
  type: Exclude<(typeof filterTypes)[number], 'cohort'>,
  read: FilterCounter,
): Condition {
  const key = fields.requiredText('key')
  const operator = fields.choice('operator', operators) ?? 'exact'
  const value = fields.value('value')
  if (value === null && !valueless.has(operator)) fields.fail('value', 'A filter needs a value.')
  checkValue(fields, value)
  const source = readPropertySource(fields, type, key, 'group_type_index')
  const createCondition = (operator: string, value: JsonValue): Condition => {
    return { kind: 'property', source, key, operator, value, matchingVersion: 2 }
  }
  if (!Array.isArray(value) || valueless.has(operator)) return createCondition(operator, value)
  if (value.length === 0) fields.fail('value', 'A filter needs a value.')
  if (operator.endsWith('icontains')) return createCondition(`${operator}_multi`, value)
  if (takesLists.has(operator)) return createCondition(operator, value)
  read.count += value.length - 1
  if (read.count > conditionsMax) fields.fail('', tooManyFilters)
  const isNegated = operator.startsWith('not_') || operator === 'semver_neq'
  return { kind: isNegated ? 'all' : 'any', conditions: value.map(one => createCondition(operator, one)) }
}

const valueless = new Set(['is_set', 'is_not_set'])
/**
 * Operators that compare with several values at once; for any other operator, each value becomes a filter, as in
 * PostHog.
 */
const takesLists = new Set(['exact', 'is_not', 'icontains_multi', 'not_icontains_multi', 'between', 'not_between'])

/** @param indexName the field with the index of the group type. */
export function readPropertySource(
  fields: QueryFields,
  type: Exclude<(typeof filterTypes)[number], 'cohort'>,
  key: string,
  indexName: string,
): Exclude<PropertySource, { kind: 'person_today' }> {
  if (type === 'person') return { kind: 'person' }
  if (type === 'group') return { kind: 'group', groupTypeIndex: fields.requiredInteger(indexName, 0, 4) }
  return { kind: isFlagProperty(key) ? 'flag' : 'event' }
}

/** Whether the property of an event is the value of a flag; such values are stored separately. */
function isFlagProperty(key: string): boolean {
  return key.startsWith('$feature/')
}

const valueCharsMax = 2_000

function checkValue(fields: QueryFields, value: JsonValue): void {
  const values = Array.isArray(value) ? value : [value]
  if (values.length > conditionValuesMax) fields.fail('value', `Must have at most ${conditionValuesMax} entries.`)
  for (const one of values) {
    if (Array.isArray(one) || isJsonObject(one))
      fields.fail('value', 'Must be a string, a number, true, false or a list of these.')
    if (typeof one === 'string' && one.length > valueCharsMax)
      fields.fail('value', `A string must have at most ${valueCharsMax} characters.`)
  }
}
