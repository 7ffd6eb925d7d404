// Finds the value of one flag, or the result of one condition, for stored persons and groups, with the evaluator that
// requests use. The flag is compiled with just the definitions that it reaches, and need not be stored.

import { type JsonObject, type JsonValue, type PropertyBag, setOwnValue } from '../../json.ts'
import { parseWantedProperties } from '../../pick-properties.ts'
import { err, ok, type Result } from '../../result.ts'
import type { Cohort } from '../definitions/cohort.ts'
import {
  type DefinitionReference,
  listReferencesOfCohort,
  listReferencesOfFlag,
} from '../definitions/definition-links.ts'
import { type Flag, flagDefaults } from '../definitions/flag.ts'
import type { ProjectDefinitions } from '../definitions/project-definitions.ts'
import type { CompiledFlag } from './compile-flag.ts'
import { type CompiledProject, compileProject } from './compile-project.ts'
import { FlagEvaluation } from './evaluate-flags.ts'
import { type EvaluationSubject, noGroupRows, noHashKeyOverrides, noStaticCohorts } from './evaluation-subject.ts'
import type { FlagOutcome, UnknownReason } from './flag-outcome.ts'
import { findNeededParts, type NeededParts } from './needed-parts.ts'

export interface ProbedPerson {
  /** Compact JSON text. */
  readonly propertiesJson: string
  readonly createdAtMs: number
  readonly distinctIds: readonly { readonly distinctId: string }[]
  readonly flagOverrides: readonly { readonly flagKey: string; readonly hashKey: string }[]
  readonly staticCohortIds: readonly number[]
}

export interface ProbedGroup {
  readonly key: string
  /** Compact JSON text. */
  readonly propertiesJson: string
}

/** The id of a flag that is not stored: larger than any id in a filter, which has at most 15 digits. */
const unstoredId = Number.MAX_SAFE_INTEGER

export class FlagProbe {
  /** Undefined when the definition cannot be read: the flag then has no value for any subject. */
  readonly flag: CompiledFlag | undefined
  /** The static cohorts that the flag reaches, to be looked up for each person. */
  readonly staticCohortIds: readonly number[]
  /** Whether the value may depend on a cohort, directly or through other flags that the flag tests. */
  readonly readsCohorts: boolean
  /** Whether the value may differ between distinct ids of one person. */
  readonly readsDistinctId: boolean
  readonly #project: CompiledProject
  readonly #position: number
  readonly #filters: JsonObject
  readonly #cohorts: readonly Cohort[]

  /**
   * @param flag evaluated as if it were active; replaces a flag with the same id among the definitions.
   * @param byId passed when many probes use the same definitions.
   */
  constructor(definitions: ProjectDefinitions, flag: Flag, byId: DefinitionsById = indexDefinitionsById(definitions)) {
    const target: Flag = { ...flag, active: true, deleted: false, hasEncryptedPayloads: false }
    const { reached, cohortIds } = selectReached(definitions, target, byId)
    this.readsCohorts = cohortIds.size > 0
    this.staticCohortIds = reached.cohorts.filter(cohort => cohort.isStatic).map(({ id }) => id)
    this.#filters = target.filters
    this.#cohorts = reached.cohorts
    this.#project = compileProject(reached)
    this.#position = this.#project.flags.findIndex(compiled => compiled?.id === target.id)
    this.flag = this.#project.flags[this.#position]
    this.readsDistinctId = this.#project.flags.some(compiled => compiled !== undefined && dependsOnDistinctId(compiled))
  }

  /**
   * Advance it in slices, then pass it to `outcomeOf`. @param subject made by `createSubjectOfPerson` or
   * `createSubjectOfGroup`.
   */
  evaluationOf(subject: EvaluationSubject): FlagEvaluation {
    return new FlagEvaluation(this.#project, null, subject)
  }

  /** Null when the flag has no value for any subject: it is unreadable or depends on itself. */
  outcomeOf(evaluation: FlagEvaluation): FlagOutcome | null {
    return evaluation.outcomes[this.#position] ?? null
  }

  /** Whether a condition holds. @returns err when it can never be evaluated. */
  holds(evaluation: FlagEvaluation): Result<boolean, UnknownReason> {
    const outcome = this.outcomeOf(evaluation)
    if (outcome === null) return err('dependency_cycle_cohort')
    return outcome.kind === 'unknown' ? err(outcome.reason) : ok(outcome.kind !== 'off')
  }

  /** Why the flag cannot be evaluated for any subject, as far as its definition shows; null when it can be. */
  fault(): UnknownReason | null {
    if (!this.#project.order.includes(this.#position)) return 'dependency_cycle_cohort'
    const otherwise = this.flag?.rules?.otherwise
    if (otherwise?.kind === 'unknown') return otherwise.reason
    for (const set of this.flag?.sets ?? [])
      for (const { cohort } of set.cohortTests) if (!cohort.ok) return cohort.error
    return null
  }

  /**
   * Parts that the JSON text of a subject's properties must contain for the flag to be on. For a subject without them the
   * flag is off or unknown.
   */
  neededParts(): NeededParts {
    return findNeededParts(this.#filters, new Map(this.#cohorts.map(cohort => [cohort.id, cohort])))
  }

  /** Whether the flag has a value for every stored subject. */
  isAlwaysKnown(): boolean {
    // A flag with rules is not always known, because a rule may fail on a property's value.
    return this.#project.flags.length === 1 && this.flag?.rules === null && this.fault() === null
  }

  /** How many condition sets, or rules, may decide. */
  conditionCount(): number {
    return this.flag === undefined ? 0 : (this.flag.rules?.rules ?? this.flag.sets).length
  }

  /** Whether the flag and the flags that it tests read only the group of this type: no person and no other group. */
  isForGroupsAlone(typeIndex: number): boolean {
    const { person, personKeys, groupKeys } = this.#project.needs
    const readsPerson = person || personKeys.size > 0 || this.readsCohorts || this.readsDistinctId
    const readsOtherGroups = [...groupKeys.keys()].some(index => index !== typeIndex)
    if (readsPerson || readsOtherGroups) return false
    return this.#project.flags.every(
      flag => flag === undefined || (flag.rules === null && flag.sets.every(set => set.groupTypeIndex === typeIndex)),
    )
  }

  /** Whether a person's value depends on a request's device id, in this flag or in a flag that it tests. */
  isByDevice(): boolean {
    return this.#project.flags.some(
      flag => flag?.bucketing === 'device_id' && flag.sets.some(set => set.groupTypeIndex === null),
    )
  }

  /** Names of the person properties that may be read. */
  personKeyNames(): ReadonlySet<string> {
    return this.#project.personKeys.names()
  }

  groupKeyNames(typeIndex: number): ReadonlySet<string> {
    return this.#project.needs.groupKeys.get(typeIndex) ?? new Set()
  }
}

/**
 * What probes read of a stored person, without anything that a request would add: the first distinct id, no groups and
 * no location.
 */
export function createSubjectOfPerson(
  probes: readonly FlagProbe[],
  person: ProbedPerson,
  nowMs: number,
): EvaluationSubject {
  const properties = parseWantedProperties(person.propertiesJson, () =>
    uniteSets(probes.map(probe => probe.personKeyNames())),
  )
  return {
    ...nothingSent,
    distinctId: person.distinctIds[0]?.distinctId ?? '',
    person: ok({ properties, createdAtMs: person.createdAtMs }),
    groupRows: noGroupRows,
    hashKeyOverrides: {
      rows: new Map(person.flagOverrides.map(({ flagKey, hashKey }) => [flagKey, hashKey])),
      failure: null,
    },
    staticCohortIds: ok(new Set(person.staticCohortIds)),
    nowMs,
  }
}

/** What probes read of a stored group. No person is involved. */
export function createSubjectOfGroup(
  probes: readonly FlagProbe[],
  group: ProbedGroup,
  type: { readonly index: number; readonly name: string },
  nowMs: number,
): EvaluationSubject {
  const listWantedKeys = () => uniteSets(probes.map(probe => probe.groupKeyNames(type.index)))
  const properties: PropertyBag = parseWantedProperties(group.propertiesJson, listWantedKeys)
  const groups: JsonObject = {}
  setOwnValue(groups, type.name, group.key)
  return {
    ...nothingSent,
    distinctId: '',
    groups,
    person: ok(null),
    groupRows: new Map([[type.index, ok(properties)]]),
    hashKeyOverrides: noHashKeyOverrides,
    staticCohortIds: noStaticCohorts,
    nowMs,
  }
}

const nothingSent = {
  anonDistinctId: null,
  deviceId: null,
  groups: {},
  personProperties: {},
  groupProperties: {},
  geoip: null,
} satisfies Partial<EvaluationSubject>

function uniteSets(sets: readonly ReadonlySet<string>[]): ReadonlySet<string> {
  return sets.length === 1 ? sets[0]! : new Set(sets.flatMap(set => [...set]))
}

/** A flag that is not stored. */
export function createUnstoredFlag(projectId: number, fields: Partial<Flag> & Pick<Flag, 'key' | 'filters'>): Flag {
  return {
    ...flagDefaults,
    id: unstoredId,
    projectId,
    version: 1,
    hasExperiment: false,
    conditionsSinceMs: 0,
    createdAtMs: 0,
    updatedAtMs: 0,
    createdBy: null,
    ...fields,
  }
}

/**
 * A probe for whether all these filters hold.
 * @param properties as in a condition set of a flag.
 * @param groupTypeIndex the type of the groups that are tested; null for persons.
 */
export function createConditionProbe(
  definitions: ProjectDefinitions,
  properties: JsonValue,
  groupTypeIndex: number | null = null,
  byId?: DefinitionsById,
): FlagProbe {
  const set: JsonObject = { properties, rollout_percentage: 100 }
  const filters: JsonObject = { groups: [set], aggregation_group_type_index: groupTypeIndex }
  return new FlagProbe(definitions, createUnstoredFlag(definitions.project.id, { key: 'condition', filters }), byId)
}

export interface DefinitionsById {
  readonly flags: ReadonlyMap<number, Flag>
  readonly cohorts: ReadonlyMap<number, Cohort>
}

export function indexDefinitionsById({ flags, cohorts }: ProjectDefinitions): DefinitionsById {
  return {
    flags: new Map(flags.map(flag => [flag.id, flag])),
    cohorts: new Map(cohorts.map(cohort => [cohort.id, cohort])),
  }
}

function dependsOnDistinctId(flag: CompiledFlag): boolean {
  const isRuleHashed = flag.rules?.rules.some(({ rule }) => rule.type !== 'targeted_release') ?? false
  const isHashed = flag.sets.some(
    set =>
      set.groupTypeIndex === null &&
      (set.rolloutPercentage !== null || (set.variantIndex < 0 && flag.variantBounds.length > 0)),
  )
  const hasHoldout = flag.holdoutPercentage !== null && flag.groupTypeIndex === null
  return isRuleHashed || isHashed || hasHoldout || [...flag.needs.personKeys].some(key => key.isDistinctId)
}

/**
 * The definitions reduced to the flag and what it refers to, directly or not.
 * @returns also the ids of all cohorts that it refers to, including those that do not exist.
 */
function selectReached(
  definitions: ProjectDefinitions,
  target: Flag,
  byId: DefinitionsById,
): { readonly reached: ProjectDefinitions; readonly cohortIds: ReadonlySet<number> } {
  const flagIds = new Set<number>()
  const cohortIds = new Set<number>()
  const open: Pick<DefinitionReference, 'kind' | 'id'>[] = listReferencesOfFlag(target.filters)
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.kind !== 'flag' && next.kind !== 'cohort') continue
    const seen = next.kind === 'flag' ? flagIds : cohortIds
    if (seen.has(next.id)) continue
    seen.add(next.id)
    const references =
      next.kind === 'flag'
        ? listReferencesOfFlag(byId.flags.get(next.id)?.filters ?? null)
        : listReferencesOfCohort(byId.cohorts.get(next.id)?.filters ?? {})
    for (const reference of references) open.push(reference)
  }
  const others = [...flagIds].filter(id => id !== target.id).flatMap(id => byId.flags.get(id) ?? [])
  const reached = {
    ...definitions,
    flags: [...others, target].sort((a, b) => a.id - b.id),
    cohorts: [...cohortIds].flatMap(id => byId.cohorts.get(id) ?? []).sort((a, b) => a.id - b.id),
  }
  return { reached, cohortIds }
}
