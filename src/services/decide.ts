// Evaluating the flags of one request: find the project, load what its flags may read of the subject, evaluate.
// Nothing here waits when the stores answer at once; nothing waits long when they do not. How the request came in and how
// the answer looks is the wire's business.

import type { CompiledProject } from '#core/flags/compile-project.ts'
import { FlagEvaluation } from '#core/flags/evaluate-flags.ts'
import type { EvaluationRequest } from '#core/flags/evaluation-request.ts'
import type { EvaluationSubject } from '#core/flags/evaluation-subject.ts'
import { EvaluationTrace } from '#core/flags/evaluation-trace.ts'
import { needsOfSelected, selectFlags } from '#core/flags/select-flags.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Project } from '#core/project.ts'
import type { Geoip } from '#ports/geoip.ts'
import type { HashKeyOverrideReader, HashKeyOverrideWriter } from '#ports/hash-key-overrides.ts'
import type { SubjectStore } from '#ports/subject-store.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { guardSubjects } from './guarded-subjects.ts'
import { createLateLogins } from './late-logins.ts'
import { createHashKeyLoader } from './load-hash-keys.ts'
import { createSubjectLoader, type SubjectRequest } from './load-subject.ts'
import { type GuardOptions, guardStore } from './store-guard.ts'

export interface DecideServiceOptions {
  /** The compiled definitions of a project API key; null: no such project. */
  readonly findProject: (apiKey: string) => MaybePromise<CompiledProject | null>
  readonly subjects: SubjectStore
  readonly hashKeys: HashKeyOverrideReader & HashKeyOverrideWriter
  /** Null: there is no database of locations. */
  readonly geoip: Geoip | null
  /** Whether the project has used up its flag requests; those of a project with a quota of 0 always are. */
  readonly isOverFlagQuota?: (project: Project) => boolean
  /** Called once per request whose flags are evaluated. */
  readonly countFlagRequest: (projectId: number) => void
  readonly logger: Logger
  readonly metrics: Metrics
  /** For tests: the bound on look-ups and the clock of slices. */
  readonly guard?: Partial<
    Pick<GuardOptions, 'timeoutMs' | 'pendingMax' | 'failuresMax' | 'restMs' | 'monotonicNowMs' | 'startTimer'>
  >
}

export type DecideResult =
  | { readonly kind: 'unknown_key' }
  | { readonly kind: 'missing_distinct_id' }
  | { readonly kind: 'disabled' | 'quota_limited'; readonly project: CompiledProject }
  | { readonly kind: 'evaluated'; readonly evaluation: FlagEvaluation }

export interface DecideService {
  /** Never rejects for a store that is down: the flags that need it are unknown then. @param nowMs epoch ms. */
  decide(request: EvaluationRequest, nowMs: number): MaybePromise<DecideResult>
  /**
   * The same for some flags of a project that need not be the one that is served, told to a trace: nothing is counted,
   * and with `detailedAnalysis` in the request nothing is written.
   * @param selected as `selectFlags` gives it.
   */
  traceEvaluation(
    project: CompiledProject,
    selected: readonly boolean[] | null,
    request: SubjectRequest,
    nowMs: number,
    trace: EvaluationTrace,
  ): MaybePromise<{ readonly evaluation: FlagEvaluation; readonly subject: EvaluationSubject }>
}

/** A busy front has some hundred look-ups under way; these many wait for a store that is slow. */
const storeLimits = { timeoutMs: 250, pendingMax: 10_000, failuresMax: 5, restMs: 1_000, startTimer: startNodeTimer }

/** A state thread takes as many calls at once, and the private API's are among them. */
const waitingWritesMax = 500

/** An evaluation gives the event loop back after so long. */
const sliceMs = 10

export function createDecideService(options: DecideServiceOptions): DecideService {
  const { logger, metrics, hashKeys } = options
  const monotonicNowMs = options.guard?.monotonicNowMs ?? (() => performance.now())
  const limits = { ...storeLimits, ...options.guard, monotonicNowMs }
  const reads = guardStore({
    port: 'subject-store',
    task: 'reading stored persons and groups',
    logger,
    metrics,
    ...limits,
  })
  const writes = guardStore({
    port: 'hash-key-overrides',
    task: 'keeping the flags of people who log in',
    logger,
    metrics,
    ...limits,
    pendingMax: waitingWritesMax,
  })
  const loadSubject = createSubjectLoader({
    subjects: guardSubjects(options.subjects, reads),
    loadHashKeys: createHashKeyLoader({
      hashKeys,
      reads,
      writes,
      lateLogins: createLateLogins({ hashKeys, reads, writes, ...limits }),
      ...limits,
    }),
    geoip: options.geoip,
  })
  const evaluated = metrics.flagEvaluations.labels('evaluated')
  const withErrors = metrics.flagEvaluations.labels('evaluated_with_errors')
  const isOverFlagQuota = options.isOverFlagQuota ?? (project => project.quotas.featureFlagRequests === 0)

  return {
    decide(request, nowMs) {
      const project = options.findProject(request.apiKey)
      return project instanceof Promise
        ? project.then(found => decideFor(found, request, nowMs))
        : decideFor(project, request, nowMs)
    },
    traceEvaluation(project, selected, request, nowMs, trace) {
      const evaluate = (subject: EvaluationSubject) =>
        runInSlices(new FlagEvaluation(project, selected, subject, trace), evaluation => ({ evaluation, subject }))
      const subject = loadSubject(project, needsOfSelected(project, selected), request, nowMs)
      return subject instanceof Promise ? subject.then(evaluate) : evaluate(subject)
    },
  }

  function decideFor(
    project: CompiledProject | null,
    request: EvaluationRequest,
    nowMs: number,
  ): MaybePromise<DecideResult> {
    if (project === null) return refused({ kind: 'unknown_key' })
    if (request.disableFlags) return refused({ kind: 'disabled', project })
    if (!hasDistinctId(request)) return refused({ kind: 'missing_distinct_id' })
    if (isOverFlagQuota(project.project)) return refused({ kind: 'quota_limited', project })
    options.countFlagRequest(project.project.id)

    const selected = selectFlags(project, request.selection)
    const trace = request.detailedAnalysis ? new EvaluationTrace() : null
    const evaluate = (subject: EvaluationSubject) =>
      runInSlices(new FlagEvaluation(project, selected, subject, trace), finished)
    const needs = needsOfSelected(project, selected)
    const subject = loadSubject(project, needs, request, nowMs)
    return subject instanceof Promise ? subject.then(evaluate) : evaluate(subject)
  }

  function runInSlices<T>(evaluation: FlagEvaluation, finish: (evaluation: FlagEvaluation) => T): MaybePromise<T> {
    let sliceEndMs = 0
    const isTimeUp = () => {
      const nowMs = monotonicNowMs()
      if (sliceEndMs === 0) sliceEndMs = nowMs + sliceMs
      return nowMs >= sliceEndMs
    }
    if (evaluation.advance(isTimeUp)) return finish(evaluation)
    return new Promise((resolve, reject) => {
      const goOn = () => {
        try {
          sliceEndMs = 0
          if (evaluation.advance(isTimeUp)) resolve(finish(evaluation))
          else setImmediate(goOn)
        } catch (cause) {
          reject(cause)
        }
      }
      setImmediate(goOn)
    })
  }

  function finished(evaluation: FlagEvaluation): DecideResult {
    if (evaluation.hasErrors) {
      withErrors.inc()
      for (const outcome of evaluation.outcomes) {
        if (outcome?.kind === 'unknown') metrics.flagsUnknown.inc({ reason: outcome.reason })
      }
      if (evaluation.fault !== undefined) logger.error({ err: evaluation.fault }, 'evaluating a flag failed')
    } else evaluated.inc()
    return { kind: 'evaluated', evaluation }
  }

  function refused(result: DecideResult): DecideResult {
    metrics.flagEvaluations.inc({ result: result.kind })
    return result
  }
}

function startNodeTimer(callback: () => void, delayMs: number): { cancel(): void } {
  const timer = setTimeout(callback, delayMs).unref()
  return { cancel: () => clearTimeout(timer) }
}

function hasDistinctId(request: EvaluationRequest): request is SubjectRequest {
  return request.distinctId !== null
}
