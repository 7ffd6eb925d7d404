// Where posthog-node decides differently from a server, or not at all: docs/wire/evaluation.md 7.1, last table. What a
// flag, and the flags and cohorts that it depends on, read of a subject shows which differences apply.

import {
  groupTypes,
  type RandomCohort,
  type RandomFilter,
  type RandomFlag,
  type RandomSubject,
} from './random-definitions.ts'

/** `undecided`: posthog-node may leave the flag to the server. `other`: it may give another answer. */
export interface Difference {
  readonly name: string
  readonly effect: 'undecided' | 'other' | 'either'
}

export interface World {
  readonly flagById: ReadonlyMap<number, RandomFlag>
  readonly cohortById: ReadonlyMap<number, RandomCohort>
}

/** Every difference that some part of the flag causes for this subject. */
export function documentedDifferences(flag: RandomFlag, subject: RandomSubject, world: World): Difference[] {
  const found = new Map<string, Difference>()
  const add = (name: string, effect: Difference['effect']) => found.set(name, { name, effect })
  ofFlag(flag, subject, world, add)
  return [...found.values()]
}

type Add = (name: string, effect: Difference['effect']) => void

function ofFlag(flag: RandomFlag, subject: RandomSubject, world: World, add: Add): void {
  const { filters } = flag
  if (!flag.active) {
    add('inactive flag: false, absent on the server', 'other')
    return
  }
  if (filters.feature_enrollment === true) add('feature_enrollment is not evaluated', 'other')
  const flagGroup = filters.aggregation_group_type_index ?? null
  if (
    flag.bucketing_identifier === 'device_id' &&
    subject.personProperties.$device_id === undefined &&
    flagGroup === null
  )
    add('no device id', 'either')
  const isMixed = filters.groups.some(set => set.aggregation_group_type_index !== undefined)
  if (isMixed && flagGroup !== null && !isSent(flagGroup, subject))
    add('mixed flag whose flag-level group is not sent', 'other')
  if (isMixed && flag.bucketing_identifier === 'device_id') add('mixed flag bucketed by device', 'either')
  for (const set of filters.groups) {
    const group = set.aggregation_group_type_index === undefined ? flagGroup : set.aggregation_group_type_index
    if (isMixed && group === null && flagGroup !== null)
      add('person set in a group flag: hashes the group key and reads its properties', 'either')
    for (const filter of set.properties) ofFilter(filter, group, subject, world, add)
  }
}

function isSent(group: number, subject: RandomSubject): boolean {
  return subject.groups[groupTypes[group]!] !== undefined
}

function ofFilter(filter: RandomFilter, group: number | null, subject: RandomSubject, world: World, add: Add): void {
  switch (filter.type) {
    case 'flag':
      ofFlag(world.flagById.get(Number(filter.key))!, subject, world, add)
      break
    case 'cohort': {
      const cohort = world.cohortById.get(filter.value as number)!
      if (group !== null) add('cohort in a group set reads group properties', 'either')
      if (cohort.is_static) add('static cohort', 'either')
      else ofTree(cohort.tree, subject, world, add)
      break
    }
    case 'person':
      if (group !== null) add('person filter in a group set reads group properties', 'either')
      ofProperty(filter, subject.personProperties, add)
      break
    case 'group': {
      const type = groupTypes[filter.group_type_index!]!
      ofProperty(filter, subject.groupProperties[type] ?? {}, add)
      break
    }
  }
}

function ofTree(tree: RandomCohort['tree'], subject: RandomSubject, world: World, add: Add): void {
  for (const value of tree.values) {
    if ('values' in value) ofTree(value, subject, world, add)
    else ofFilter(value, null, subject, world, add)
  }
}

const comparisons = ['gt', 'gte', 'lt', 'lte']
const decimal = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/

function ofProperty(filter: RandomFilter, properties: Record<string, unknown>, add: Add): void {
  const { operator, value: wanted } = filter
  if (['between', 'icontains_multi', 'is_date_exact'].includes(operator)) add('operator of the server alone', 'either')
  if (!Object.hasOwn(properties, filter.key)) {
    add('property not supplied', 'either')
    return
  }
  const actual = properties[filter.key]
  if (comparisons.includes(operator) && !(isNumeric(actual) && isNumeric(wanted))) add('texts are compared', 'other')
  if (['exact', 'is_not'].includes(operator) && [actual, wanted].flat().some(value => Number.isInteger(value)))
    add('integer with exact: 1 or 1.0', 'either')
  if (operator.startsWith('is_date_')) {
    if (typeof actual === 'number' || isNumeric(actual)) add('number as a date', 'either')
    else if (!isDate(actual) || !isDate(wanted)) add('unreadable date', 'undecided')
  }
  if (operator.startsWith('semver_') && !(isVersion(actual) && isVersion(wanted)))
    add('unreadable version', 'undecided')
  if (operator.endsWith('regex') && (!isPlainAscii(actual) || !isPlainAscii(wanted)))
    add('pattern or text that JavaScript may read otherwise', 'undecided')
  if (Array.isArray(actual) && textOperators.test(operator)) add('list as a text: not as JSON', 'other')
  if (actual === null) add('null', 'either')
}

const textOperators = /contains|starts_with|ends_with|regex/

function isPlainAscii(value: unknown): boolean {
  return /^[\x20-\x7e]*$/.test(String(value)) && !String(value).includes('(?')
}

function isNumeric(value: unknown): boolean {
  return typeof value === 'number' || (typeof value === 'string' && decimal.test(value))
}

function isDate(value: unknown): boolean {
  return typeof value === 'string' && (/^-\d+[hdwmy]$/.test(value) || /^\d{4}-\d\d-\d\d/.test(value))
}

function isVersion(value: unknown): boolean {
  return typeof value === 'string' && /^v?\d+(\.\d+){0,2}(\.\*)?$/.test(value)
}
