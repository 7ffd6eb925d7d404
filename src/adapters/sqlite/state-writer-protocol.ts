// What travels between a front's main thread and its state threads: calls by name from a closed list, and their answers.
// Messages are JSON text, because a kept number literal (`1.0`, a 64-bit id) does not survive structured clone.

import { type JsonValue, parseJson } from '#core/json.ts'
import type { HashKeyOverrideWriter } from '#ports/hash-key-overrides.ts'
import type { ManagementStore } from '#ports/management-store.ts'
import { PortError, type PortErrorCode } from '#ports/port-error.ts'
import type { DefinitionReader } from './definition-loader.ts'

/** What the threads serve together; the fronts' definitions are read and their rows of experience continuity written there as well. */
export type StateCalls = Omit<ManagementStore, 'close'> & DefinitionReader & HashKeyOverrideWriter
export type StateMethod = keyof StateCalls

/**
 * Every call, and which thread serves it: `search` for those that may read through all of a
 * project, since such a one must not hold up a write.
 */
export const stateMethods: { readonly [M in StateMethod]: 'state' | 'search' } = {
  createProject: 'state',
  updateProject: 'state',
  deleteProject: 'state',
  findProject: 'state',
  listProjects: 'state',
  createPersonalKey: 'state',
  findPersonalKeyByHash: 'state',
  findPersonalKey: 'state',
  listPersonalKeys: 'state',
  deletePersonalKey: 'state',
  savePersonalKeyUses: 'state',
  rotateSecretKey: 'state',
  deleteBackupSecretKey: 'state',
  listSecretKeys: 'state',
  createFlag: 'state',
  updateFlag: 'state',
  findFlag: 'state',
  findFlagByKey: 'state',
  listFlagsById: 'state',
  listFlags: 'state',
  listFlagVersions: 'state',
  findFlagVersion: 'state',
  listProjectFlagVersions: 'search',
  createCohort: 'state',
  updateCohort: 'state',
  findCohort: 'state',
  listCohorts: 'state',
  findLinks: 'search',
  addCohortMembers: 'state',
  removeCohortMembers: 'state',
  listCohortMembers: 'search',
  listPersonsAfter: 'search',
  countCohortMembers: 'search',
  saveCohortCount: 'state',
  createEarlyAccessFeature: 'state',
  updateEarlyAccessFeature: 'state',
  deleteEarlyAccessFeature: 'state',
  findEarlyAccessFeature: 'state',
  listEarlyAccessFeatures: 'state',
  createSurvey: 'state',
  updateSurvey: 'state',
  deleteSurvey: 'state',
  findSurvey: 'state',
  listSurveys: 'state',
  createExperiment: 'state',
  updateExperiment: 'state',
  deleteExperiment: 'state',
  findExperiment: 'state',
  listExperiments: 'state',
  listFlagOwners: 'state',
  findPersonByUuid: 'state',
  listPersons: 'search',
  listDistinctIds: 'search',
  listGroupTypes: 'state',
  startDeletingGroupType: 'state',
  deleteGroupsOfType: 'state',
  listGroups: 'search',
  findStoredGroup: 'state',
  addFlagRequests: 'state',
  saveEventCounts: 'state',
  listUsage: 'state',
  sumFlagRequests: 'state',
  sumUsage: 'state',
  listProjectIds: 'state',
  addRefused: 'state',
  listRefused: 'state',
  deleteRefusedBefore: 'state',
  listWarnings: 'state',
  deleteWarningsBefore: 'state',
  findLogPosition: 'state',
  findFollowedLog: 'state',
  followLog: 'state',
  listOutcomes: 'state',
  findEventStoreMark: 'state',
  saveEventStoreMark: 'state',
  listOverrides: 'state',
  listChangedProjects: 'state',
  readChanges: 'state',
  keepHashKey: 'state',
}

export interface StateThreadData {
  readonly dataFolder: string
  readonly access: 'read' | 'write'
  readonly busyTimeoutMs: number
  /** One that starts again finds the state that the first one made, or none: an empty one would take its place. */
  readonly isFirst: boolean
}

/** The first message of a thread: it serves, or it cannot. */
export type StateThreadStart = { readonly ready: true } | { readonly ready: false; readonly failure: Failure }

export interface Failure {
  readonly name: string
  readonly message: string
  /** Present when the error was a PortError, as is `code`. */
  readonly port?: string
  readonly code?: PortErrorCode
}

export function encodeCall(id: number, method: StateMethod, args: readonly unknown[]): string {
  return JSON.stringify([id, method, args])
}

/** @throws Error for a method that is not on the list. */
export function decodeCall(text: string): { id: number; method: StateMethod; args: unknown[] } {
  const [id, method, args] = parseJson(text) as [number, string, JsonValue[]]
  if (!Object.hasOwn(stateMethods, method)) throw new Error(`no such state method: ${method}`)
  return { id, method: method as StateMethod, args }
}

export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: Failure }

export function encodeAnswer(answer: Answer): string {
  return JSON.stringify(answer)
}

export function decodeAnswer(text: string): Answer {
  return parseJson(text) as unknown as Answer
}

export function failureOf(cause: unknown): Failure {
  if (cause instanceof PortError)
    return { name: cause.name, message: cause.message, port: cause.port, code: cause.code }
  if (cause instanceof Error) return { name: cause.name, message: cause.message }
  return { name: 'Error', message: String(cause) }
}

export function errorOf(failure: Failure): Error {
  const error = new Error(failure.message)
  error.name = failure.name
  return failure.port !== undefined && failure.code !== undefined
    ? new PortError(failure.port, failure.code, error)
    : error
}
