// Everything about one subject that an evaluation may look at, and the reader through which flags look.
// Data that could not be loaded is an error here, never an empty value: the flag that asks for it becomes unknown,
// and the flags that do not ask keep their value. Loading is the caller's business (`services/flags/decide.ts`).

import { isRawNumber, type JsonObject, type JsonValue, ownValue, type PropertyBag, textOf } from '../../json.ts'
import { ok, type Result } from '../../result.ts'
import type { MatchSteps } from '../match/match-property.ts'
import type { EvaluationTrace, ValueSource } from './evaluation-trace.ts'
import type { UnknownReason } from './flag-outcome.ts'
import type { FlagProgress } from './flag-progress.ts'
import { outOfTime } from './out-of-time.ts'
import {
  type PersonKey,
  type PersonLayers,
  readProperty,
  requestedLayer,
  requestedProperty,
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
  /** Group type name → key, as sent: only texts and numbers are usable. */
  readonly groups: JsonObject
  /** What the request sends replaces what is stored, key by key. */
  readonly personProperties: PropertyBag
  /** Group type name → properties. */
  readonly groupProperties: JsonObject
  readonly geoip: PropertyBag | null
  /** ok(null) when no person is stored, or nothing of what is stored may be used. */
  readonly person: Result<StoredPerson | null, UnknownReason>
  /** By group type index; a type that is not in it has no stored row. */
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
  /** Why a flag without a row in here is unknown; null when it really has no row. */
  readonly failure: UnknownReason | null
}

export const noGroupRows: EvaluationSubject['groupRows'] = new Map()
export const noHashKeyOverrides: HashKeyOverrides = { rows: new Map(), failure: null }
export const noStaticCohorts: EvaluationSubject['staticCohortIds'] = ok(new Set<number>())

/** Marks a key that was not looked up yet; absent keys are remembered as undefined. */
const notRead: unique symbol = Symbol('not read')

/** Answers of one evaluation, by the place of a shared test or a cohort. */
export type RememberedAnswers = Uint8Array

/** What a reader has to know of the project whose flags ask it. */
export interface ReaderSizes {
  readonly personKeys: { readonly count: number }
  readonly sharedTestCount: number
  readonly groupTypeNames: readonly (string | undefined)[]
}

export class SubjectReader {
  readonly subject: EvaluationSubject
  readonly nowMs: number
  /** Set by a read that needed data which is not there; cleared before each flag. */
  failure: UnknownReason | typeof outOfTime | null = null
  /** Whether the slice is over. Asked after a piece of work, never before, so that each slice gets somewhere. */
  isTimeUp: () => boolean = never
  /** Where the flag that ran out of time resumes. */
  pausedAt: FlagProgress | null = null
  /** The test of its set that comes next; cohort filters come after all others. */
  pausedTestIndex = 0
  /** Where the cohort that ran out of time resumes; only the walk through cohorts uses it. */
  pausedCohort: object | null = null
  /** What shared tests answered already, and what cohorts came to. */
  readonly remembered: RememberedAnswers
  /** Notes what the evaluation does; usually null, since only an explanation asks why. */
  readonly trace: EvaluationTrace | null
  /**
   * Whoever evaluates looks at the time after each set, and each test of a set, whose index has all these bits: every 16th,
   * or every one (0) once a value was read that takes a filter longer than usual.
   */
  lookMask = 0xf
  private readonly layers: PersonLayers
  private readonly storedPerson: StoredPerson | null
  private readonly personFailure: UnknownReason | null
  private readonly groupTypeNames: readonly (string | undefined)[]
  private readonly personValues: (JsonValue | undefined | typeof notRead)[]
  /** Long tests that are under way or answered, by a key that is the same each time. */
  private steps: Map<object, MatchSteps | boolean> | null = null

  constructor(subject: EvaluationSubject, project: ReaderSizes, trace: EvaluationTrace | null = null) {
    this.subject = subject
    this.trace = trace
    this.nowMs = subject.nowMs
    this.layers = { request: subject.personProperties, geoip: subject.geoip, distinctId: subject.distinctId }
    this.storedPerson = subject.person.ok ? subject.person.value : null
    this.personFailure = subject.person.ok ? null : subject.person.error
    this.groupTypeNames = project.groupTypeNames
    this.personValues = new Array(project.personKeys.count).fill(notRead)
    this.remembered = new Uint8Array(project.sharedTestCount)
    if (isLarge(subject.deviceId) || isLarge(subject.anonDistinctId)) this.lookMask = 0
  }

  /**
   * Works through the steps of a test and answers it; sets `failure` when the time is up, and goes on where it was when the
   * same `test` is asked again.
   */
  goThrough(steps: MatchSteps, test: object): boolean {
    this.steps ??= new Map()
    const known = this.steps.get(test) ?? steps
    if (typeof known === 'boolean') return known
    this.steps.set(test, known)
    for (;;) {
      const step = known.next()
      if (step.done === true) {
        this.steps.set(test, step.value)
        return step.value
      }
      if (!this.isTimeUp()) continue
      this.failure = outOfTime
      return false
    }
  }

  /** A person property as docs/wire/evaluation.md 5.8 layers it; undefined when it is absent. */
  personValue(key: PersonKey): JsonValue | undefined {
    const known = this.personValues[key.position]
    if (known !== notRead) return known
    const value = this.readPersonValue(key)
    if (isLarge(value)) this.lookMask = 0
    if (this.failure === null) this.personValues[key.position] = value
    return value
  }

  private readPersonValue(key: PersonKey): JsonValue | undefined {
    const requested = requestedProperty(this.layers, key)
    if (requested !== undefined) {
      if (this.trace !== null) this.trace.personRead(key.name, requestedLayer(this.layers, key), requested)
      return requested
    }
    if (this.personFailure !== null) {
      this.failure = this.personFailure
      return undefined
    }
    const stored = this.storedPerson === null ? undefined : readProperty(this.storedPerson.properties, key)
    if (this.trace !== null) this.trace.personRead(key.name, stored === undefined ? 'absent' : 'stored', stored)
    if (stored !== undefined || key.substitute === null) return stored
    const substituted = this.readPersonValue(key.substitute)
    if (this.trace !== null && this.failure === null) this.trace.personSubstituted(key.name, key.substitute.name)
    return substituted
  }

  /** `person_metadata`: the stored person's time of creation as ISO 8601 text, and nothing else. */
  personMetadata(name: string): JsonValue | undefined {
    if (name !== 'created_at') return undefined
    if (this.personFailure !== null) this.failure = this.personFailure
    const value = this.storedPerson === null ? undefined : new Date(this.storedPerson.createdAtMs).toISOString()
    if (this.trace !== null) this.trace.metadataRead(name, value)
    return value
  }

  isInStaticCohort(id: number): boolean {
    const { staticCohortIds } = this.subject
    if (staticCohortIds.ok) return staticCohortIds.value.has(id)
    this.failure = staticCohortIds.error
    return false
  }

  /** The usable key of a group type as the text that is hashed; '' when there is none. Source: docs/wire/evaluation.md 5.10. */
  groupKey(typeIndex: number): string {
    const name = this.groupTypeNames[typeIndex]
    const key = name === undefined ? '' : usableGroupKey(ownValue(this.subject.groups, name))
    if (isLarge(key)) this.lookMask = 0
    return key
  }

  /**
   * A property of a group; undefined when absent, of an unknown type, or of a group that was not sent. One that was sent with a
   * key that nobody can hash (`""`, `true`) has that key, and the properties that were sent for it. Source: docs/wire/evaluation.md 5.10.
   */
  groupValue(typeIndex: number, key: string): JsonValue | undefined {
    const name = this.groupTypeNames[typeIndex]
    const sentKey = name === undefined ? undefined : ownValue(this.subject.groups, name)
    if (name === undefined || sentKey === undefined) return this.groupRead(typeIndex, key, 'absent', undefined)
    if (isLarge(sentKey)) this.lookMask = 0
    if (key === '$group_key') return this.groupRead(typeIndex, key, 'group_key', sentKey)
    const requested = requestedGroupProperty(this.subject, name, key)
    if (isLarge(requested)) this.lookMask = 0
    if (requested !== undefined) return this.groupRead(typeIndex, key, 'request', requested)
    const row = this.subject.groupRows.get(typeIndex)
    if (row !== undefined && !row.ok) {
      this.failure = row.error
      return undefined
    }
    const stored = row === undefined || row.value === null ? undefined : ownValue(row.value, key)
    return this.groupRead(typeIndex, key, stored === undefined ? 'absent' : 'stored', stored)
  }

  private groupRead(typeIndex: number, key: string, from: ValueSource, value: JsonValue | undefined) {
    if (this.trace !== null) this.trace.groupRead(typeIndex, key, from, value)
    return value
  }
}

function never(): boolean {
  return false
}

const largeTextChars = 1_024

function isLarge(value: JsonValue | undefined): boolean {
  return typeof value === 'string' ? value.length > largeTextChars : typeof value === 'object' && value !== null
}

/** What the request itself says about a group's property. */
export function requestedGroupProperty(
  subject: Pick<EvaluationSubject, 'groupProperties'>,
  typeName: string,
  key: string,
): JsonValue | undefined {
  const sent = ownValue(subject.groupProperties, typeName)
  return sent === undefined ? undefined : ownValue(sent as JsonObject, key)
}

/** A text as it is, a number as its JSON text, '' for anything else. */
export function usableGroupKey(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value
  return typeof value === 'number' || isRawNumber(value) ? textOf(value as JsonValue) : ''
}
