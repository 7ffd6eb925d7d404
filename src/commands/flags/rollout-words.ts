// A flag's conditions in words for people.

import {
  readFilters,
  type StoredFilters,
  type StoredSet,
  UnreadableFilters,
} from '#core/flags/definitions/flag-filters.ts'
import { rolloutOf } from '#core/flags/definitions/flag-rollout.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'

/** `everybody`, `everybody: control`, `nobody`, `25 %`, `by conditions: 100 % / 10 %`. */
export function rolloutWords(filters: JsonObject): string {
  const rollout = rolloutOf(filters)
  switch (rollout.kind) {
    case 'everybody':
      return rollout.variant === null ? 'everybody' : `everybody: ${rollout.variant}`
    case 'nobody':
      return 'nobody'
    case 'unreadable':
      return 'unreadable'
    case 'some':
      return partWords(readFilters(filters))
    default:
      return rollout satisfies never
  }
}

/** Percentages in one cell of a table. */
const setsShown = 4

function partWords({ sets, variants }: StoredFilters): string {
  const percentages = sets.map(({ rolloutPercentage }) => rolloutPercentage ?? 100)
  if (sets.some(({ filters }) => filters.length > 0)) {
    const shown = percentages.slice(0, setsShown).map(percentage => `${percentage} %`)
    return `by conditions: ${shown.join(' / ')}${percentages.length > setsShown ? ' / …' : ''}`
  }
  const most = `${percentages.reduce((max, percentage) => Math.max(max, percentage), 0)} %`
  return variants.length > 0 ? `${most}, ${variants.length} variants` : most
}

/** A line for each condition set, or one that says why there is none. */
export function conditionLines(filters: JsonObject): string[] {
  return readable(filters, ({ sets }) => {
    if (sets.length === 0) return ['none: nobody gets the flag']
    return sets.map((set, index) => `${index + 1}. ${setWords(set)}`)
  })
}

/** Each condition set in words, without its number. */
export function conditionWords(filters: JsonObject): string[] {
  return readable(filters, ({ sets }) => sets.map(setWords))
}

/** A line for each variant. */
export function variantLines(filters: JsonObject): string[] {
  return readable(filters, ({ variants }) =>
    variants.map(({ key, rolloutPercentage }) => `${key}: ${rolloutPercentage} %`),
  )
}

function readable(filters: JsonObject, linesOf: (read: StoredFilters) => string[]): string[] {
  try {
    return linesOf(readFilters(filters))
  } catch (cause) {
    if (cause instanceof UnreadableFilters) return [`unreadable: ${cause.message}`]
    throw cause
  }
}

function setWords({ filters, rolloutPercentage, variant }: StoredSet): string {
  const who = filters.length === 0 ? 'everybody' : filters.map(filterWords).join(' and ')
  const share = rolloutPercentage === null || rolloutPercentage === 100 ? '' : `, ${rolloutPercentage} % of them`
  return `${who}${share}${variant === null ? '' : `, variant ${variant}`}`
}

/** Whatever stands beside these is not compared; PostHog stores the name of the operator again. */
const withoutValue: ReadonlySet<string | null> = new Set(['is_set', 'is_not_set'])

function filterWords({ type, key, operator, value }: StoredSet['filters'][number]): string {
  if (type === 'cohort') return `${(operator ?? 'in').replaceAll('_', ' ')} cohort ${valueWords(value)}`
  const subject = type === 'person' ? key : `${type} ${key}`
  const verb = operator === 'flag_evaluates_to' ? 'is' : (operator ?? 'exact').replaceAll('_', ' ')
  return withoutValue.has(operator) ? `${subject} ${verb}` : `${subject} ${verb} ${valueWords(value)}`.trimEnd()
}

function valueWords(value: JsonValue): string {
  if (Array.isArray(value)) return value.map(valueWords).join(' or ')
  return typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value)
}
