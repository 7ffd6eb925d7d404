// Reads a stored or sent `filters` of version 2 into rules. Evaluation and writing share this reader, and it is strict:
// anything unknown fails the flag, because a rule that is half understood would serve the wrong value. Source:
// docs/wire/evaluation.md 11.1, 11.2.

import { getOwnValue, isDeeperThan, isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '../../json.ts'
import { err, ok, type Result } from '../../result.ts'
import { parseDateFilter } from '../match/match-date.ts'
import { compileSemver, type SemverOperator, semverOperators } from '../match/match-semver.ts'
import { DocumentFault, DocumentFields, formatNumberLiteral } from './document-fields.ts'
import type { FlagIssue } from './flag-issue.ts'
import {
  type ExperimentRule,
  type Predicate,
  type ReturnType,
  type Rule,
  type RuleHoldout,
  type RulesDocument,
  type RuleVariant,
  returnTypes,
} from './rules-document.ts'

export const ruleCountMax = 100
export const predicateCountMax = 100
export const variantCountMax = 20
export const seedCodePointsMax = 400
/** The maximum size of the document as compact JSON, in UTF-8. */
export const documentBytesMax = 512 * 1024
/** Nesting depth of lists and objects in a value, including the value itself. */
export const valueDepthMax = 20

/** The version of `filters`. Stored numbers may be literals: 2.0 is 2. Source: docs/wire/evaluation.md 11.1. */
export function readConfigVersion(filters: JsonObject): 1 | 2 | 'unsupported' {
  const version = getOwnValue(filters, 'version')
  const number = version === undefined ? 1 : readJsonNumber(version)
  return number === 1 || number === 2 ? number : 'unsupported'
}

/**
 * Reads a whole document of version 2. It does not check whether patterns compile.
 * @returns its rules, or the first fault in the order of reading, such as at `filters.rules.0.seed`.
 */
export function readRules(filters: JsonObject): Result<RulesDocument, FlagIssue> {
  try {
    return ok(readDocument(filters))
  } catch (error) {
    if (error instanceof DocumentFault) return err(error.fault)
    throw error
  }
}

function readDocument(filters: JsonObject): RulesDocument {
  if (readConfigVersion(filters) !== 2) {
    throw new DocumentFault(
      'filters.version',
      'unsupported_config_version',
      'The version of a flag document must be 1 or 2.',
    )
  }
  if (Buffer.byteLength(JSON.stringify(filters)) > documentBytesMax) {
    throw new DocumentFault('filters', 'invalid_input', `A flag document may have at most ${documentBytesMax} bytes.`)
  }
  const document = new DocumentFields(filters, 'filters')
  document.mustBeAmong(['version', 'return_type', 'default_value', 'rules', 'aggregation_group_type_index'])
  const returnType = document.oneOf('return_type', returnTypes)
  if (document.has('aggregation_group_type_index')) {
    document.refuse('aggregation_group_type_index', 'Version 2 flags for groups are not supported.')
  }
  const defaultValue = document.required('default_value')
  if (defaultValue !== null) checkValue(defaultValue, returnType, document.pathOf('default_value'))
  const ids = new Set<string>()
  const rules = document.list('rules', ruleCountMax).map((value, index) => {
    const rule = readRule(DocumentFields.of(value, `filters.rules.${index}`), returnType)
    if (ids.has(rule.id))
      throw new DocumentFault(`filters.rules.${index}.id`, 'invalid_input', 'Another rule has this id.')
    ids.add(rule.id)
    return rule
  })
  checkNumbers(filters)
  return { returnType, defaultValue, rules }
}

const commonFields = ['id', 'rule_type', 'targeting', 'description', 'metadata']
const rolloutFields = ['rollout_percentage', 'on_rollout_miss', 'assignment_algorithm', 'seed', 'assign_by']
const fieldsOfType: { readonly [type in Rule['type']]: readonly string[] } = {
  targeted_release: [...commonFields, 'value'],
  percentage_rollout: [...commonFields, ...rolloutFields, 'value'],
  experiment: [...commonFields, ...rolloutFields, 'experiment_id', 'paused', 'variants', 'holdout'],
}
const ruleTypes = Object.keys(fieldsOfType) as Rule['type'][]

function readRule(rule: DocumentFields, returnType: ReturnType): Rule {
  const type = rule.oneOf('rule_type', ruleTypes)
  rule.mustBeAmong(fieldsOfType[type])
  const id = rule.text('id').toLowerCase()
  if (!/^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/.test(id)) rule.refuse('id', 'The id of a rule must be a UUID.')
  const predicates = readTargeting(rule.object('targeting'))
  if (rule.has('description')) rule.text('description')
  if (rule.has('metadata')) rule.object('metadata')
  switch (type) {
    case 'targeted_release':
      return { type, id, predicates, value: readValue(rule, returnType) }
    case 'percentage_rollout':
      return { type, id, predicates, value: readValue(rule, returnType), ...readRollout(rule) }
    case 'experiment':
      return { type, id, predicates, ...readExperiment(rule, returnType), ...readRollout(rule) }
    default:
      return type satisfies never
  }
}

function readRollout(rule: DocumentFields): Pick<ExperimentRule, 'rolloutPercentage' | 'continuesOnMiss' | 'seed'> {
  const rolloutPercentage = rule.percentage('rollout_percentage')
  const onMiss = rule.oneOf('on_rollout_miss', ['continue', 'return_default'] as const)
  rule.oneOf('assignment_algorithm', ['sha1_60_v1'])
  if (rule.has('assign_by')) rule.oneOf('assign_by', ['person'])
  return { rolloutPercentage, continuesOnMiss: onMiss === 'continue', seed: readSeed(rule) }
}

function readExperiment(
  rule: DocumentFields,
  returnType: ReturnType,
): Pick<ExperimentRule, 'experimentId' | 'paused' | 'variants' | 'holdout'> {
  const experimentId = rule.integerOrNull('experiment_id')
  const paused = rule.boolean('paused')
  const variants = readVariants(rule, returnType)
  const holdout = rule.has('holdout') ? readHoldout(rule.object('holdout'), experimentId !== null) : null
  return { experimentId, paused, variants, holdout }
}

function readVariants(rule: DocumentFields, returnType: ReturnType): RuleVariant[] {
  const values = rule.list('variants', variantCountMax)
  if (values.length < 2) rule.refuse('variants', 'An experiment needs at least two variants.')
  const keys = new Set<string>()
  let hundredths = 0
  const variants = values.map((value, index) => {
    const variant = DocumentFields.of(value, `${rule.pathOf('variants')}.${index}`)
    variant.mustBeAmong(['key', 'weight', 'value'])
    const key = variant.text('key')
    if (!/^[\w-]+$/.test(key)) variant.refuse('key', 'The key of a variant may only contain letters, digits, _ and -.')
    if (keys.has(key)) variant.refuse('key', 'Another variant has this key.')
    keys.add(key)
    const weight = variant.percentage('weight')
    hundredths += Math.round(weight * 100)
    return { key, weight, value: readValue(variant, returnType) }
  })
  if (hundredths !== 10_000) {
    rule.refuse('variants', `The weights of the variants sum to ${hundredths / 100} instead of 100.`)
  }
  return variants
}

function readHoldout(holdout: DocumentFields, isLinked: boolean): RuleHoldout {
  holdout.mustBeAmong(['id', 'seed', 'exclusion_percentage'])
  const id = holdout.integerOrNull('id')
  if ((id !== null) !== isLinked) {
    holdout.refuse('id', 'The id of a holdout must be null if and only if the rule has no experiment.')
  }
  return { id, seed: readSeed(holdout), exclusionPercentage: holdout.percentage('exclusion_percentage') }
}

function readSeed(fields: DocumentFields): string {
  const seed = fields.text('seed')
  // A code point has one or two UTF-16 units, so most seeds need no counting.
  if (seed === '' || (seed.length > seedCodePointsMax && [...seed].length > seedCodePointsMax)) {
    fields.refuse('seed', `A seed must have 1 to ${seedCodePointsMax} characters.`)
  }
  return seed
}

function readTargeting(targeting: DocumentFields): Predicate[] {
  targeting.mustBeAmong(['properties'])
  const path = targeting.pathOf('properties')
  return targeting
    .list('properties', predicateCountMax)
    .map((value, index) => readPredicate(DocumentFields.of(value, `${path}.${index}`)))
}

const predicateFields = [
  ...['key', 'type', 'operator', 'value', 'negation'],
  ...['label', 'cohort_name', 'group_key_names', 'group_type_index'],
]

function readPredicate(predicate: DocumentFields): Predicate {
  predicate.mustBeAmong(predicateFields)
  if (predicate.text('type') !== 'person') {
    predicate.refuse('type', 'Rules of version 2 flags can test only person properties: the type must be "person".')
  }
  const key = predicate.text('key')
  if (key === '') predicate.refuse('key', 'The key of a property must not be empty.')
  const operator = predicate.isSet('operator') ? predicate.text('operator') : 'exact'
  const form = valueFormOf.get(operator)
  if (form === undefined) {
    const known = [...valueFormOf.keys()].join(', ')
    predicate.refuse('operator', `Unknown operator "${operator.slice(0, 80)}". Rules support ${known}.`)
  }
  for (const name of ['label', 'cohort_name']) if (predicate.isSet(name)) predicate.text(name)
  if (predicate.isSet('group_type_index')) predicate.refuse('group_type_index', 'Must be null or omitted.')
  if (predicate.isSet('group_key_names')) {
    const names = predicate.object('group_key_names')
    for (const name of names.names()) names.text(name)
  }
  const negation = predicate.isSet('negation') && predicate.boolean('negation')
  const value = predicate.isSet('value') ? predicate.required('value') : undefined
  checkPredicateValue(form, operator, value, predicate)
  return { key, operator, value, negation }
}

type ValueForm = 'any' | 'text' | 'number_or_text' | 'list' | 'version' | 'date'

/** The operators of a rule and the form that their value must have. Source: docs/wire/evaluation.md 11.2. */
const valueFormOf: ReadonlyMap<string, ValueForm> = new Map([
  ...createFormEntries('any', ['exact', 'is_not', 'is_set', 'is_not_set']),
  ...createFormEntries('text', [
    'icontains',
    'not_icontains',
    'starts_with',
    'not_starts_with',
    'ends_with',
    'not_ends_with',
  ]),
  ...createFormEntries('text', ['regex', 'not_regex']),
  ...createFormEntries('list', ['icontains_multi', 'not_icontains_multi']),
  ...createFormEntries('number_or_text', ['gt', 'gte', 'lt', 'lte']),
  ...createFormEntries('date', ['is_date_exact', 'is_date_before', 'is_date_after']),
  ...createFormEntries('version', semverOperators),
])

function createFormEntries(form: ValueForm, operators: readonly string[]): [string, ValueForm][] {
  return operators.map(operator => [operator, form])
}

const valueHint: { readonly [form in Exclude<ValueForm, 'any'>]: string } = {
  text: 'text',
  number_or_text: 'a number or string',
  list: 'a list',
  version: 'a version such as 1.2.3, as a string',
  date: 'a date such as 2026-01-31, or a span such as -7d, as a string',
}

function checkPredicateValue(
  form: ValueForm,
  operator: string,
  value: JsonValue | undefined,
  predicate: DocumentFields,
): void {
  if (form === 'any') return
  const needed = `The operator ${operator} needs ${valueHint[form]}.`
  if (value === undefined) throw new DocumentFault(predicate.pathOf('value'), 'required', needed)
  if (!hasForm(form, operator, value)) predicate.refuse('value', needed)
}

function hasForm(form: Exclude<ValueForm, 'any'>, operator: string, value: JsonValue): boolean {
  switch (form) {
    case 'text':
      return typeof value === 'string'
    case 'number_or_text':
      return typeof value === 'string' || readJsonNumber(value) !== undefined
    case 'list':
      return Array.isArray(value)
    case 'version':
      return typeof value === 'string' && compileSemver(operator as SemverOperator, value) !== null
    case 'date':
      // Checked in UTC, as for version 1: the project's zone may skip this wall time, but that zone may change.
      return parseDateFilter(value, 'UTC') !== null
    default:
      return form satisfies never
  }
}

function readValue(fields: DocumentFields, returnType: ReturnType): JsonValue {
  const value = fields.required('value')
  checkValue(value, returnType, fields.pathOf('value'))
  return value
}

/** @throws Fault for a value that is not of the document's type. */
function checkValue(value: JsonValue, type: ReturnType, path: string): void {
  const isOfType =
    type === 'number'
      ? readJsonNumber(value) !== undefined
      : type === 'object'
        ? isJsonObject(value)
        : typeof value === type
  if (!isOfType) throw new DocumentFault(path, 'invalid', `The values of this flag must be of type ${type}.`)
  if (value === '') throw new DocumentFault(path, 'invalid_input', 'A string must not be empty.')
  if (type === 'object' && isDeeperThan(value, valueDepthMax)) {
    throw new DocumentFault(path, 'invalid_input', `A value may be nested at most ${valueDepthMax} levels deep.`)
  }
  if (!isEveryNumber(value, number => Math.abs(number) <= Number.MAX_SAFE_INTEGER)) {
    throw new DocumentFault(path, 'invalid_input', `A number must be between ±${Number.MAX_SAFE_INTEGER}.`)
  }
}

/** @throws Fault for a number that no finite double represents: `1e400`, and `1e-400`, which a double would turn into 0. */
function checkNumbers(filters: JsonObject): void {
  const isRepresented = (number: number, literal: string) =>
    Number.isFinite(number) && (number !== 0 || !/^[^e]*[1-9]/i.test(literal))
  if (!isEveryNumber(filters, isRepresented)) {
    throw new DocumentFault('filters', 'invalid_input', 'A number is too large or too small for a double.')
  }
}

function isEveryNumber(value: JsonValue, holds: (number: number, literal: string) => boolean): boolean {
  const number = readJsonNumber(value)
  if (number !== undefined) return holds(number, formatNumberLiteral(value))
  if (Array.isArray(value)) return value.every(element => isEveryNumber(element, holds))
  return !isJsonObject(value) || Object.values<JsonValue>(value).every(member => isEveryNumber(member, holds))
}
