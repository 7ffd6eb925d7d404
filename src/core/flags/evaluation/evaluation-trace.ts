// Records what an evaluation does, to explain why a flag has its value. The evaluator reports sets and filters, the reader
// reports which value it found where; a trace decides nothing. Without a trace, an evaluation only checks one field for
// null at each of these points and allocates nothing.

import type { JsonValue } from '../../json.ts'
import type { FlagOutcome, RuleReason, UnknownReason } from './flag-outcome.ts'
import { outOfTime } from './out-of-time.ts'
import type { SetOffReason } from './prepared-outcomes.ts'

/** Which identifier is hashed. `stored_override`: from the row that experience continuity keeps. */
export type BucketedBy = 'group_key' | 'distinct_id' | 'device_id' | 'anon_distinct_id' | 'stored_override'

/** Where a property's value was found. `distinct_id`: the request's own id, for the property of that name. */
export type ValueSource = 'request' | 'geoip' | 'distinct_id' | 'group_key' | 'stored' | 'absent'

/** Whose property was read: the index of a group type stands for a group. */
export type ReadScope = 'person' | 'person_metadata' | number

export interface TracedRead {
  readonly source: ValueSource
  readonly value: JsonValue | undefined
  /** The property that was read instead; null when none was. */
  readonly substitute: string | null
}

/** Whether a filter holds, or why that could not be decided. */
export type TracedAnswer = boolean | UnknownReason

export interface TracedBucketing {
  readonly by: BucketedBy
  readonly identifier: string
}

export interface TracedHoldout {
  readonly identifier: string
  /** Null when everyone is held out, which needs no hash. */
  readonly hash01: number | null
  readonly isHeldOut: boolean
}

export interface TracedSet {
  /** In the order in which the filters are tested; a hole is a filter that was not tested. */
  readonly tests: TracedAnswer[]
  bucketing: TracedBucketing | null
  /** The test of a rule's holdout; null when there is no holdout or it was not tested. */
  holdout: TracedHoldout | null
  /** Null when no hash was needed, because an earlier check decided or the set includes everyone. */
  rolloutHash01: number | null
  /** Null when the set or rule matched; undefined when the flag's evaluation failed in it. */
  missed: SetOffReason | RuleReason | null | undefined
}

export interface FlagTrace {
  /** Null when the flag is not an early access feature. */
  enrollment: { readonly value: JsonValue | undefined } | null
  holdout: TracedHoldout | null
  /** The traces of the sets, or of the rules, by index; a hole is a set or rule that was not reached. */
  readonly sets: TracedSet[]
  /** Null when no set matched, or when no hash chose the variant. */
  variantHash01: number | null
}

export class EvaluationTrace {
  readonly #flags = new Map<object, FlagTrace>()
  readonly #reads = new Map<string, TracedRead>()
  readonly #leaves = new Map<object, TracedAnswer>()
  /** The traces of the flag that is being evaluated and of its current set. */
  #flag: FlagTrace | null = null
  #set: TracedSet | null = null

  /** The trace of a compiled flag; undefined when it was not evaluated. */
  of(flag: object): FlagTrace | undefined {
    return this.#flags.get(flag)
  }

  /** The last read of a property; undefined when it was not read. */
  readOf(scope: ReadScope, key: string): TracedRead | undefined {
    return this.#reads.get(`${scope} ${key}`)
  }

  /** The last answer of an entry of a cohort's tree. @param leaf the object that `leafAnswered` was called with. */
  leafAnswerOf(leaf: object): TracedAnswer | undefined {
    return this.#leaves.get(leaf)
  }

  /** Called again for a flag that ran out of time; its trace then continues. */
  beginFlag(flag: object): void {
    const known = this.#flags.get(flag)
    this.#flag = known ?? { enrollment: null, holdout: null, sets: [], variantHash01: null }
    if (known !== undefined) return
    this.#flags.set(flag, this.#flag)
    this.#set = null
  }

  enrollmentRead(value: JsonValue | undefined): void {
    this.#flag!.enrollment = { value }
  }

  /** Reports the test of a holdout: the current rule's, or the flag's before its first set. */
  holdoutAsked(identifier: string, hash01: number | null, isHeldOut: boolean): void {
    const asked = this.#set ?? this.#flag!
    asked.holdout = { identifier, hash01, isHeldOut }
  }

  beginSet(index: number): void {
    const { sets } = this.#flag!
    sets[index] ??= { tests: [], bucketing: null, holdout: null, rolloutHash01: null, missed: undefined }
    this.#set = sets[index]
  }

  testAnswered(index: number, holds: boolean, failure: Failure): void {
    if (failure !== outOfTime) this.#set!.tests[index] = failure ?? holds
  }

  /** @param leaf the object that `leafAnswerOf` will be called with. */
  leafAnswered(leaf: object, holds: boolean, failure: Failure): void {
    if (failure !== outOfTime) this.#leaves.set(leaf, failure ?? holds)
  }

  bucketed(by: BucketedBy, identifier: string): void {
    this.#set!.bucketing = { by, identifier }
  }

  rolledOut(hash01: number): void {
    this.#set!.rolloutHash01 = hash01
  }

  setAnswered(missed: SetOffReason | null): void {
    this.#set!.missed = missed
  }

  /** @param reason the outcome's reason, even when the rule did not match and the next rule decides. */
  ruleAnswered({ reason }: Pick<FlagOutcome, 'reason'>): void {
    const isMatch = reason === 'targeting_match' || reason === 'experiment_split'
    this.#set!.missed = isMatch ? null : (reason as RuleReason)
  }

  /** Resets the set's answer, even of a set that matched: the variant may have been impossible to pick. */
  flagFailed(): void {
    if (this.#set !== null) this.#set.missed = undefined
  }

  variantHashed(hash01: number): void {
    this.#flag!.variantHash01 = hash01
  }

  valueRead(scope: ReadScope, key: string, source: ValueSource, value: JsonValue | undefined): void {
    this.#reads.set(`${scope} ${key}`, { source, value, substitute: null })
  }

  /** @param substitute the person property that was read instead; it may be absent as well. */
  personSubstituted(key: string, substitute: string): void {
    const read = this.readOf('person', substitute)!
    const isFound = read.source !== 'absent'
    this.#reads.set(`person ${key}`, { ...read, substitute: isFound ? (read.substitute ?? substitute) : null })
  }
}

type Failure = UnknownReason | typeof outOfTime | null
