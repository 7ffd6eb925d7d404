// Messages between a front's main thread and its state threads: calls by the name of a method, and their answers.
// They are JSON text, because a kept number literal (`1.0`, a 64-bit id) does not survive structured clone.

import type { DefinitionDelta } from '#adapters/sql/definitions/unchanged-definitions.ts'
import type { StateMigration } from '#adapters/sql/known-migrations.ts'
import { type JsonValue, parseJson } from '#core/json.ts'
import { PortError, type PortErrorCode } from '#ports/port-error.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { HashKeyOverrideWriter } from '#ports/state/subject-store.ts'
import { packDefinitions } from './definition-texts.ts'
import type { DefinitionReader } from './sqlite-management-store.ts'

/** The calls that state threads serve: the management store, loads of definitions, and writes for experience continuity. */
export type StateCalls = Omit<ManagementStore, 'close'> & DefinitionReader & HashKeyOverrideWriter
export type StateMethod = keyof StateCalls

/**
 * Calls that may read a whole project: a separate thread serves them, so that they do not delay a write. The writing thread
 * serves all other calls.
 */
export const searchMethods: ReadonlySet<StateMethod> = new Set<StateMethod>([
  'listProjectFlagVersions',
  'listActivity',
  'searchFlags',
  'findLinks',
  'listCohortMembers',
  'listCohortMemberUuids',
  'listPersonsAfter',
  'listPersonsBelow',
  'countCohortMembers',
  'listPersons',
  'findPersonsOfIds',
  'listDistinctIds',
  'listGroups',
  'listGroupsAfter',
  'countPersons',
  'countGroups',
])

export interface StateThreadData {
  readonly dataFolder: string
  readonly access: 'read' | 'write'
  readonly busyTimeoutMs: number
  /**
   * Only a first start may create the state: a restarted thread that finds no state must not create an empty state in its
   * place.
   */
  readonly isFirst: boolean
}

/**
 * The first message of a thread: the calls that it serves, or why it cannot serve any. @property migration null when the
 * thread did not check whether the state is up to date.
 */
export type StateThreadStart =
  | { readonly ready: true; readonly methods: readonly StateMethod[]; readonly migration: StateMigration | null }
  | { readonly ready: false; readonly failure: StateFailure }

export interface StateFailure {
  readonly name: string
  readonly message: string
  /** Present when the error was a PortError, as is `code`. */
  readonly port?: string
  readonly code?: PortErrorCode
}

export function encodeStateCall(id: number, method: StateMethod, args: readonly unknown[]): string {
  return JSON.stringify([id, method, args])
}

export type StateAnswer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: StateFailure }

/**
 * Runs a call that `encodeStateCall` made, in a state thread. A call that fails has an answer, too.
 * @returns the answer, for `decodeStateAnswer`.
 * @throws Error for a method that is not among the calls.
 */
export async function serveStateCall(calls: StateCalls, message: string): Promise<string> {
  const [id, method, args] = parseJson(message) as [number, StateMethod, JsonValue[]]
  if (!Object.hasOwn(calls, method)) throw new Error(`no such state method: ${method}`)
  try {
    const found = await (calls[method] as (...args: unknown[]) => Promise<unknown>)(...args)
    const value = method === 'readChanges' ? packDefinitions(found as DefinitionDelta) : found
    return JSON.stringify({ id, value: value ?? null } satisfies StateAnswer)
  } catch (cause) {
    return JSON.stringify({ id, failure: toStateFailure(cause) } satisfies StateAnswer)
  }
}

export function decodeStateAnswer(text: string): StateAnswer {
  return parseJson(text) as unknown as StateAnswer
}

export function toStateFailure(cause: unknown): StateFailure {
  if (cause instanceof PortError)
    return { name: cause.name, message: cause.message, port: cause.port, code: cause.code }
  if (cause instanceof Error) return { name: cause.name, message: cause.message }
  return { name: 'Error', message: String(cause) }
}

export function toStateError(failure: StateFailure): Error {
  const error = new Error(failure.message)
  error.name = failure.name
  return failure.port !== undefined && failure.code !== undefined
    ? new PortError(failure.port, failure.code, error)
    : error
}
