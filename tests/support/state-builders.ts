// Builders of values for tests of the state, with plain defaults.

import type { Cohort } from '#core/flags/definitions/cohort.ts'
import { flagDefaults } from '#core/flags/definitions/flag.ts'
import type { Group } from '#core/groups/group.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import { noChunkChanges } from '#core/processing/chunk.ts'
import { noIngestionSettings, noQuotas, type Project } from '#core/project.ts'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'
import type { NewCohort } from '#ports/state/cohort-store.ts'
import type { NewFlag } from '#ports/state/flag-write.ts'
import type { NewProject } from '#ports/state/project-store.ts'

let count = 0

export function aNewProject(over: Partial<NewProject> = {}): NewProject {
  count++
  return {
    uuid: `00000000-0000-4000-8000-${String(count).padStart(12, '0')}`,
    name: `Project ${count}`,
    apiToken: `phc_${count}`,
    timezone: 'UTC',
    anonymizeIps: false,
    geoipEnabled: true,
    propertyMatchingVersion: 2,
    quotas: noQuotas,
    clientSettings: {},
    ingestion: noIngestionSettings,
    createdAtMs: 1_700_000_000_000,
    ...over,
  }
}

export function aProject(over: Partial<Project> = {}): Project {
  return { ...aNewProject(), id: 1, ...over }
}

export function aNewFlag(over: Partial<NewFlag> = {}): NewFlag {
  const { deleted: _neverOfANewOne, ...defaults } = flagDefaults
  return {
    ...defaults,
    projectId: 1,
    key: 'beta',
    filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    createdAtMs: 1_700_000_000_000,
    createdBy: null,
    ...over,
  }
}

export function aNewCohort(over: Partial<NewCohort> = {}): NewCohort {
  return {
    projectId: 1,
    name: 'Beta',
    description: '',
    isStatic: false,
    filters: { properties: { type: 'OR', values: [] } },
    createdAtMs: 5,
    createdBy: null,
    ...over,
  }
}

export function aCohort(over: Partial<Cohort> = {}): Cohort {
  return {
    id: 1,
    projectId: 1,
    name: 'a cohort',
    description: '',
    isStatic: false,
    filters: {},
    deleted: false,
    version: 1,
    memberCount: null,
    countedAtMs: null,
    createdAtMs: 1_700_000_000_000,
    updatedAtMs: 1_700_000_000_000,
    createdBy: null,
    ...over,
  }
}

export function aPerson(over: Partial<Person> = {}): Person {
  return {
    projectId: 1,
    uuid: '11111111-1111-5111-8111-111111111111',
    properties: {},
    marks: {},
    createdAtMs: 1_700_000_000_000,
    isIdentified: false,
    version: 0,
    lastSeenAtMs: 1_700_000_000_000,
    ...over,
  }
}

export function aMapping(person: Person, distinctId: string, version = 0): DistinctIdMapping {
  return { projectId: person.projectId, distinctId, personUuid: person.uuid, version }
}

export function aGroup(over: Partial<Group> = {}): Group {
  return {
    projectId: 1,
    typeIndex: 0,
    key: 'acme',
    properties: {},
    marks: {},
    createdAtMs: 1_700_000_000_000,
    version: 1,
    ...over,
  }
}

export function chunkChanges(over: Partial<ChunkChanges> = {}): ChunkChanges {
  return { ...noChunkChanges, ...over }
}

/** A row that must not exist yet. */
export function created<T>(row: T): { row: T; loadedVersion: null } {
  return { row, loadedVersion: null }
}
