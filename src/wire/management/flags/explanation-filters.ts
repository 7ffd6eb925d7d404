// The filters of an explanation, each with the value that was compared, the source of that value, and the result.

import { type CohortEntry, readCohortReference } from '#core/flags/definitions/cohort-tree.ts'
import { parseDependencyId } from '#core/flags/definitions/flag-dependencies.ts'
import type { StoredFilter } from '#core/flags/definitions/flag-filters.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import type { CompiledCohort } from '#core/flags/evaluation/compiled-cohort.ts'
import type { ReadScope, TracedAnswer } from '#core/flags/evaluation/evaluation-trace.ts'
import type { ExplainedFlag } from '#core/flags/evaluation/explained-flag.ts'
import { flagValueOf } from '#core/flags/evaluation/flag-outcome.ts'
import { explainMismatch } from '#core/flags/match/explain-mismatch.ts'
import { type JsonValue, toCompactJson } from '#core/json.ts'
import { describeReason } from '#wire/flags/flag-texts.ts'
import type { CohortLeafJson, ComparedJson, ExplainedFilterJson } from './explanation-shapes.ts'

export interface ExplanationPermissions {
  /** Whether values of stored persons may be shown; `showsGroups` is the same for groups. */
  readonly showsPersons: boolean
  readonly showsGroups: boolean
  /** Whether the conditions of cohorts may be shown. */
  readonly showsCohorts: boolean
}

export interface FilterToExplain {
  readonly filter: StoredFilter
  /** The filter's position in the definition. */
  readonly index: number
  /** The group type of the filter's condition set; null for persons. */
  readonly typeIndex: number | null
  readonly negation?: boolean
  /** The compiled cohort, for a filter on a cohort; absent if it could not be compiled. */
  readonly cohort?: CompiledCohort
}

type Leaf = Omit<ExplainedFilterJson, 'filter_index' | 'cohort'>
type Comparison = Pick<Leaf, 'compared' | 'note'>

const defaultOperators: Readonly<Record<string, string | null>> = { flag: null, cohort: 'in' }

/** The filters of one flag. Counts what it shows, so that an explanation stays small for any definition. */
export class ExplainedFilters {
  readonly #explained: ExplainedFlag
  readonly #view: ExplanationPermissions
  /** How many filters and entries of cohorts may still be shown. */
  #left = 1_000

  constructor(explained: ExplainedFlag, view: ExplanationPermissions) {
    this.#explained = explained
    this.#view = view
  }

  /**
   * Encodes as many filters as may still be shown. @param answers by position; undefined for a filter that was not tested.
   */
  encode(filters: readonly FilterToExplain[], answers: readonly (TracedAnswer | undefined)[]): ExplainedFilterJson[] {
    const shown: ExplainedFilterJson[] = []
    for (const [place, { filter, index, typeIndex, negation, cohort }] of filters.entries()) {
      if (this.#left-- <= 0) break
      const leaf = this.#encodeLeaf(filter, answers[place], negation ?? false, typeIndex)
      shown.push({
        ...leaf,
        filter_index: index,
        ...(filter.type === 'cohort' && { cohort: this.#encodeCohort(filter, cohort) }),
      })
    }
    return shown
  }

  /** The value that was read for a property. */
  read(scope: ReadScope, key: string): ComparedJson {
    const read = this.#explained.trace.readOf(scope, key)
    if (read?.value === undefined) return absent
    const { source, substitute } = read
    const isShown = typeof scope === 'number' ? this.#view.showsGroups : this.#view.showsPersons
    if (source === 'stored' && !isShown) return { source, value: null, substitute, hidden: true }
    return { source, value: truncateValue(read.value), substitute }
  }

  #encodeLeaf(
    filter: StoredFilter,
    answer: TracedAnswer | undefined,
    isNegated: boolean,
    typeIndex: number | null,
  ): Leaf {
    const { type, key, operator = null, value } = filter
    const leaf = {
      ...{ type, key: truncateText(key), value: truncateValue(value) },
      operator: operator ?? (type in defaultOperators ? defaultOperators[type]! : 'exact'),
      ...(isNegated && { negated: true as const }),
    }
    if (answer === undefined) return { ...leaf, result: 'not_evaluated', compared: null, note: null }
    if (typeof answer === 'string')
      return {
        ...leaf,
        result: 'error',
        compared: null,
        note: describeReason({ reason: answer, conditionIndex: null }),
      }
    const holds = answer !== isNegated
    if (type === 'flag') return { ...leaf, result: toResult(answer), ...this.#compareFlag(filter) }
    if (type === 'cohort') return { ...leaf, result: toResult(answer), ...compareCohort(filter, holds) }
    const scope = type === 'group' ? (filter.groupTypeIndex ?? typeIndex) : type
    const comparison = this.#compareProperty(filter, scope, holds)
    return { ...leaf, result: answer || comparison.note === null ? toResult(answer) : 'error', ...comparison }
  }

  #compareProperty({ key, operator, value }: StoredFilter, scope: ReadScope | null, holds: boolean): Comparison {
    const { trace, project } = this.#explained
    const compared = scope === null ? absent : this.read(scope, key)
    if (holds) return { compared, note: null }
    const property = scope === null ? undefined : trace.readOf(scope, key)?.value
    return {
      compared,
      note: explainMismatch({ operator: operator ?? 'exact', filter: value, property }, project.project),
    }
  }

  #compareFlag(filter: StoredFilter): Comparison {
    const { evaluation, project } = this.#explained
    const id = parseDependencyId(filter.key)
    const outcome = evaluation.outcomes[project.flags.findIndex(flag => flag !== undefined && flag.id === id)]
    const stored = project.definitions.flags.find(flag => flag.id === id)
    const value = outcome === undefined ? false : (flagValueOf(outcome) ?? null)
    const compared: ComparedJson = { source: 'flag', value, substitute: null }
    if (id === null) return { compared: absent, note: `"${truncateText(filter.key)}" is not a flag id: never matches` }
    if (filter.operator !== 'flag_evaluates_to')
      return { compared, note: 'filters on flags need the operator flag_evaluates_to; any other never matches' }
    if (typeof filter.value !== 'boolean' && typeof filter.value !== 'string')
      return { compared, note: "the filter's value is not true, false or a variant key: never matches" }
    if (stored === undefined) return { compared: absent, note: `the flag ${id} does not exist` }
    const named = `the flag ${truncateText(stored.key)}`
    if (readConfigVersion(stored.filters) !== 1)
      return { compared, note: `${named} is a version 2 flag, which filters cannot test` }
    if (!stored.active) return { compared, note: `${named} is inactive, which counts as false` }
    if (outcome === undefined) return { compared, note: `${named} is not served to this caller, which counts as false` }
    return { compared, note: outcome.kind === 'unknown' ? `${named} failed: ${describeReason(outcome)}` : named }
  }

  #encodeCohort(
    filter: StoredFilter,
    compiled: CompiledCohort | undefined,
  ): NonNullable<ExplainedFilterJson['cohort']> {
    const { id } = readCohortReference(filter)
    const stored = this.#storedCohort(id)
    const leaves: CohortLeafJson[] = []
    const shown = new Set<number>()
    let leftOut = 0
    const walk = (entry: CohortEntry, path: string): void => {
      if (entry.kind === 'group') {
        const group = `${path}${entry.isAny ? 'OR' : 'AND'}`
        for (const [index, inner] of entry.entries.entries()) walk(inner, `${group}.${index}.`)
        return
      }
      if (this.#left-- <= 0) {
        leftOut++
        return
      }
      leaves.push({ ...this.#encodeEntry(entry), path: path.slice(0, -1) })
      // A cohort is shown once, however many entries refer to it.
      if (entry.kind !== 'cohort' || shown.has(entry.id)) return
      shown.add(entry.id)
      const { cohort: other } = this.#explained.project.cohorts.reach(entry.id, () => undefined)
      if (other.ok && other.value.tree !== null) walk(other.value.tree.top, `${path}cohort.`)
    }
    const { showsCohorts } = this.#view
    if (showsCohorts && compiled !== undefined && compiled.tree !== null) walk(compiled.tree.top, '')
    return {
      ...{ id, name: stored?.name ?? null, is_static: stored?.isStatic ?? null },
      ...{ leaves, leaves_left_out: leftOut },
      ...(showsCohorts ? {} : { hidden: true as const }),
    }
  }

  #encodeEntry(entry: Exclude<CohortEntry, { kind: 'group' }>): Leaf {
    if (entry.kind === 'behavior') {
      const note = 'behavioral filters are not supported: they match no one'
      return { type: 'behavioral', key: '', operator: null, value: null, result: 'failed', compared: null, note }
    }
    const filter =
      entry.kind === 'test' ? entry.filter : { ...entry.filter, key: this.#storedCohort(entry.id)?.name ?? '' }
    return this.#encodeLeaf(filter, this.#explained.trace.leafAnswerOf(entry), entry.isNegated, null)
  }

  #storedCohort(id: number | null) {
    return this.#explained.project.definitions.cohorts.find(cohort => cohort.id === id)
  }
}

const absent: ComparedJson = { source: 'absent', value: null, substitute: null }

function toResult(answer: boolean): 'passed' | 'failed' {
  return answer ? 'passed' : 'failed'
}

function compareCohort(filter: StoredFilter, holds: boolean): Comparison {
  const { wanted } = readCohortReference(filter)
  if (wanted === null) return { compared: null, note: 'the operator is neither in nor not_in: never matches' }
  return { compared: { source: 'cohort', value: holds === wanted, substitute: null }, note: null }
}

/** A filter's condition in words, with cohorts by their names. */
export function describeFilter({ type, key, operator, value, cohort, negated }: ExplainedFilterJson): string {
  const name = type === 'person' ? key : `${type} ${key}`
  const asked = typeof value === 'string' ? value : JSON.stringify(value ?? null)
  const text =
    type === 'cohort'
      ? `${operator === 'not_in' ? 'not in' : 'in'} cohort ${cohort?.name ?? cohort?.id ?? key}`
      : operator === 'flag_evaluates_to'
        ? `${name} is ${asked}`
        : `${name} ${(operator ?? 'exact').replaceAll('_', ' ')} ${asked}`
  return negated ? `not (${text})` : text
}

const valueCharsMax = 256
const shortened = new WeakMap<object, JsonValue>()

export function truncateText(text: string): string {
  return text.length <= valueCharsMax ? text : `${text.slice(0, valueCharsMax)}…`
}

/** A short value as it is; else the beginning of its text. */
export function truncateValue(value: JsonValue): JsonValue {
  if (typeof value === 'string') return truncateText(value)
  if (typeof value !== 'object' || value === null) return value
  // Each value is shortened once: many filters may show the same value, and a stored value may be as large as 640 KiB.
  return shortened.getOrInsertComputed(value, () => {
    const text = toCompactJson(value)
    return text.length <= valueCharsMax ? value : truncateText(text)
  })
}
