// Who is affected: for how many persons or groups a condition holds, and whom a draft of a flag reaches beside the
// version that is served. Reach is a stream of JSON lines, so that a screen can show what is counted so far.

import type { OutgoingHttpHeaders } from 'node:http'
import { referencesOfFlag } from '#core/flags/definitions/definition-links.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import { validateFlag } from '#core/flags/definitions/validate-flag.ts'
import { referenceIssues } from '#core/flags/definitions/validate-references.ts'
import { conditionProbe } from '#core/flags/evaluation/flag-probe.ts'
import type { ReachCounts } from '#core/flags/evaluation/reach-tally.ts'
import { type JsonObject, numberOf, ownValue } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import type { FlagStore } from '#ports/state/flag-store.ts'
import type { PersonalKey } from '#ports/state/personal-key-store.ts'
import { type DraftFlagDeps, draftFlag } from '#services/manage/draft-flag.ts'
import {
  type CountReachDeps,
  countHolding,
  countReach,
  type ReachQuestion,
  type ReachRefusal,
  reachQuestion,
} from '#services/scans/count-reach.ts'
import { countSubjects, type Population } from '#services/scans/subject-scans.ts'
import { decodeFlag, flagSchema } from '#wire/management/flags/flags.ts'
import {
  blastRadiusBodySchema,
  blastRadiusSchema,
  encodeBlastRadius,
  encodeReach,
  encodeReachError,
  type ReachOf,
  reachBodySchema,
  reachLineSchema,
} from '#wire/management/flags/reach.ts'
import { postHogFlagFields } from '#wire/management/posthog-fields.ts'
import type { WireError } from '#wire/wire-error.ts'
import { answer, invalidInput, missing, refusal, required, stateUnavailable } from '../kit/answers.ts'
import { bearerSecret, holdsScope, mayUseProject, missingScope } from '../kit/authenticate.ts'
import { refuseInvalid } from '../kit/definition-refusals.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import {
  type EndpointDeps,
  type ManagementRoute,
  type ProjectCall,
  projectRoutes,
  type StreamAnswer,
} from '../kit/endpoint.ts'
import { findUntaken, propertyNames } from '../kit/misspelt.ts'
import type { QuerySpec } from '../kit/query-params.ts'
import { answerScan } from '../kit/scan-turns.ts'
import { legacyPercentage, wrongFlagNames } from './feature-flags.ts'

type FlagReachDeps = EndpointDeps &
  CountReachDeps &
  DraftFlagDeps &
  Pick<ManagementDeps, 'servedProject' | 'keyCheck' | 'logger' | 'monotonicNowMs'> & {
    readonly management: Pick<FlagStore, 'findFlag' | 'findFlagVersion'>
  }

const tag = 'feature_flags'
/** Counts of any condition would tell what the properties of single persons are. */
const scope = 'feature_flag:read person:read'
const contentType = 'application/x-ndjson'
/** How often a line says how far a count is. */
const lineMs = 250

export function flagReachRoutes(deps: FlagReachDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      ...{
        method: 'POST',
        path: '/feature_flags/user_blast_radius',
        id: 'feature_flags_user_blast_radius',
        tag,
        scope,
      },
      summary: 'For how many persons, or groups of a type, a condition holds, by what is stored of them.',
      body: blastRadiusBodySchema,
      success: { status: 200, schema: blastRadiusSchema },
      handle: async ({ caller, project, body, signal }) => {
        const served = deps.servedProject(project.id)
        if (served === null) return refusal(stateUnavailable)
        const { condition } = body
        const filters = filtersOf(condition, body.group_type_index ?? null)
        const issues = validateFlag({ filters }).map(asOfCondition)
        if (issues.length > 0) return refuseInvalid(issues)
        const ownIndex = numberOf(ownValue(condition, 'aggregation_group_type_index') ?? null) ?? null
        const typeIndex = body.group_type_index ?? ownIndex
        if (ownIndex !== null && ownIndex !== typeIndex) return refusal(otherType)
        const properties = ownValue(condition, 'properties') ?? []
        const probe = conditionProbe(served.definitions, properties, typeIndex)
        const population: Population = typeIndex === null ? { kind: 'persons' } : { kind: 'groups', typeIndex }
        const lacked = lackedScope(caller, { population, before: null, after: probe })
        if (lacked !== null) return refusal(lacked)
        const references = referencesOfFlag(filters)
        const links = await deps.management.findLinks(project.id)
        const broken = referenceIssues({ kind: 'flag', id: null, name: 'condition' }, references, links).map(
          asOfCondition,
        )
        if (broken.length > 0) return refuseInvalid(broken)
        return answerScan(() =>
          deps.scans.counts.run(project.id, signal, async () => {
            if (Array.isArray(properties) && properties.length === 0) {
              const total = await countSubjects(deps, project.id, population)
              return answer(200, encodeBlastRadius(total, total))
            }
            if (typeIndex !== null && !probe.isForGroupsAlone(typeIndex)) return refusal(refusals.mixed('condition'))
            const watch = { nowMs: deps.clock.nowMs(), signal }
            const counted = await countHolding(deps, served.definitions, { probe, population }, watch)
            if (!counted.ok)
              return refusal(invalidInput('condition', `The condition cannot be evaluated: ${counted.error}.`))
            return answer(200, encodeBlastRadius(counted.value.holding, counted.value.all))
          }),
        )
      },
    }),
    ...projectRoutes(deps, {
      ...{ method: 'POST', path: '/feature_flags/reach', id: 'feature_flags_reach', tag, scope },
      summary: 'Whom a draft of a flag reaches: who gains it, who loses it, who moves between variants. JSON lines.',
      group: 'exports',
      body: reachBodySchema,
      success: { status: 200, schema: reachLineSchema, contentType },
      handle: async call => {
        const { caller, project, body } = call
        const served = deps.servedProject(project.id)
        if (served === null) return refusal(stateUnavailable)
        const { id, ...definition } = body.definition
        const untaken = findUntaken(body.definition as JsonObject, takenFields)
        if (untaken !== null) return refusal(ofDefinition(untaken))
        const stored = id === undefined ? null : await deps.management.findFlag(project.id, String(id))
        // The digits of an id may be the key of another flag.
        if (id !== undefined && stored?.id !== id) return refusal(noSuchFlag)
        const key = definition.key ?? stored?.key
        if (key === undefined) return refusal(required('definition.key'))
        const percentage = legacyPercentage(definition, definition.filters ?? stored?.filters ?? {})
        if (!percentage.ok) return refusal(ofDefinition(percentage.error))
        const fields = { ...decodeFlag(definition), key }
        const draft = await draftFlag(deps, project.id, stored, fields, percentage.value)
        if (!draft.ok) return refuseInvalid(draft.error.issues.map(asOfDefinition))
        const base = await findBase(served.definitions, stored, body.base ?? null)
        if (!base.ok) return refusal(base.error)
        const question = reachQuestion(served.definitions, base.value, draft.value)
        if (!question.ok) return refusal(refusals[question.error]('definition.filters'))
        const lacked = lackedScope(caller, question.value)
        if (lacked !== null) return refusal(lacked)
        const baseVersion = base.value?.version ?? null
        return answerScan(() => begin(call, served.definitions, question.value, baseVersion))
      },
    }),
  ]

  /** Null for a flag that is not there yet. */
  async function findBase(
    { flags }: ProjectDefinitions,
    stored: Flag | null,
    version: number | null,
  ): Promise<Result<Flag | null, WireError>> {
    if (stored === null) return version === null ? ok(null) : err(invalidInput('base', 'A new flag has no versions.'))
    if (version === null) return ok(flags.find(({ id }) => id === stored.id) ?? stored)
    const found = await deps.management.findFlagVersion(stored.projectId, stored.id, version)
    return found === null ? err(invalidInput('base', `The flag has no version ${version}.`)) : ok(found.flag)
  }

  /** Resolves when the project's turn has come. What fails before is an ordinary answer. */
  function begin(
    call: ProjectCall<QuerySpec, unknown>,
    definitions: ProjectDefinitions,
    question: ReachQuestion,
    baseVersion: number | null,
  ): Promise<StreamAnswer> {
    const { project, signal } = call
    const begun = Promise.withResolvers<StreamAnswer>()
    deps.scans.counts
      .run(project.id, signal, async () => {
        const of = await countSubjects(deps, project.id, question.population)
        // In an object: a reply by itself is a promise, of the end of the response.
        const { reply } = await new Promise<{ reply: Reply }>(resolve => {
          const stream = (own: Reply) => {
            // From here on we write the response ourselves: Fastify would wait for a body.
            own.hijack()
            resolve({ reply: own })
          }
          begun.resolve({ stream })
        })
        const reach: ReachOf = { population: question.population, baseVersion, of }
        await write(call, reply, { reach, question }, onPage =>
          countReach(deps, definitions, question, { nowMs: deps.clock.nowMs(), signal, onPage }),
        )
      })
      .catch(begun.reject)
    return begun.promise
  }

  async function write(
    call: ProjectCall<QuerySpec, unknown>,
    reply: Reply,
    { reach, question }: { readonly reach: ReachOf; readonly question: ReachQuestion },
    count: (onPage: (counts: () => ReachCounts) => Promise<void>) => Promise<ReachCounts>,
  ): Promise<void> {
    const { request, project, signal } = call
    const response = reply.raw
    response.writeHead(200, {
      ...(reply.getHeaders() as OutgoingHttpHeaders),
      'content-type': contentType,
      'cache-control': 'no-store, no-transform',
      // Otherwise nginx would hold the lines until its buffer is full.
      'x-accel-buffering': 'no',
    })
    let nextLineMs = deps.monotonicNowMs()
    try {
      const counts = await count(async countsNow => {
        if (deps.monotonicNowMs() < nextLineMs) return
        nextLineMs = deps.monotonicNowMs() + lineMs
        await requireAccess(call, question)
        // Whoever reads slowly gets fewer lines, and the last one.
        if (!response.writableNeedDrain) response.write(encodeReach(reach, countsNow(), false))
      })
      response.end(encodeReach(reach, counts, true))
    } catch (error) {
      if (signal.aborted) return
      const [code, detail] = endOf(error)
      if (!(error instanceof AccessEndedError))
        deps.logger.warn({ err: error, requestId: request.id, projectId: project.id }, 'a count of reach broke off')
      response.end(encodeReachError(code, detail))
    }
  }

  async function requireAccess(
    { request, caller, project }: ProjectCall<QuerySpec, unknown>,
    question: ReachQuestion,
  ): Promise<void> {
    const key = await deps.keyCheck.find(bearerSecret(request)!)
    const isAllowed =
      key !== null &&
      key.id === caller.id &&
      scope.split(' ').every(one => holdsScope(key, one)) &&
      lackedScope(key, question) === null &&
      mayUseProject(key, project.id)
    if (!isAllowed) throw new AccessEndedError('The key may not read this any more.')
    if (deps.servedProject(project.id) === null) throw new AccessEndedError('The project was deleted.')
  }
}

type Reply = Parameters<StreamAnswer['stream']>[0]

class AccessEndedError extends Error {}

function endOf(error: unknown): [code: string, detail: string] {
  if (error instanceof AccessEndedError) return ['access_ended', error.message]
  if (error instanceof PortError) return ['state_unavailable', 'The state failed on the way. Ask again.']
  return ['internal_error', 'The count failed on the way. Ask again.']
}

const takenFields = {
  known: propertyNames(reachBodySchema.properties.definition),
  answered: new Set(propertyNames(flagSchema)),
  ofPostHog: postHogFlagFields,
  wrong: wrongFlagNames,
}

/** The error for the first scope beside the route's own that a count needs; null when the key holds them all. */
function lackedScope(caller: PersonalKey, { population, before, after }: ReachQuestion): WireError | null {
  if (population.kind === 'groups' && !holdsScope(caller, 'group:read'))
    return missingScope('group:read', 'It counts groups.')
  const readsCohorts = before?.readsCohorts === true || after?.readsCohorts === true
  return readsCohorts && !holdsScope(caller, 'cohort:read')
    ? missingScope('cohort:read', 'A condition names a cohort, here or in a flag that it tests.')
    : null
}

const otherType = invalidInput(
  'group_type_index',
  'The condition has another aggregation_group_type_index: leave one of them out.',
)
const noSuchFlag = missing('There is no flag with the id of this definition here.')

const refusals: Readonly<Record<ReachRefusal, (attr: string) => WireError>> = {
  unreadable: attr => invalidInput(attr, 'The flag cannot be read: write its filters anew.'),
  by_device: attr =>
    invalidInput(attr, 'The flag goes by the device id of a request, and no device ids are stored of persons.'),
  mixed: attr =>
    invalidInput(
      attr,
      'Its conditions are for persons and for groups, or for several types: they cannot be counted together.',
    ),
  other_population: attr =>
    invalidInput(attr, 'The version to compare with is for others (persons, or groups of a type) than the draft.'),
}

/** The condition as the one set of a flag. */
function filtersOf(condition: JsonObject, typeIndex: number | null): JsonObject {
  return {
    groups: [{ ...condition, rollout_percentage: 100, variant: null }],
    aggregation_group_type_index: typeIndex,
  }
}

function asOfCondition(issue: FlagIssue): FlagIssue {
  return { ...issue, path: issue.path.replace(/^filters\.groups\.0/, 'condition') }
}

function asOfDefinition(issue: FlagIssue): FlagIssue {
  return { ...issue, path: `definition.${issue.path}` }
}

function ofDefinition(error: WireError): WireError {
  return { ...error, attr: error.attr === null ? 'definition' : `definition.${error.attr}` }
}
