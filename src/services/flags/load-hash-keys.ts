// Experience continuity for one request: reads the rows that keep its person's buckets, and writes missing rows when the
// request also names an anonymous id. A person who already has all rows costs one read of the store. Source:
// docs/wire/evaluation.md 5.13.

import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { EvaluationRequest } from '#core/flags/evaluation/evaluation-request.ts'
import { type HashKeyOverrides, noHashKeyOverrides } from '#core/flags/evaluation/evaluation-subject.ts'
import type { FlagNeeds } from '#core/flags/evaluation/flag-needs.ts'
import { type MaybePromise, mapMaybePromise } from '#core/maybe-promise.ts'
import type { HashKeyAssignment, HashKeyOverrideReader, HashKeyRow } from '#ports/state/subject-store.ts'
import type { HashKeyWrites } from './hash-key-writes.ts'
import type { LateLogins } from './late-logins.ts'
import type { StoreCircuitBreaker } from './store-circuit-breaker.ts'

export interface LoadHashKeysOptions {
  readonly hashKeys: HashKeyOverrideReader
  /** The guard of the store that is read. */
  readonly reads: StoreCircuitBreaker
  /** Writes have a separate guard: while nothing can be written, stored rows still count. */
  readonly writes: HashKeyWrites
  /** Takes the log-ins of persons who are not stored yet. */
  readonly lateLogins: LateLogins
  /** Bounds reading and writing together. */
  readonly timeoutMs: number
  readonly monotonicNowMs: () => number
}

type Request = Pick<
  EvaluationRequest,
  'anonDistinctId' | 'detailedAnalysis' | 'onlyUseOverridePersonProperties' | 'cookieless'
> & { readonly distinctId: string }

/**
 * The longest distinct id of a person. A longer one decides buckets but is not stored, since any client with the public
 * key can send it. Source: ours.
 */
const hashKeyCharsMax = 400

/**
 * @param needs the needs of the flags to be evaluated.
 * @returns a function that never rejects: when rows cannot be read or written, flags without a row fail.
 */
export function createHashKeyLoader(
  options: LoadHashKeysOptions,
): (project: CompiledProject, needs: FlagNeeds, request: Request) => MaybePromise<HashKeyOverrides> {
  const { hashKeys, reads, writes, monotonicNowMs } = options

  return (project, needs, request) => {
    const mayWrite = needs.continuity && mayWriteRows(request)
    if (!mayWrite && !needs.hashKeyOverrides) return noHashKeyOverrides
    const untilMs = monotonicNowMs() + options.timeoutMs
    const found = reads.run(() => findRows(project.project.id, request))
    return mapMaybePromise(found, (loaded): MaybePromise<HashKeyOverrides> => {
      if (!loaded.ok) return { ...noHashKeyOverrides, failure }
      const { rows, hasPerson } = loaded.value
      if (!mayWrite) return { rows, failure: null }
      if (!hasPerson) {
        options.lateLogins.note(toAssignment(project, request, project.continuityFlagKeys))
        return { rows, failure: null }
      }
      const missing = project.continuityFlagKeys.filter(key => !rows.has(key))
      return missing.length === 0 ? { rows, failure: null } : storeMissingRows(project, request, rows, missing, untilMs)
    })
  }

  /** Finds the rows of the persons of both ids. Rows of the person who has the distinct id take precedence. */
  function findRows(projectId: number, { distinctId, anonDistinctId }: Request): MaybePromise<FoundRows> {
    const own = hashKeys.findHashKeys(projectId, distinctId)
    const others =
      anonDistinctId === null || anonDistinctId === distinctId ? null : hashKeys.findHashKeys(projectId, anonDistinctId)
    return own instanceof Promise || others instanceof Promise
      ? Promise.all([own, others]).then(found => mergeRows(...found))
      : mergeRows(own, others)
  }

  function storeMissingRows(
    project: CompiledProject,
    request: Request,
    rows: HashKeyOverrides['rows'],
    flagKeys: readonly string[],
    untilMs: number,
  ): MaybePromise<HashKeyOverrides> {
    const leftMs = untilMs - monotonicNowMs()
    if (leftMs <= 0) return { rows, failure }
    const kept = writes.keep(toAssignment(project, request, flagKeys), leftMs)
    // The stored rows count, not the rows that this request wanted to write: another request of this person may have
    // been first.
    return mapMaybePromise(kept, stored =>
      stored.ok ? { rows: new Map(stored.value), failure: null } : { rows, failure },
    )
  }
}

function toAssignment(
  { project }: CompiledProject,
  { distinctId, anonDistinctId }: Request,
  flagKeys: readonly string[],
): HashKeyAssignment {
  return { projectId: project.id, distinctId, anonDistinctId: anonDistinctId!, flagKeys }
}

const failure = 'hash_key_override_error'

interface FoundRows {
  readonly rows: ReadonlyMap<string, string>
  readonly hasPerson: boolean
}

function mergeRows(own: readonly HashKeyRow[] | null, others: readonly HashKeyRow[] | null): FoundRows {
  return { rows: new Map([...(others ?? []), ...(own ?? [])]), hasPerson: own !== null || others !== null }
}

function mayWriteRows(request: Request): boolean {
  const { anonDistinctId, detailedAnalysis, onlyUseOverridePersonProperties, cookieless } = request
  if (anonDistinctId === null || anonDistinctId.length > hashKeyCharsMax || cookieless !== null) return false
  return !detailedAnalysis && !onlyUseOverridePersonProperties
}
