// A flag's conditions in words for people.

import {
  readFilters,
  type StoredFilters,
  type StoredSet,
  UnreadableFilters,
} from '#core/flags/definitions/flag-filters.ts'
import { rolloutOf } from '#core/flags/definitions/flag-rollout.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'

/** `everybody`, `everybody: control`, `nobody`, `25 %`, `some, up to 100 %`. */
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

function partWords({ sets, variants }: StoredFilters): string {
  const percentages = sets.map(({ rolloutPercentage }) => rolloutPercentage ?? 100)
  const most = `${percentages.reduce((max, percentage) => Math.max(max, percentage), 0)} %`
  const isForSome = sets.some(({ filters }) => filters.length > 0)
  if (isForSome) return `some, up to ${most}`
  return variants.length > 0 ? `${most}, ${variants.length} variants` : most
}

/** A line for each condition set, or one that says why there is none. */
export function conditionLines(filters: JsonObject): string[] {
  return readable(filters, ({ sets }) => {
    if (sets.length === 0) return ['none: nobody gets the flag']
    return sets.map((set, index) => `${index + 1}. ${setWords(set)}`)
  })
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

function filterWords({ type, key, operator, value }: StoredSet['filters'][number]): string {
  const subject = type === 'person' ? key : type === 'cohort' ? 'cohort' : `${type} ${key}`
  const verb = (operator ?? (type === 'cohort' ? 'in' : 'exact')).replaceAll('_', ' ')
  return `${subject} ${verb} ${valueWords(value)}`.trimEnd()
}

function valueWords(value: JsonValue): string {
  if (Array.isArray(value)) return value.map(valueWords).join(' or ')
  return typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value)
}
