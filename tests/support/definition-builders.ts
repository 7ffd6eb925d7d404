// Builders of the definitions that tests use, and of filters as the private API takes them.

import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import type { Project } from '#core/project.ts'

/** The definitions of a project without flags, cohorts and the like. */
export function emptyDefinitions(project: Project, revision: number): ProjectDefinitions {
  return {
    project,
    revision,
    flags: [],
    cohorts: [],
    groupTypes: [],
    earlyAccessFeatures: [],
    surveys: [],
    secretKeyHashes: [],
  }
}

export const pro = { key: 'plan', type: 'person', value: 'pro', operator: 'exact' }
export const treeOf = (...values: readonly unknown[]) => ({ properties: { type: 'AND', values } })
export const cohortFilter = (id: unknown) => ({ key: 'id', type: 'cohort', value: id, operator: 'in' })
export const flagFilter = (id: number) => ({
  key: String(id),
  type: 'flag',
  value: true,
  operator: 'flag_evaluates_to',
})
export const flagOn = (...properties: readonly unknown[]) => ({ groups: [{ properties, rollout_percentage: 100 }] })
