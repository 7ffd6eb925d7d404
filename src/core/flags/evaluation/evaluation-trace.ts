// Records what an evaluation does, to explain why a flag has its value. The evaluator reports sets and filters, the
// reader reports which value it found where; a trace decides nothing. Without a trace, an evaluation only tests one
// field for null at these places and allocates nothing.

import type { JsonValue } from '../../json.ts'
import type { FlagOutcome, RuleReason, UnknownReason } from './flag-outcome.ts'
import { outOfTime } from './out-of-time.ts'
import type { SetOffReason } from './prepared-outcomes.ts'

/** Which identifier is hashed. `stored_override`: from the row that experience continuity keeps. */
export type BucketedBy = 'group_key' | 'distinct_id' | 'device_id' | 'anon_distinct_id' | 'stored_override'

/** Where a property's value was found. `distinct_id`: the request's own id, for the property of that name. */
export type ValueSource = 'request' | 'geoip' | 'distinct_id' | 'group_key' | 'stored' | 'absent'

export interface TracedRead {
  readonly value: JsonValue | undefined
  readonly from: ValueSource
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
  readonly hash01: number | null
  readonly isHeldOut: boolean
}

export interface TracedSet {
  /** By the index of the filter among those that are not cohort filters; a hole was not tested. */
  readonly tests: TracedAnswer[]
  /** Whether the subject is a member, by the index of the filter among the cohort filters. */
  readonly cohorts: TracedAnswer[]
  bucketing: TracedBucketing | null
  /** For a rule with a holdout that was tested. */
  holdout: TracedHoldout | null
  /** Null when it was not needed, because an earlier check decided or the set includes everyone. */
  rolloutHash01: number | null
  /** Null when the set or rule matched; undefined when the flag's evaluation failed in it. */
  missed: SetOffReason | RuleReason | null | undefined
}

export interface FlagTrace {
  /** Null when the flag is not an early access feature. */
  enrollment: { readonly value: JsonValue | undefined } | null
  holdout: TracedHoldout | null
  /** Of the sets, or of the rules. By index; a hole was not reached. */
  readonly sets: TracedSet[]
  /** Null when no set matched, or when no hash chose the variant. */
  variantHash01: number | null
}

export class EvaluationTrace {
  readonly #flags = new Map<object, FlagTrace>()
  readonly #personReads = new Map<string, TracedRead>()
  readonly #metadataReads = new Map<string, TracedRead>()
  readonly #groupReads = new Map<string, TracedRead>()
  readonly #leaves = new Map<object, TracedAnswer>()
  /** The traces of the flag that is being evaluated and of its current set. */
  #flag: FlagTrace | null = null
  #set: TracedSet | null = null

  /** The trace of a compiled flag; undefined when it was not evaluated. */
  of(flag: object): FlagTrace | undefined {
    return this.#flags.get(flag)
  }

  /** The last read of a person property; undefined when it was not read. */
  personReadOf(key: string): TracedRead | undefined {
    return this.#personReads.get(key)
  }

  metadataReadOf(name: string): TracedRead | undefined {
    return this.#metadataReads.get(name)
  }

  groupReadOf(typeIndex: number, key: string): TracedRead | undefined {
    return this.#groupReads.get(`${typeIndex} ${key}`)
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

  holdoutAsked(identifier: string, hash01: number | null, isHeldOut: boolean): void {
    this.#flag!.holdout = { identifier, hash01, isHeldOut }
  }

  beginSet(index: number): void {
    const { sets } = this.#flag!
    sets[index] ??= {
      tests: [],
      cohorts: [],
      bucketing: null,
      holdout: null,
      rolloutHash01: null,
      missed: undefined,
    }
    this.#set = sets[index]
  }

  testAnswered(index: number, holds: boolean, failure: Failure): void {
    if (failure !== outOfTime) this.#set!.tests[index] = failure ?? holds
  }

  cohortAnswered(index: number, isMember: boolean, failure: Failure): void {
    if (failure !== outOfTime) this.#set!.cohorts[index] = failure ?? isMember
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

  ruleHoldoutAsked(identifier: string, hash01: number, isHeldOut: boolean): void {
    this.#set!.holdout = { identifier, hash01, isHeldOut }
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

  personRead(key: string, from: ValueSource, value: JsonValue | undefined): void {
    this.#personReads.set(key, { value, from, substitute: null })
  }

  /** @param substitute the property that was read instead; it may be absent as well. */
  personSubstituted(key: string, substitute: string): void {
    const read = this.#personReads.get(substitute)!
    const isFound = read.from !== 'absent'
    this.#personReads.set(key, { ...read, substitute: isFound ? (read.substitute ?? substitute) : null })
  }

  metadataRead(name: string, value: JsonValue | undefined): void {
    this.#metadataReads.set(name, { value, from: value === undefined ? 'absent' : 'stored', substitute: null })
  }

  groupRead(typeIndex: number, key: string, from: ValueSource, value: JsonValue | undefined): void {
    this.#groupReads.set(`${typeIndex} ${key}`, { value, from, substitute: null })
  }
}

type Failure = UnknownReason | typeof outOfTime | null
