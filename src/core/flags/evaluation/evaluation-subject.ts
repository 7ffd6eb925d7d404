// Everything about one subject that an evaluation may read, and the reader through which flags read it. Data that could not
// be loaded is an error here, never an empty value: a flag that reads such data becomes unknown; the other flags keep their
// value. `services/flags/decide.ts` loads it.

import {
  getOwnValue,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  type PropertyBag,
  toComparableText,
} from '../../json.ts'
import { ok, type Result } from '../../result.ts'
import type { MatchSteps } from '../match/match-property.ts'
import type { EvaluationTrace, ValueSource } from './evaluation-trace.ts'
import type { UnknownReason } from './flag-outcome.ts'
import type { FlagProgress } from './flag-progress.ts'
import { outOfTime } from './out-of-time.ts'
import {
  findPropertyOrigin,
  type PersonKey,
  type PersonLayers,
  readPersonProperty,
  readRequestedProperty,
} from './person-properties.ts'

export interface StoredPerson {
  readonly properties: PropertyBag
  readonly createdAtMs: number
}

export interface EvaluationSubject {
  /** '' is a valid id: it hashes to 0. */
  readonly distinctId: string
  /** The id before a login, for flags with experience continuity. */
  readonly anonDistinctId: string | null
  /** Never ''. */
  readonly deviceId: string | null
  /** Group type name → key, as sent; only texts and numbers are usable. */
  readonly groups: JsonObject
  /** As sent in the request; they replace stored properties key by key. */
  readonly personProperties: PropertyBag
  /** Group type name → properties. */
  readonly groupProperties: JsonObject
  readonly geoip: PropertyBag | null
  /** ok(null) when no person is stored, or the stored one must not be used. */
  readonly person: Result<StoredPerson | null, UnknownReason>
  /** By group type index; types without an entry have no stored row. */
  readonly groupRows: ReadonlyMap<number, Result<PropertyBag | null, UnknownReason>>
  readonly hashKeyOverrides: HashKeyOverrides
  /** Ids of the static cohorts that the stored person is in. Source: docs/wire/evaluation.md 5.11. */
  readonly staticCohortIds: Result<ReadonlySet<number>, UnknownReason>
  /** Epoch ms; relative dates count back from it. */
  readonly nowMs: number
}

/** The override rows of experience continuity. Source: docs/wire/evaluation.md 5.13. */
export interface HashKeyOverrides {
  /** Flag key → hash key. */
  readonly rows: ReadonlyMap<string, string>
  /** Why a flag without a row here is unknown; null when such flags really have no row. */
  readonly failure: UnknownReason | null
}

export const noGroupRows: EvaluationSubject['groupRows'] = new Map()
export const noHashKeyOverrides: HashKeyOverrides = { rows: new Map(), failure: null }
export const noStaticCohorts: EvaluationSubject['staticCohortIds'] = ok(new Set<number>())

/** Marks a key that was not read yet; an absent property is remembered as undefined. */
const notRead: unique symbol = Symbol('not read')

/** The answers of one evaluation, by the place of a shared test or a cohort. */
export type RememberedAnswers = Uint8Array

/** What a reader must know about the project whose flags use it. */
export interface ReaderSizes {
  readonly personKeys: { readonly count: number }
  readonly sharedTestCount: number
  readonly groupTypeNames: readonly (string | undefined)[]
}

export class SubjectReader {
  readonly subject: EvaluationSubject
  readonly nowMs: number
  /** Why the flag is undecided: data could not be loaded, or the time is up. Cleared before each flag. */
  failure: UnknownReason | typeof outOfTime | null = null
  /** Whether the time slice has ended. Called only after some work was done, so that each slice makes progress. */
  isTimeUp: () => boolean = neverExpires
  /** Where the flag that ran out of time resumes. */
  pausedAt: FlagProgress | null = null
  /** Index of the test to resume with in its set; cohort filters are counted after all other filters. */
  pausedTestIndex = 0
  /** Where the cohort that ran out of time resumes; used only by the walk through cohorts. */
  pausedCohort: object | null = null
  /** The answers so far of shared tests and of cohorts. */
  readonly remembered: RememberedAnswers
  /** Records what the evaluation does; null unless it is for an explanation. */
  readonly trace: EvaluationTrace | null
  /**
   * The evaluator checks the time after each set, and after each test of a set whose index has all these bits set:
   * after every 16th, or after each one (mask 0) once a value was read that makes filters slow.
   */
  lookMask = 0xf
  readonly #layers: PersonLayers
  readonly #storedPerson: StoredPerson | null
  readonly #personFailure: UnknownReason | null
  readonly #groupTypeNames: readonly (string | undefined)[]
  readonly #personValues: (JsonValue | undefined | typeof notRead)[]
  /** Long tests that are in progress or answered, by the `test` object of `goThrough`. */
  #steps: Map<object, MatchSteps | boolean> | null = null

  constructor(subject: EvaluationSubject, project: ReaderSizes, trace: EvaluationTrace | null = null) {
    this.subject = subject
    this.trace = trace
    this.nowMs = subject.nowMs
    this.#layers = { request: subject.personProperties, geoip: subject.geoip, distinctId: subject.distinctId }
    this.#storedPerson = subject.person.ok ? subject.person.value : null
    this.#personFailure = subject.person.ok ? null : subject.person.error
    this.#groupTypeNames = project.groupTypeNames
    this.#personValues = new Array(project.personKeys.count).fill(notRead)
    this.remembered = new Uint8Array(project.sharedTestCount)
    if (isLarge(subject.deviceId) || isLarge(subject.anonDistinctId)) this.lookMask = 0
  }

  /**
   * Runs the steps of a long test and returns its answer. When the time is up it sets `failure`; called again with the
   * same `test`, it resumes there.
   */
  goThrough(steps: MatchSteps, test: object): boolean {
    this.#steps ??= new Map()
    const known = this.#steps.get(test) ?? steps
    if (typeof known === 'boolean') return known
    this.#steps.set(test, known)
    for (;;) {
      const step = known.next()
      if (step.done === true) {
        this.#steps.set(test, step.value)
        return step.value
      }
      if (!this.isTimeUp()) continue
      this.failure = outOfTime
      return false
    }
  }

  /** A person property, found in the order of docs/wire/evaluation.md 5.8; undefined when absent. */
  personValue(key: PersonKey): JsonValue | undefined {
    const known = this.#personValues[key.position]
    if (known !== notRead) return known
    const value = this.#readPersonValue(key)
    if (isLarge(value)) this.lookMask = 0
    if (this.failure === null) this.#personValues[key.position] = value
    return value
  }

  #readPersonValue(key: PersonKey): JsonValue | undefined {
    const requested = readRequestedProperty(this.#layers, key)
    if (requested !== undefined) {
      if (this.trace !== null)
        this.trace.valueRead('person', key.name, findPropertyOrigin(this.#layers, key), requested)
      return requested
    }
    if (this.#personFailure !== null) {
      this.failure = this.#personFailure
      return undefined
    }
    const stored = this.#storedPerson === null ? undefined : readPersonProperty(this.#storedPerson.properties, key)
    if (this.trace !== null) this.trace.valueRead('person', key.name, storedSource(stored), stored)
    if (stored !== undefined || key.substitute === null) return stored
    const substituted = this.#readPersonValue(key.substitute)
    if (this.trace !== null && this.failure === null) this.trace.personSubstituted(key.name, key.substitute.name)
    return substituted
  }

  /** `person_metadata`, which is only the stored person's time of creation, as ISO 8601 text. */
  personMetadata(name: string): JsonValue | undefined {
    if (name !== 'created_at') return undefined
    if (this.#personFailure !== null) this.failure = this.#personFailure
    const value = this.#storedPerson === null ? undefined : new Date(this.#storedPerson.createdAtMs).toISOString()
    if (this.trace !== null) this.trace.valueRead('person_metadata', name, storedSource(value), value)
    return value
  }

  isInStaticCohort(id: number): boolean {
    const { staticCohortIds } = this.subject
    if (staticCohortIds.ok) return staticCohortIds.value.has(id)
    this.failure = staticCohortIds.error
    return false
  }

  /**
   * The key sent for a group type, as the text to hash; '' without a usable key. Source: docs/wire/evaluation.md 5.10.
   */
  groupKey(typeIndex: number): string {
    const name = this.#groupTypeNames[typeIndex]
    const key = name === undefined ? '' : readUsableGroupKey(getOwnValue(this.subject.groups, name))
    if (isLarge(key)) this.lookMask = 0
    return key
  }

  /**
   * A group's property; undefined when it is absent, the group type is unknown or no key was sent for it. A group whose
   * key cannot be hashed (`""`, `true`) still has that key and the properties sent for it.
   * Source: docs/wire/evaluation.md 5.10.
   */
  groupValue(typeIndex: number, key: string): JsonValue | undefined {
    const name = this.#groupTypeNames[typeIndex]
    const sentKey = name === undefined ? undefined : getOwnValue(this.subject.groups, name)
    if (name === undefined || sentKey === undefined) return this.#groupRead(typeIndex, key, 'absent', undefined)
    if (isLarge(sentKey)) this.lookMask = 0
    if (key === '$group_key') return this.#groupRead(typeIndex, key, 'group_key', sentKey)
    const requested = readRequestedGroupProperty(this.subject, name, key)
    if (isLarge(requested)) this.lookMask = 0
    if (requested !== undefined) return this.#groupRead(typeIndex, key, 'request', requested)
    const row = this.subject.groupRows.get(typeIndex)
    if (row !== undefined && !row.ok) {
      this.failure = row.error
      return undefined
    }
    const stored = row === undefined || row.value === null ? undefined : getOwnValue(row.value, key)
    return this.#groupRead(typeIndex, key, storedSource(stored), stored)
  }

  #groupRead(typeIndex: number, key: string, source: ValueSource, value: JsonValue | undefined) {
    if (this.trace !== null) this.trace.valueRead(typeIndex, key, source, value)
    return value
  }
}

function storedSource(value: JsonValue | undefined): ValueSource {
  return value === undefined ? 'absent' : 'stored'
}

function neverExpires(): boolean {
  return false
}

const largeTextChars = 1_024

function isLarge(value: JsonValue | undefined): boolean {
  return typeof value === 'string' ? value.length > largeTextChars : typeof value === 'object' && value !== null
}

/** The value that the request itself contains for a group's property. */
export function readRequestedGroupProperty(
  subject: Pick<EvaluationSubject, 'groupProperties'>,
  typeName: string,
  key: string,
): JsonValue | undefined {
  const sent = getOwnValue(subject.groupProperties, typeName)
  return sent === undefined ? undefined : getOwnValue(sent as JsonObject, key)
}

/** A text unchanged, a number as its JSON text, '' for anything else. */
export function readUsableGroupKey(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value
  return typeof value === 'number' || isRawNumber(value) ? toComparableText(value as JsonValue) : ''
}
