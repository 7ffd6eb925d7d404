// The filters of an explanation, each with the value that was compared, the source of that value, and the result.

import type { CohortEntry } from '#core/flags/definitions/cohort-tree.ts'
import { readCohortReference } from '#core/flags/definitions/cohort-tree.ts'
import { dependencyId } from '#core/flags/definitions/flag-dependencies.ts'
import type { StoredFilter } from '#core/flags/definitions/flag-filters.ts'
import { configVersion } from '#core/flags/definitions/read-rules.ts'
import type { CompiledCohort } from '#core/flags/evaluation/compiled-cohort.ts'
import type { TracedAnswer, TracedRead } from '#core/flags/evaluation/evaluation-trace.ts'
import type { ExplainedFlag } from '#core/flags/evaluation/explained-flag.ts'
import { flagValue } from '#core/flags/evaluation/flag-outcome.ts'
import { matchNote } from '#core/flags/match/match-note.ts'
import { compactJson, type JsonValue } from '#core/json.ts'
import { reasonDescription } from '#wire/flags/flag-texts.ts'
import type { CohortLeafJson, ComparedJson, ExplainedFilterJson } from './explanation-shapes.ts'

export interface ExplanationView {
  /** Whether values of stored persons may be shown; `showsGroups` is the same for groups. */
  readonly showsPersons: boolean
  readonly showsGroups: boolean
  /** Whether the conditions of cohorts may be shown. */
  readonly showsCohorts: boolean
}

/** How many filters may still be shown, so that an explanation stays small whatever is defined. */
export interface Budget {
  filters: number
}

const valueCharsMax = 256
const shortened = new WeakMap<object, JsonValue>()
const leafCountMax = 200

/** A short value as it is; else the beginning of its text. */
export function truncateValue(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.length <= valueCharsMax ? value : `${value.slice(0, valueCharsMax)}…`
  if (typeof value !== 'object' || value === null) return value
  // Many filters may show the same value, and a stored value may be as large as 640 KiB.
  const known = shortened.get(value)
  if (known !== undefined) return known
  const text = compactJson(value)
  const short = text.length <= valueCharsMax ? value : `${text.slice(0, valueCharsMax)}…`
  shortened.set(value, short)
  return short
}

type Leaf = Pick<ExplainedFilterJson, 'type' | 'key' | 'operator' | 'value' | 'result' | 'compared' | 'note'>

/**
 * Explains a filter of any type but `cohort`.
 * @param typeIndex the group type of its set; null for persons.
 * @param answer undefined when the filter was not checked.
 */
export function explainFilter(
  explained: ExplainedFlag,
  view: ExplanationView,
  filter: StoredFilter,
  typeIndex: number | null,
  answer: TracedAnswer | undefined,
  isNegated = false,
): Leaf {
  const operator = filter.operator ?? (filter.type === 'flag' ? null : 'exact')
  const fields = { type: filter.type, key: truncateText(filter.key), operator, value: truncateValue(filter.value) }
  if (answer === undefined) return { ...fields, result: 'not_evaluated', compared: null, note: null }
  if (typeof answer === 'string') {
    return {
      ...fields,
      result: 'error',
      compared: null,
      note: reasonDescription({ reason: answer, conditionIndex: null }),
    }
  }
  const { compared, note } =
    filter.type === 'flag'
      ? explainComparedFlag(explained, filter)
      : explainComparedProperty(explained, view, filter, typeIndex, answer !== isNegated)
  const result = answer ? 'passed' : note === null || filter.type === 'flag' ? 'failed' : 'error'
  return { ...fields, result, compared, note }
}

function explainComparedProperty(
  explained: ExplainedFlag,
  view: ExplanationView,
  filter: StoredFilter,
  setTypeIndex: number | null,
  holds: boolean,
): { compared: ComparedJson; note: string | null } {
  const { trace, project } = explained
  const typeIndex = filter.groupTypeIndex ?? setTypeIndex
  const isGroup = filter.type === 'group'
  const read = isGroup
    ? typeIndex === null
      ? undefined
      : trace.groupReadOf(typeIndex, filter.key)
    : filter.type === 'person_metadata'
      ? trace.metadataReadOf(filter.key)
      : trace.personReadOf(filter.key)
  const { timezone, propertyMatchingVersion } = project.project
  const note = holds
    ? null
    : matchNote(
        { operator: filter.operator ?? 'exact', filter: filter.value, property: read?.value },
        { timezone, propertyMatchingVersion },
      )
  return { compared: encodeRead(read, isGroup ? view.showsGroups : view.showsPersons), note }
}

export function encodeRead(read: TracedRead | undefined, showsStored: boolean): ComparedJson {
  if (read === undefined || read.value === undefined) return { source: 'absent', value: null, substitute: null }
  const { from: source, substitute } = read
  if (source === 'stored' && !showsStored) return { source, value: null, substitute, hidden: true }
  return { source, value: truncateValue(read.value), substitute }
}

function explainComparedFlag(
  explained: ExplainedFlag,
  filter: StoredFilter,
): { compared: ComparedJson; note: string | null } {
  const { evaluation, project } = explained
  const id = dependencyId(filter.key)
  const position = project.flags.findIndex(flag => flag !== undefined && flag.id === id)
  const outcome = evaluation.outcomes[position]
  const stored = project.definitions.flags.find(flag => flag.id === id)
  const value = outcome === undefined ? false : (flagValue(outcome) ?? null)
  const compared: ComparedJson = { source: 'flag', value, substitute: null }
  if (id === null) return { compared: absent, note: `"${truncateText(filter.key)}" is not a flag id: never matches` }
  if (filter.operator !== 'flag_evaluates_to')
    return { compared, note: `filters on flags need the operator flag_evaluates_to; any other never matches` }
  if (typeof filter.value !== 'boolean' && typeof filter.value !== 'string')
    return { compared, note: "the filter's value is not true, false or a variant key: never matches" }
  if (stored === undefined) return { compared: absent, note: `the flag ${id} does not exist` }
  const named = `the flag ${truncateText(stored.key)}`
  if (configVersion(stored.filters) !== 1)
    return { compared, note: `${named} is a version 2 flag, which filters cannot test` }
  if (!stored.active) return { compared, note: `${named} is inactive, which counts as false` }
  if (outcome === undefined) return { compared, note: `${named} is not served to this caller, which counts as false` }
  return { compared, note: outcome.kind === 'unknown' ? `${named} failed: ${reasonDescription(outcome)}` : named }
}

const absent: ComparedJson = { source: 'absent', value: null, substitute: null }

/** @param answer whether the subject is a member; undefined when the filter was not checked. */
export function explainCohortFilter(
  explained: ExplainedFlag,
  view: ExplanationView,
  filter: StoredFilter,
  cohort: CompiledCohort | null,
  answer: TracedAnswer | undefined,
  budget: Budget,
): Leaf & Pick<ExplainedFilterJson, 'cohort'> {
  const { id, wanted } = readCohortReference(filter)
  const stored = explained.project.definitions.cohorts.find(known => known.id === id)
  const { leaves, leftOut } = explainTree(explained, view, cohort, budget)
  return {
    type: 'cohort',
    key: truncateText(filter.key),
    operator: filter.operator ?? 'in',
    value: truncateValue(filter.value),
    ...cohortResult(wanted, answer),
    cohort: {
      id,
      name: stored?.name ?? null,
      is_static: stored?.isStatic ?? null,
      leaves,
      leaves_left_out: leftOut,
      ...(view.showsCohorts ? {} : { hidden: true as const }),
    },
  }
}

/** An operator that never matches decides without checking membership. */
function cohortResult(
  wanted: boolean | null,
  answer: TracedAnswer | undefined,
): Pick<Leaf, 'result' | 'compared' | 'note'> {
  if (typeof answer === 'string') {
    return { result: 'error', compared: null, note: reasonDescription({ reason: answer, conditionIndex: null }) }
  }
  const note = wanted === null ? 'the operator is neither in nor not_in: never matches' : null
  if (answer === undefined) return { result: 'not_evaluated', compared: null, note }
  const compared: ComparedJson = { source: 'cohort', value: answer, substitute: null }
  return { result: answer === wanted ? 'passed' : 'failed', compared, note }
}

function explainTree(
  explained: ExplainedFlag,
  view: ExplanationView,
  cohort: CompiledCohort | null,
  budget: Budget,
): { leaves: CohortLeafJson[]; leftOut: number } {
  const leaves: CohortLeafJson[] = []
  const shown = new Set<number>()
  let leftOut = 0
  if (view.showsCohorts && cohort !== null && cohort.tree !== null) walk(cohort.tree.top, '')
  return { leaves, leftOut }

  function walk(entry: CohortEntry, path: string): void {
    if (entry.kind === 'group') {
      const group = `${path}${entry.isAny ? 'OR' : 'AND'}`
      for (const [index, inner] of entry.entries.entries()) walk(inner, `${group}.${index}.`)
      return
    }
    if (leaves.length >= leafCountMax || budget.filters <= 0) {
      leftOut++
      return
    }
    budget.filters--
    leaves.push({ ...explainLeaf(explained, view, entry), path: path.slice(0, -1) })
    // A cohort is shown once, however many entries refer to it.
    if (entry.kind !== 'cohort' || shown.has(entry.id)) return
    shown.add(entry.id)
    const { cohort: other } = explained.project.cohorts.reach(entry.id, () => undefined)
    if (other.ok && other.value.tree !== null) walk(other.value.tree.top, `${path}cohort.`)
  }
}

function explainLeaf(
  explained: ExplainedFlag,
  view: ExplanationView,
  entry: Exclude<CohortEntry, { kind: 'group' }>,
): Omit<CohortLeafJson, 'path'> {
  if (entry.kind === 'behavior') {
    const note = 'behavioral filters are not supported: they match no one'
    return {
      type: 'behavioral',
      key: '',
      operator: null,
      value: null,
      result: 'failed',
      compared: null,
      note,
      negated: false,
    }
  }
  const answer = explained.trace.leafAnswerOf(entry)
  if (entry.kind === 'test') {
    const leaf = explainFilter(explained, view, entry.filter, null, answer, entry.isNegated)
    return { ...leaf, negated: entry.isNegated }
  }
  const name = explained.project.definitions.cohorts.find(cohort => cohort.id === entry.id)?.name
  const isMember = typeof answer === 'boolean' ? answer === ((entry.wanted ?? true) !== entry.isNegated) : answer
  return {
    type: 'cohort',
    key: name === undefined ? '' : truncateText(name),
    operator: entry.wanted === null ? null : entry.wanted ? 'in' : 'not_in',
    value: entry.id,
    ...cohortResult(entry.wanted, isMember),
    ...(typeof answer === 'boolean' ? { result: answer ? 'passed' : 'failed' } : {}),
    negated: entry.isNegated,
  }
}

/** The identifier that was hashed. A stored override is another distinct id of the person. */
export function encodeIdentifier(
  bucketing: { readonly identifier: string; readonly by: string } | null,
  { showsPersons }: ExplanationView,
): string | null {
  if (bucketing === null || (bucketing.by === 'stored_override' && !showsPersons)) return null
  return truncateText(bucketing.identifier)
}

/** A filter's condition in words, with cohorts by their names. */
export function describeFilter(filter: ExplainedFilterJson): string {
  return filter.negated ? `not (${describePlainFilter(filter)})` : describePlainFilter(filter)
}

function describePlainFilter({ type, key, operator, value, cohort }: ExplainedFilterJson): string {
  if (type === 'cohort') return `${operator === 'not_in' ? 'not in' : 'in'} cohort ${cohort?.name ?? cohort?.id ?? key}`
  const name = type === 'person' ? key : `${type} ${key}`
  const asked = typeof value === 'string' ? value : JSON.stringify(value ?? null)
  if (operator === 'flag_evaluates_to') return `${name} is ${asked}`
  return `${name} ${(operator ?? 'exact').replaceAll('_', ' ')} ${asked}`
}

export function truncateText(text: string): string {
  return text.length <= valueCharsMax ? text : `${text.slice(0, valueCharsMax)}…`
}
