// Replaces the cohorts of a condition by their contents: the members of static cohorts, the conditions of dynamic cohorts
// on current persons. Membership is the same as for flags, except for what only an evaluation knows.

import type { Cohort } from '#core/flags/definitions/cohort.ts'
import { type CohortEntry, readCohortTree } from '#core/flags/definitions/cohort-tree.ts'
import { UnreadableFilters } from '#core/flags/definitions/flag-filters.ts'
import { type PersonKey, PersonKeys } from '#core/flags/evaluation/person-properties.ts'
import type { Condition, PropertyCondition } from '#core/insights/conditions.ts'
import type { Project } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { CohortMemberStore, CohortStore } from '#ports/state/cohort-store.ts'

export interface CohortConditionsDeps {
  readonly management: Pick<CohortStore, 'findCohort'> & Pick<CohortMemberStore, 'listCohortMemberUuids'>
}

/** Why a cohort cannot be used in a query, for the user who named it. */
export interface CohortIssue {
  /** The query field that named the cohort. */
  readonly path: string
  readonly message: string
}

/** How many members all static cohorts of a query may have together: the members are sent with the query. */
export const cohortMembersMax = 20_000
/** How many cohorts a query may use, including those that they refer to, directly or not. */
const cohortsMax = 50

class Refused extends Error {}

export class CohortConditions {
  readonly #deps: CohortConditionsDeps
  readonly #project: Pick<Project, 'id' | 'propertyMatchingVersion'>
  readonly #known = new Map<number, Condition | 'open'>()
  readonly #names = new Map<number, string>()
  #memberCount = 0

  constructor(deps: CohortConditionsDeps, project: Pick<Project, 'id' | 'propertyMatchingVersion'>) {
    this.#deps = deps
    this.#project = project
  }

  async resolve(condition: Condition): Promise<Result<Condition, CohortIssue>> {
    switch (condition.kind) {
      case 'all':
      case 'any': {
        const conditions: Condition[] = []
        for (const one of condition.conditions) {
          const resolved = await this.resolve(one)
          if (!resolved.ok) return resolved
          conditions.push(resolved.value)
        }
        return ok({ kind: condition.kind, conditions })
      }
      case 'not': {
        const resolved = await this.resolve(condition.condition)
        return resolved.ok ? ok({ kind: 'not', condition: resolved.value }) : resolved
      }
      case 'cohort': {
        const members = await this.members(condition.cohortId, condition.path)
        if (!members.ok) return members
        return ok(condition.isMember ? members.value : { kind: 'not', condition: members.value })
      }
      default:
        return ok(condition)
    }
  }

  /** The condition that matches events of the cohort's members. */
  async members(cohortId: number, path: string): Promise<Result<Condition, CohortIssue>> {
    try {
      const condition = await this.#conditionOf(cohortId)
      return ok(condition.kind === 'persons' ? condition : { kind: 'person_today', condition })
    } catch (error) {
      if (error instanceof Refused) return err({ path, message: error.message })
      throw error
    }
  }

  /** Call it after `members` for the cohort. */
  nameOf(cohortId: number): string {
    return this.#names.get(cohortId) ?? String(cohortId)
  }

  async #conditionOf(cohortId: number): Promise<Condition> {
    const known = this.#known.get(cohortId)
    if (known === 'open') throw new Refused(`Cohort ${cohortId} refers to itself.`)
    if (known !== undefined) return known
    if (this.#known.size === cohortsMax)
      throw new Refused(`More than ${cohortsMax} cohorts, including those that they refer to.`)
    const cohort = await this.#deps.management.findCohort(this.#project.id, cohortId)
    if (cohort === null || cohort.deleted) throw new Refused(`The project has no cohort ${cohortId}.`)
    this.#names.set(cohortId, cohort.name)
    this.#known.set(cohortId, 'open')
    const condition = cohort.isStatic ? await this.#listed(cohort) : await this.#described(cohort)
    this.#known.set(cohortId, condition)
    return condition
  }

  async #listed(cohort: Cohort): Promise<Condition> {
    const left = cohortMembersMax - this.#memberCount
    const personIds = await this.#deps.management.listCohortMemberUuids(this.#project.id, cohort.id, left + 1)
    if (personIds.length > left) {
      throw new Refused(
        `The static cohorts of a query may have ${cohortMembersMax} members in total; cohort ${cohort.id} exceeds this.`,
      )
    }
    this.#memberCount += personIds.length
    return { kind: 'persons', personIds }
  }

  async #described(cohort: Cohort): Promise<Condition> {
    try {
      const tree = readCohortTree(cohort.filters)
      return tree === null ? nobody : await this.#entry(tree.top, cohort)
    } catch (error) {
      if (!(error instanceof UnreadableFilters)) throw error
      throw new Refused(`Cohort ${cohort.id} is invalid: ${error.message}.`)
    }
  }

  async #entry(entry: CohortEntry, cohort: Cohort): Promise<Condition> {
    switch (entry.kind) {
      case 'group': {
        const conditions: Condition[] = []
        for (const one of entry.entries) conditions.push(await this.#entry(one, cohort))
        return { kind: entry.isAny ? 'any' : 'all', conditions }
      }
      case 'behavior':
        return nobody
      case 'cohort': {
        const members = await this.#conditionOf(entry.id)
        const condition = entry.wanted === null ? nobody : entry.wanted ? members : negateCondition(members)
        return entry.isNegated ? negateCondition(condition) : condition
      }
      case 'test': {
        const { type, key, value, operator } = entry.filter
        if (type !== 'person' || key === 'distinct_id') {
          const what = type === 'flag' ? 'flags' : type === 'person' ? 'distinct ids' : 'more than properties'
          throw new Refused(`Cohort ${cohort.id} tests ${what}, which only flag evaluation supports.`)
        }
        const test = { operator: operator ?? 'exact', value, matchingVersion: this.#project.propertyMatchingVersion }
        const condition = toPersonCondition(new PersonKeys().key(key), test)
        return entry.isNegated ? negateCondition(condition) : condition
      }
    }
  }
}

const nobody: Condition = { kind: 'any', conditions: [] }

function negateCondition(condition: Condition): Condition {
  return { kind: 'not', condition }
}

type Test = Pick<PropertyCondition, 'operator' | 'value' | 'matchingVersion'>

/** An absent property may have a substitute, such as `$os_name` for `$os`. Source: docs/wire/evaluation.md 5.8. */
function toPersonCondition({ name, substitute }: PersonKey, test: Test): Condition {
  const own: Condition = { kind: 'property', source: { kind: 'person_today' }, key: name, ...test }
  if (substitute === null) return own
  const isSet: Condition = { ...own, operator: 'is_set', value: null }
  return {
    kind: 'any',
    conditions: [
      { kind: 'all', conditions: [isSet, own] },
      { kind: 'all', conditions: [negateCondition(isSet), toPersonCondition(substitute, test)] },
    ],
  }
}
