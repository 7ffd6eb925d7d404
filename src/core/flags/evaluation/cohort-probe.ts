// Tests whether stored persons are in a dynamic cohort, with the evaluator that flags use: evaluates a flag that only
// tests the cohort, compiled with just the definitions that the cohort reaches.

import type { PropertyBag } from '../../json.ts'
import { wantedProperties } from '../../pick-properties.ts'
import { err, ok, type Result } from '../../result.ts'
import { type DefinitionReference, referencesOfCohort, referencesOfFlag } from '../definitions/definition-links.ts'
import { type Flag, flagDefaults } from '../definitions/flag.ts'
import type { ProjectDefinitions } from '../definitions/project-definitions.ts'
import { type CompiledProject, compileProject } from './compile-project.ts'
import { FlagEvaluation } from './evaluate-flags.ts'
import { type EvaluationSubject, noGroupRows } from './evaluation-subject.ts'
import type { UnknownReason } from './flag-outcome.ts'

export interface ProbedPerson {
  /** Compact JSON text. */
  readonly propertiesJson: string
  readonly createdAtMs: number
  readonly distinctIds: readonly { readonly distinctId: string }[]
  readonly flagOverrides: readonly { readonly flagKey: string; readonly hashKey: string }[]
  readonly staticCohortIds: readonly number[]
}

/** Larger than any id that a filter can name, since those have at most 15 digits. */
const probeId = Number.MAX_SAFE_INTEGER

export class CohortProbe {
  /** The static cohorts that it reaches, to be looked up for each person. */
  readonly staticCohortIds: readonly number[]
  readonly #project: CompiledProject
  readonly #position: number

  constructor(definitions: ProjectDefinitions, cohortId: number) {
    const reached = reachedFrom(definitions, cohortId)
    this.staticCohortIds = reached.cohorts.filter(cohort => cohort.isStatic).map(({ id }) => id)
    this.#project = compileProject({ ...reached, flags: [...reached.flags, probeFlag(definitions, cohortId)] })
    this.#position = this.#project.flags.length - 1
  }

  /**
   * The evaluation of a stored person, without anything that a request would add: flags that the cohort tests get the
   * person's first distinct id, no groups and no location. Advance it in slices, then pass it to `isMember`.
   */
  evaluationOf(person: ProbedPerson, nowMs: number): FlagEvaluation {
    const subject: EvaluationSubject = {
      distinctId: person.distinctIds[0]?.distinctId ?? '',
      anonDistinctId: null,
      deviceId: null,
      groups: {},
      personProperties: {},
      groupProperties: {},
      geoip: null,
      person: ok({ properties: this.#propertiesOf(person), createdAtMs: person.createdAtMs }),
      groupRows: noGroupRows,
      hashKeyOverrides: {
        rows: new Map(person.flagOverrides.map(({ flagKey, hashKey }) => [flagKey, hashKey])),
        failure: null,
      },
      staticCohortIds: ok(new Set(person.staticCohortIds)),
      nowMs,
    }
    return new FlagEvaluation(this.#project, null, subject)
  }

  #propertiesOf({ propertiesJson }: ProbedPerson): PropertyBag {
    return wantedProperties(propertiesJson, () => this.#project.personKeys.names())
  }

  /**
   * @returns err when the cohort can never be evaluated: it is unreadable, or refers to something that does not exist.
   */
  isMember(evaluation: FlagEvaluation): Result<boolean, UnknownReason> {
    const outcome = evaluation.outcomes[this.#position]
    // There is no outcome if a flag that the cohort tests depends on itself.
    if (outcome === undefined) return err('dependency_cycle_cohort')
    return outcome.kind === 'unknown' ? err(outcome.reason) : ok(outcome.kind !== 'off')
  }
}

function probeFlag({ project }: ProjectDefinitions, cohortId: number): Flag {
  return {
    ...flagDefaults,
    id: probeId,
    projectId: project.id,
    key: `cohort ${cohortId}`,
    filters: {
      groups: [{ properties: [{ key: 'id', type: 'cohort', value: cohortId }], rollout_percentage: 100 }],
    },
    version: 1,
    hasExperiment: false,
    conditionsSinceMs: 0,
    createdAtMs: 0,
    updatedAtMs: 0,
    createdBy: null,
  }
}

/** The definitions reduced to what the cohort refers to, directly or not. */
function reachedFrom(definitions: ProjectDefinitions, cohortId: number): ProjectDefinitions {
  const flagOfId = new Map(definitions.flags.map(flag => [flag.id, flag]))
  const cohortOfId = new Map(definitions.cohorts.map(cohort => [cohort.id, cohort]))
  const flagIds = new Set<number>()
  const cohortIds = new Set<number>()
  const open: Pick<DefinitionReference, 'kind' | 'id'>[] = [{ kind: 'cohort', id: cohortId }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.kind === 'group_type') continue
    const seen = next.kind === 'flag' ? flagIds : cohortIds
    if (seen.has(next.id)) continue
    seen.add(next.id)
    if (next.kind === 'flag') open.push(...referencesOfFlag(flagOfId.get(next.id)?.filters ?? null))
    else open.push(...referencesOfCohort(cohortOfId.get(next.id)?.filters ?? {}))
  }
  return {
    ...definitions,
    flags: definitions.flags.filter(({ id }) => flagIds.has(id)),
    cohorts: definitions.cohorts.filter(({ id }) => cohortIds.has(id)),
  }
}
