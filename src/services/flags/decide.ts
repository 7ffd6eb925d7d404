// Evaluates the flags of one request: finds the project, loads what its flags may read of the subject, evaluates them. It
// is synchronous when the stores answer at once, and bounded in time when they do not. `wire/flags` decodes the request and
// shapes the answer.

import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { EvaluationRequest, RequestVisitor } from '#core/flags/evaluation/evaluation-request.ts'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import { EvaluationTrace } from '#core/flags/evaluation/evaluation-trace.ts'
import type { UnknownReason } from '#core/flags/evaluation/flag-outcome.ts'
import { findNeedsOfSelectedFlags, selectFlags } from '#core/flags/evaluation/select-flags.ts'
import { type MaybePromise, mapMaybePromise } from '#core/maybe-promise.ts'
import { isSteps, type MaybeSteps, type Steps } from '#core/maybe-steps.ts'
import type { Project } from '#core/project.ts'
import type { Geoip } from '#ports/geoip.ts'
import { PortError } from '#ports/port-error.ts'
import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import type { HashKeyOverrideReader, HashKeyOverrideWriter, SubjectStore } from '#ports/state/subject-store.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { DailySalts } from '../shared/daily-salts.ts'
import { createSliceQueue, type SlicedWork, unfinished } from '../shared/slice-queue.ts'
import { createHashKeyWriteQueue } from './hash-key-writes.ts'
import { createVisitorHasher, type MissingVisitorPart } from './hash-visitor.ts'
import { createLateLoginRetrier } from './late-logins.ts'
import { createHashKeyLoader } from './load-hash-keys.ts'
import { createSubjectLoader, type SubjectRequest } from './load-subject.ts'
import { type CircuitBreakerOptions, createStoreCircuitBreaker, storeLimits } from './store-circuit-breaker.ts'

export interface DecideServiceOptions {
  /** The compiled definitions of the project with this API key; null when no project has it. */
  readonly findProject: (apiKey: string) => CompiledProject | null
  readonly subjects: SubjectStore
  readonly hashKeys: HashKeyOverrideReader & HashKeyOverrideWriter
  /** The salts for visitors without cookies. */
  readonly salts: Pick<DailySalts, 'saltOf'>
  readonly visitors: CookielessVisitors
  /** How many calls of `addMissingHashKeys` may run at once; further calls wait, and projects take turns. */
  readonly writesAtOnceMax: number
  /** Null without a database of locations. */
  readonly geoip: Geoip | null
  /** Whether the project has used up its flag requests. When absent, only a quota of 0 counts as used up. */
  readonly isOverFlagQuota?: (project: Project) => boolean
  /** Called once per request whose flags are evaluated. */
  readonly countFlagRequest: (projectId: number) => void
  readonly logger: Logger
  readonly metrics: Metrics
  /** For tests: replaces `sliceLimits`. */
  readonly slices?: Partial<typeof sliceLimits>
  /** For tests: the bound on look-ups and the clock of slices. */
  readonly guard?: Partial<
    Pick<CircuitBreakerOptions, 'timeoutMs' | 'pendingMax' | 'failuresMax' | 'restMs' | 'monotonicNowMs' | 'startTimer'>
  >
}

export type DecideResult<T> =
  | { readonly kind: 'unknown_key' }
  | { readonly kind: 'missing_distinct_id' }
  /** The request lacks something that is needed to identify a visitor without cookies. */
  | { readonly kind: 'missing_property'; readonly property: MissingVisitorPart }
  /** A visitor without cookies cannot be identified now: the salts, or the state, are unavailable. */
  | { readonly kind: 'visitor_unknown' }
  /** Too many evaluations wait for their slice, so this one was given up. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'disabled' | 'quota_limited'; readonly project: CompiledProject }
  | { readonly kind: 'evaluated'; readonly answer: T }

export type DecideService = ReturnType<typeof createDecideService>

const without = 'flags that need it are omitted'

/**
 * A longer limit than for other stores: a front reads a salt once a day, the first front must write it to the disk, and
 * without it no answer is possible.
 */
const saltMsMax = 2_000

/**
 * An evaluation yields to the event loop after `sliceMs`. With `waitingMax` evaluations waiting, the last has seconds of
 * work ahead of it, and SDKs have given up by then.
 */
const sliceLimits = { sliceMs: 10, waitingMax: 1_000 }

export function createDecideService(options: DecideServiceOptions) {
  const { logger, metrics, hashKeys } = options
  const monotonicNowMs = options.guard?.monotonicNowMs ?? (() => performance.now())
  const limits = { ...storeLimits, ...options.guard, monotonicNowMs }
  const slices = createSliceQueue({ ...sliceLimits, ...options.slices, monotonicNowMs })
  const reads = createStoreCircuitBreaker({
    port: 'subject-store',
    task: 'reading stored persons and groups',
    without,
    logger,
    metrics,
    ...limits,
  })
  const writes = createHashKeyWriteQueue({
    hashKeys,
    guard: createStoreCircuitBreaker({
      port: 'hash-key-overrides',
      task: 'saving the flags of users who log in',
      without,
      logger,
      metrics,
      ...limits,
    }),
    atOnceMax: options.writesAtOnceMax,
    onDropped: reason => metrics.loginsDropped.inc({ why: reason }),
    ...limits,
  })
  const loadSubject = createSubjectLoader({
    subjects: options.subjects,
    reads,
    loadHashKeys: createHashKeyLoader({
      hashKeys,
      reads,
      writes,
      lateLogins: createLateLoginRetrier({
        hashKeys,
        reads,
        writes,
        onDropped: () => metrics.loginsDropped.inc({ why: 'person_missing' }),
        ...limits,
      }),
      ...limits,
    }),
    geoip: options.geoip,
  })
  const hashVisitor = createVisitorHasher({
    salts: options.salts,
    visitors: options.visitors,
    saltReads: createStoreCircuitBreaker({
      port: 'cookieless-salts',
      task: 'reading the salt of the day',
      without: 'cookieless visitors get no flags',
      logger,
      metrics,
      ...limits,
      timeoutMs: saltMsMax,
    }),
    reads,
  })
  const evaluated = metrics.flagEvaluations.labels({ result: 'evaluated' })
  const withErrors = metrics.flagEvaluations.labels({ result: 'evaluated_with_errors' })
  const isOverFlagQuota = options.isOverFlagQuota ?? (project => project.quotas.featureFlagRequests === 0)

  return { decide, traceEvaluation }

  /**
   * Never rejects because a store is down: the flags that need that store become unknown.
   * @param nowMs epoch ms.
   * @param shown only called for a visitor without cookies.
   * @param encode makes the answer from the evaluation; its steps run in the same slices.
   */
  function decide<T>(
    request: EvaluationRequest,
    nowMs: number,
    shown: () => RequestVisitor,
    encode: (evaluation: FlagEvaluation) => MaybeSteps<T>,
  ): MaybePromise<DecideResult<T>> {
    const project = options.findProject(request.apiKey)
    if (project === null) return countRefusal({ kind: 'unknown_key' })
    if (request.disableFlags) return countRefusal({ kind: 'disabled', project })
    if (!hasDistinctId(request)) return countRefusal({ kind: 'missing_distinct_id' })
    if (isOverFlagQuota(project.project)) return countRefusal({ kind: 'quota_limited', project })
    if (request.cookieless === null) return evaluateRequest(project, request, nowMs, encode)

    const hashed = hashVisitor(project.project, request, request.cookieless, shown(), nowMs)
    return mapMaybePromise(hashed, known =>
      known.ok ? evaluateRequest(project, known.value, nowMs, encode) : countRefusal(known.error),
    )
  }

  /**
   * Evaluates selected flags and records each step in a trace. The project may differ from the one that is served.
   * Nothing is counted, and with `detailedAnalysis` in the request nothing is written.
   * @param selected as `selectFlags` returns it.
   * @throws PortError `full` when too many evaluations wait for their slice.
   */
  function traceEvaluation(
    project: CompiledProject,
    selected: readonly boolean[] | null,
    request: SubjectRequest,
    nowMs: number,
    trace: EvaluationTrace,
  ): MaybePromise<{ readonly evaluation: FlagEvaluation; readonly subject: EvaluationSubject }> {
    const evaluate = (subject: EvaluationSubject) => {
      const evaluation = new FlagEvaluation(project, selected, subject, trace)
      const ran = slices.run(isTimeUp => (evaluation.advance(isTimeUp) ? { evaluation, subject } : unfinished))
      if (ran === 'full') throw new PortError('evaluation', 'full')
      return ran
    }
    return mapMaybePromise(loadSubject(project, findNeedsOfSelectedFlags(project, selected), request, nowMs), evaluate)
  }

  function evaluateRequest<T>(
    project: CompiledProject,
    request: SubjectRequest,
    nowMs: number,
    encode: (evaluation: FlagEvaluation) => MaybeSteps<T>,
  ): MaybePromise<DecideResult<T>> {
    const selected = selectFlags(project, request.selection)
    const trace = request.detailedAnalysis ? new EvaluationTrace() : null
    const evaluate = (subject: EvaluationSubject) => {
      const ran = slices.run(createAnswerWork(new FlagEvaluation(project, selected, subject, trace), encode))
      if (ran === 'full') return countRefusal({ kind: 'busy' })
      options.countFlagRequest(project.project.id)
      return ran
    }
    return mapMaybePromise(loadSubject(project, findNeedsOfSelectedFlags(project, selected), request, nowMs), evaluate)
  }

  /** Evaluates all flags, then encodes the answer. */
  function createAnswerWork<T>(
    evaluation: FlagEvaluation,
    encode: (evaluation: FlagEvaluation) => MaybeSteps<T>,
  ): SlicedWork<DecideResult<T>> {
    let steps: Steps<T> | null = null
    return isTimeUp => {
      if (steps === null) {
        if (!evaluation.advance(isTimeUp)) return unfinished
        countEvaluation(evaluation)
        const encoded = encode(evaluation)
        if (!isSteps(encoded)) return { kind: 'evaluated', answer: encoded }
        steps = encoded
      }
      for (;;) {
        const step = steps.next()
        if (step.done === true) return { kind: 'evaluated', answer: step.value }
        if (isTimeUp()) return unfinished
      }
    }
  }

  function countEvaluation(evaluation: FlagEvaluation): void {
    if (!evaluation.hasErrors) {
      evaluated.inc()
      return
    }
    withErrors.inc()
    const unknownCounts = new Map<UnknownReason, number>()
    for (const outcome of evaluation.outcomes) {
      if (outcome?.kind === 'unknown') unknownCounts.set(outcome.reason, (unknownCounts.get(outcome.reason) ?? 0) + 1)
    }
    for (const [reason, count] of unknownCounts) metrics.flagsUnknown.inc({ reason }, count)
    if (evaluation.fault !== undefined) logger.error({ err: evaluation.fault }, 'flag evaluation failed')
  }

  function countRefusal(result: DecideResult<never>): DecideResult<never> {
    metrics.flagEvaluations.inc({ result: result.kind })
    return result
  }
}

function hasDistinctId(request: EvaluationRequest): request is SubjectRequest {
  return request.distinctId !== null
}
