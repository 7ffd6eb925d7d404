// Counts who is affected: the persons or groups that match a condition, and the persons or groups that a draft of a
// flag reaches, compared with the served version. Reach is a stream of JSON lines, so that a screen can show partial
// counts.

import type { OutgoingHttpHeaders } from 'node:http'
import { listReferencesOfFlag } from '#core/flags/definitions/definition-links.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import { validateFlag } from '#core/flags/definitions/validate-flag.ts'
import { findReferenceIssuesOf } from '#core/flags/definitions/validate-references.ts'
import { createConditionProbe } from '#core/flags/evaluation/flag-probe.ts'
import { type ReachCounts, ReachTally } from '#core/flags/evaluation/reach-tally.ts'
import { getOwnValue, type JsonObject, readJsonNumber } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import { createFlagDraft } from '#services/manage/draft-flag.ts'
import {
  countAffectedSubjects,
  countMatchingSubjects,
  findProbePopulation,
  prepareReachQuery,
  type ReachQuery,
  type ReachRefusal,
} from '#services/scans/count-reach.ts'
import { countSubjects, type Population } from '#services/scans/subject-scans.ts'
import { decodeFlag, flagSchema } from '#wire/management/flags/flags.ts'
import {
  blastRadiusBodySchema,
  blastRadiusSchema,
  encodeAffectedCountError,
  encodeAffectedCounts,
  encodeBlastRadius,
  type ReachTarget,
  reachBodySchema,
  reachLineSchema,
} from '#wire/management/flags/reach.ts'
import { postHogConditionFields, postHogFlagFields } from '#wire/management/posthog-fields.ts'
import type { WireError } from '#wire/wire-error.ts'
import {
  answer,
  answerFromScan,
  createInvalidInputError,
  createNotFoundError,
  createPermissionDeniedError,
  createRequiredError,
  refusal,
  stateUnavailable,
} from '../kit/answers.ts'
import { type Caller, createMissingScopeError, hasScope } from '../kit/authenticate.ts'
import { refuseInvalidDefinition, refuseSkippedValidation } from '../kit/definition-refusals.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes, type StreamAnswer } from '../kit/endpoint.ts'
import { keyTaken } from '../kit/flag-endpoint.ts'
import { findUnacceptedField, listSchemaPropertyNames } from '../kit/misspelt-names.ts'
import { booleanParam, type QuerySpec } from '../kit/query-params.ts'
import { type AccessEndReason, accessEndDetails, findAccessLossReason, streamHeaders } from '../kit/stream-answers.ts'
import { readLegacyPercentage, wrongFlagNames } from './feature-flags.ts'

/** Needs `person:read`, since counts for chosen conditions could reveal properties of single persons. */
const scope = 'feature_flag:read person:read'
const contentType = 'application/x-ndjson'
const sentIdentityParam = booleanParam(
  'Use the ids and seeds of rules as sent, like a write with this option. Requires a key with all scopes.',
)
/** The interval between lines that report progress. */
const lineMs = 250

export function flagReachRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'POST /feature_flags/user_blast_radius',
      id: 'feature_flags_user_blast_radius',
      scope,
      summary: 'Count the persons, or groups of a type, that match a condition, by their stored properties.',
      body: blastRadiusBodySchema,
      success: { status: 200, schema: blastRadiusSchema },
      handle: async call => {
        const { caller, project, body, signal } = call
        const { condition } = body
        const filters = conditionToFilters(condition, body.group_type_index ?? null)
        const issues = validateFlag({ filters }).map(pointIssueAtCondition)
        if (issues.length > 0) return refuseInvalidDefinition(issues)
        const untaken = findUnacceptedField(condition, takenOfCondition)
        if (untaken !== null) return refusal({ ...untaken, attr: `condition.${untaken.attr}` })
        const ownIndex = readJsonNumber(getOwnValue(condition, 'aggregation_group_type_index') ?? null) ?? null
        const typeIndex = body.group_type_index ?? ownIndex
        if (ownIndex !== null && ownIndex !== typeIndex) return refusal(otherType)
        const properties = getOwnValue(condition, 'properties') ?? []
        const population: Population = typeIndex === null ? { kind: 'persons' } : { kind: 'groups', typeIndex }
        const prepareQuestion = () => {
          const served = deps.servedProject(project.id)
          if (served === null) return null
          const { definitions } = served
          const probe = createConditionProbe(definitions, properties, typeIndex)
          return { definitions, probe, question: { population, before: null, after: probe } }
        }
        const links = await deps.management.findLinks(project.id)
        await deps.definitionsReady(links.revision)
        const asked = prepareQuestion()
        if (asked === null) return refusal(stateUnavailable)
        const lacked = findMissingScope(caller, asked.question)
        if (lacked !== null) return refusal(lacked)
        const references = listReferencesOfFlag(filters)
        const broken = findReferenceIssuesOf({ kind: 'flag', id: null, name: 'condition' }, references, links).map(
          pointIssueAtCondition,
        )
        if (broken.length > 0) return refuseInvalidDefinition(broken)
        return answerFromScan(() =>
          deps.scans.counts.run(project.id, signal, async () => {
            // Builds the question again, since definitions and rights may have changed while the count was queued.
            const current = prepareQuestion()
            if (current === null) return refusal(stateUnavailable)
            const { definitions, probe, question } = current
            const ended = await findLostAccess(call, question)
            if (ended !== null) return refusal(createPermissionDeniedError(accessEndDetails[ended]))
            if (Array.isArray(properties) && properties.length === 0) {
              const total = await countSubjects(deps, project.id, population)
              return answer(200, encodeBlastRadius(total, total))
            }
            const fits = findProbePopulation(probe)
            if (!fits.ok) return refusal(refusals[fits.error]('condition'))
            const watch = { nowMs: deps.clock.nowMs(), signal }
            const counted = await countMatchingSubjects(deps, definitions, { probe, population }, watch)
            if (!counted.ok)
              return refusal(
                createInvalidInputError('condition', `The condition cannot be evaluated: ${counted.error}.`),
              )
            return answer(200, encodeBlastRadius(counted.value.holding, counted.value.all))
          }),
        )
      },
    }),
    ...projectRoutes(deps, {
      route: 'POST /feature_flags/reach',
      id: 'feature_flags_reach',
      scope,
      summary: 'Count whom a draft of a flag affects: who gains it, who loses it, who changes variant. JSON lines.',
      group: 'exports',
      query: { skip_validation: sentIdentityParam },
      body: reachBodySchema,
      success: { status: 200, schema: reachLineSchema, contentType },
      handle: async call => {
        const { caller, project, query, body } = call
        const keepsIdentity = query.skip_validation === true
        const refused = refuseSkippedValidation(keepsIdentity, caller)
        if (refused !== null) return refused
        const { id, ...definition } = body.definition
        const untaken = findUnacceptedField(body.definition as JsonObject, takenFields)
        if (untaken !== null) return refusal(pointErrorAtDefinition(untaken))
        const stored = id === undefined ? null : await deps.management.findFlag(project.id, String(id))
        // `findFlag` also accepts keys, and the digits of an id may be another flag's key.
        if (id !== undefined && stored?.id !== id) return refusal(noSuchFlag)
        const key = definition.key ?? stored?.key
        if (key === undefined) return refusal(createRequiredError('definition.key'))
        const percentage = readLegacyPercentage(definition, definition.filters ?? stored?.filters ?? {})
        if (!percentage.ok) return refusal(pointErrorAtDefinition(percentage.error))
        const fields = { ...decodeFlag(definition), key }
        const draft = await createFlagDraft(deps, project.id, stored, fields, { ...percentage.value, keepsIdentity })
        if (!draft.ok)
          return draft.error.kind === 'key_taken'
            ? refusal(pointErrorAtDefinition(keyTaken))
            : refuseInvalidDefinition(draft.error.issues.map(pointIssueAtDefinition))
        const { flag, revision } = draft.value
        await deps.definitionsReady(revision)
        const prepareQuestion = async (): Promise<Result<AskedReach, WireError>> => {
          const served = deps.servedProject(project.id)
          if (served === null) return err(stateUnavailable)
          const { definitions } = served
          const base = await findBase(definitions, stored, body.base ?? null)
          if (!base.ok) return base
          const question = prepareReachQuery(definitions, base.value, flag)
          if (!question.ok) return err(refusals[question.error]('definition.filters'))
          return ok({ definitions, question: question.value, baseVersion: base.value?.version ?? null })
        }
        const asked = await prepareQuestion()
        if (!asked.ok) return refusal(asked.error)
        const lacked = findMissingScope(caller, asked.value.question)
        if (lacked !== null) return refusal(lacked)
        return answerFromScan(() => beginCount(call, asked.value, prepareQuestion))
      },
    }),
  ]

  /** Finds the stored flag that a draft would replace; null if it does not exist yet. */
  async function findBase(
    { flags }: ProjectDefinitions,
    stored: Flag | null,
    version: number | null,
  ): Promise<Result<Flag | null, WireError>> {
    if (stored === null)
      return version === null
        ? ok(null)
        : err(createInvalidInputError('base', 'A new flag has no versions to compare with.'))
    if (version === null) return ok(flags.find(({ id }) => id === stored.id) ?? stored)
    const found = await deps.management.findFlagVersion(stored.projectId, stored.id, version)
    return found === null ? err(createInvalidInputError('base', `The flag has no version ${version}.`)) : ok(found.flag)
  }

  /** Resolves when the count runs or is queued. Earlier failures are ordinary answers. */
  function beginCount(
    call: ProjectCall<QuerySpec, unknown>,
    asked: AskedReach,
    ask: () => Promise<Result<AskedReach, WireError>>,
  ): Promise<StreamAnswer> {
    const begun = Promise.withResolvers<StreamAnswer>()
    const opened = Promise.withResolvers<Response>()
    const stream = (reply: Reply) => {
      // From here on we write the response ourselves: Fastify would wait for a body.
      reply.hijack()
      opened.resolve(beginLineResponse(reply, asked))
    }
    deps.scans.counts
      .run(
        call.project.id,
        call.signal,
        async () => streamCounts(call, await opened.promise, ask),
        () => begun.resolve({ stream }),
      )
      .catch(async (error: unknown) => {
        begun.reject(error) // no effect once it runs or waits
        endWithError(call, await opened.promise, error)
      })
    return begun.promise
  }

  /** Reads definitions and rights again before it counts, since they may have changed while the count was queued. */
  async function streamCounts(
    call: ProjectCall<QuerySpec, unknown>,
    response: Response,
    ask: () => Promise<Result<AskedReach, WireError>>,
  ): Promise<void> {
    const { project, signal } = call
    const asked = await ask()
    if (!asked.ok) throw new CountEndedError(asked.error.code, asked.error.detail)
    const { definitions, question, baseVersion } = asked.value
    await requireAccess(call, question)
    const { population } = question
    const reach: ReachTarget = { population, baseVersion, of: await countSubjects(deps, project.id, population) }
    let nextLineMs = deps.monotonicNowMs()
    const onPage = async (countsNow: () => ReachCounts) => {
      if (deps.monotonicNowMs() < nextLineMs) return
      nextLineMs = deps.monotonicNowMs() + lineMs
      await requireAccess(call, question)
      // Slow readers get fewer lines, but always the last line.
      if (!response.writableNeedDrain) response.write(encodeAffectedCounts(reach, countsNow(), false))
    }
    const counts = await countAffectedSubjects(deps, definitions, question, {
      nowMs: deps.clock.nowMs(),
      signal,
      onPage,
    })
    response.end(encodeAffectedCounts(reach, counts, true))
  }

  function endWithError(
    { request, project, signal }: ProjectCall<QuerySpec, unknown>,
    response: Response,
    error: unknown,
  ): void {
    if (signal.aborted) return
    const [code, detail] = describeFailure(error)
    if (!(error instanceof CountEndedError))
      deps.logger.warn({ err: error, requestId: request.id, projectId: project.id }, 'flag reach count aborted')
    response.end(encodeAffectedCountError(code, detail))
  }

  async function requireAccess(call: ProjectCall<QuerySpec, unknown>, question: ReachQuery): Promise<void> {
    const ended = await findLostAccess(call, question)
    if (ended !== null) throw new CountEndedError('access_ended', accessEndDetails[ended])
  }

  function findLostAccess(
    call: ProjectCall<QuerySpec, unknown>,
    question: ReachQuery,
  ): Promise<AccessEndReason | null> {
    return findAccessLossReason(deps, call, scope, key => findMissingScope(key, question) === null)
  }
}

/** The question to count, with the definitions that are served now. */
interface AskedReach {
  readonly definitions: ProjectDefinitions
  readonly question: ReachQuery
  readonly baseVersion: number | null
}

type Reply = Parameters<StreamAnswer['stream']>[0]
type Response = Reply['raw']

/** Writes the headers and a line of zero counts, so that a waiting caller has an answer. */
function beginLineResponse(reply: Reply, { question, baseVersion }: AskedReach): Response {
  const response = reply.raw
  response.writeHead(200, {
    ...(reply.getHeaders() as OutgoingHttpHeaders),
    'content-type': contentType,
    ...streamHeaders,
  })
  const nothing = new ReachTally(question.after?.conditionCount() ?? 0).counts()
  response.write(encodeAffectedCounts({ population: question.population, baseVersion, of: 0 }, nothing, false))
  return response
}

class CountEndedError extends Error {
  readonly code: string

  constructor(code: string, detail: string) {
    super(detail)
    this.code = code
  }
}

function describeFailure(error: unknown): [code: string, detail: string] {
  if (error instanceof CountEndedError) return [error.code, error.message]
  if (error instanceof PortError)
    return ['state_unavailable', 'The state store failed during the count. Repeat the request.']
  return ['internal_error', 'The count failed before it was complete. Repeat the request.']
}

const takenOfCondition = {
  known: ['properties', 'rollout_percentage', 'variant', 'aggregation_group_type_index'],
  answered: new Set<string>(),
  ofPostHog: postHogConditionFields,
  wrong: {},
}

const takenFields = {
  known: listSchemaPropertyNames(reachBodySchema.properties.definition),
  answered: new Set(listSchemaPropertyNames(flagSchema)),
  ofPostHog: postHogFlagFields,
  wrong: wrongFlagNames,
}

/**
 * Returns the error for the first scope that a count needs and the key does not hold; null when the key holds all of
 * them.
 */
function findMissingScope(caller: Pick<Caller, 'scopes'>, { population, before, after }: ReachQuery): WireError | null {
  if (population.kind === 'groups' && !hasScope(caller, 'group:read'))
    return createMissingScopeError('group:read', 'The condition counts groups.')
  const readsCohorts = before?.readsCohorts === true || after?.readsCohorts === true
  return readsCohorts && !hasScope(caller, 'cohort:read')
    ? createMissingScopeError(
        'cohort:read',
        'A condition refers to a cohort, directly or through a flag it depends on.',
      )
    : null
}

const otherType = createInvalidInputError(
  'group_type_index',
  'The condition has another aggregation_group_type_index: omit one of them.',
)
const noSuchFlag = createNotFoundError('The project has no flag with the id of this definition.')

const refusals: Readonly<Record<ReachRefusal, (attr: string) => WireError>> = {
  unreadable: attr =>
    createInvalidInputError(attr, 'The stored filters of the flag are invalid: save the flag with new filters.'),
  by_device: attr =>
    createInvalidInputError(
      attr,
      'This flag, or one it depends on, hashes the device id of the request, and persons have no stored device id.',
    ),
  mixed: attr =>
    createInvalidInputError(
      attr,
      'The flag targets both persons and groups, or several group types, directly or through its cohorts and flags: these cannot be counted together.',
    ),
  other_population: attr =>
    createInvalidInputError(
      attr,
      'The version to compare with targets a different kind of subject (persons, or groups of a type) than the draft.',
    ),
}

/** Makes the condition the only condition set of a flag. */
function conditionToFilters(condition: JsonObject, typeIndex: number | null): JsonObject {
  return { groups: [condition], aggregation_group_type_index: typeIndex }
}

function pointIssueAtCondition(issue: FlagIssue): FlagIssue {
  return { ...issue, path: issue.path.replace(/^filters\.groups\.0/, 'condition') }
}

function pointIssueAtDefinition(issue: FlagIssue): FlagIssue {
  return { ...issue, path: `definition.${issue.path}` }
}

function pointErrorAtDefinition(error: WireError): WireError {
  return { ...error, attr: error.attr === null ? 'definition' : `definition.${error.attr}` }
}
