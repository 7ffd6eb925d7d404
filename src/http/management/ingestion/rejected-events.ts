// Lists rejected events and passes them through capture again.

import type { Static } from 'typebox'
import type { NewActivity } from '#core/activity.ts'
import { lanes } from '#core/events/captured-event.ts'
import { isUuid } from '#core/events/uuid.ts'
import { diffJson } from '#core/json-diff.ts'
import { findIntendedName } from '#core/nearest-name.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import type { Project } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { RejectedCursor, RejectedFilter, RejectedView } from '#ports/events/reject-store.ts'
import { PortError } from '#ports/port-error.ts'
import type { ReplayReport } from '#services/capture/replay-rejects.ts'
import {
  encodeRejectedEvent,
  type RejectReplayReportJson,
  rejectedEventSchema,
  rejectFilterSchema,
  rejectReplayReportSchema,
  rejectReplaySchema,
} from '#wire/management/events.ts'
import { uncountedPageSchema } from '#wire/management/shapes.ts'
import { knownRejectReasons } from '#wire/rejects/reject-reasons.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import {
  type Answer,
  answer,
  answerFromEventStore,
  createInvalidInputError,
  createNotFoundError,
  refusal,
} from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes } from '../kit/endpoint.ts'
import { encodeTimeBoundParams, readTimeBounds, timeBoundParams } from '../kit/instants.ts'
import { answerCursorList, encodeObjects } from '../kit/list-answers.ts'
import { asFilter } from '../kit/list-filters.ts'
import { listSchemaPropertyNames } from '../kit/misspelt-names.ts'
import {
  booleanParam,
  cursorParam,
  enumParam,
  limitParam,
  searchParam,
  textParam,
  unsupportedOffsetParams,
  uuidParam,
} from '../kit/query-params.ts'

const tag = 'events'
const replayLimitMax = 1_000

const listQuery = {
  reason: textParam('Only rejects with this reason code.'),
  field: textParam('The invalid field, with or without the index of its item (batch.3.uuid).'),
  event: textParam('Event name, if it could be read.'),
  distinct_id: textParam('Distinct id, if it could be read.'),
  uuid: textParam('Event uuid, if it could be read.'),
  id: uuidParam('Id of the reject: `rejectId` of an ingestion warning.'),
  lane: asFilter(enumParam(lanes, 'Lane that the event would have used.')),
  search: searchParam('Substring of the body, case-insensitive.'),
  ...timeBoundParams('rejects received'),
  replayed: booleanParam('true: only replayed rejects. false: only rejects not replayed yet.'),
  limit: limitParam(),
  ...unsupportedOffsetParams(),
  cursor: cursorParam(parseCursor),
}

export function rejectedEventsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'GET /rejected_events',
      id: 'rejected_events_list',
      tag,
      summary:
        'List rejects (data received but not stored) with their reason, newest first. Following `next` neither skips nor repeats any.',
      scope: 'query:read',
      query: listQuery,
      success: { status: 200, schema: uncountedPageSchema(rejectedEventSchema) },
      handle: call => answerFromEventStore(() => listRejected(deps, call)),
    }),
    ...projectRoutes(deps, {
      route: 'GET /rejected_events/:rejectId',
      id: 'rejected_events_retrieve',
      tag,
      summary: 'Get one reject, as in the list. Its id is the `rejectId` of an ingestion warning.',
      scope: 'query:read',
      success: { status: 200, schema: rejectedEventSchema },
      handle: call => answerFromEventStore(() => findRejected(deps, call)),
    }),
    ...projectRoutes(deps, {
      route: 'POST /rejected_events/replay',
      id: 'rejected_events_replay',
      tag,
      summary:
        'Replay rejects: send up to 1,000 through capture again, by id, or those matching a filter, oldest first.',
      scope: 'query:write',
      body: rejectReplaySchema,
      wrongNames: Object.fromEntries(listSchemaPropertyNames(rejectFilterSchema).map(name => [name, `filter.${name}`])),
      success: { status: 200, schema: rejectReplayReportSchema },
      handle: call => replayRejects(deps, call),
    }),
  ]
}

async function listRejected(deps: ManagementDeps, call: ProjectCall<typeof listQuery, unknown>): Promise<Answer> {
  const { project, query, signal } = call
  const { cursor, limit, id, ...named } = query
  const filter = readFilter(deps, project, named)
  if (!filter.ok) return refusal(filter.error)
  const asked = { ...filter.value, projectId: project.id, ...(id !== undefined && { ids: [id] }) }
  return answerCursorList<RejectedView, RejectedCursor>(
    call,
    { cursor, limit, pinned: encodeTimeBoundParams(filter.value) },
    async (beyond, limit) => {
      const { rejected, next } = await deps.events.listRejected(
        { ...asked, limit, ...omitUndefined({ beyond }) },
        signal,
      )
      return ok({ rows: rejected, next })
    },
    { rows: encodeObjects(encodeRejectedEvent), cursor: encodeCursor, head: { previous: null } },
  )
}

async function findRejected(
  deps: ManagementDeps,
  { project, params, signal }: ProjectCall<Record<string, never>, unknown>,
): Promise<Answer> {
  const rejectId = params.rejectId!
  if (!isUuid(rejectId)) return refusal(noSuchReject)
  const query = { projectId: project.id, ids: [rejectId.toLowerCase()], limit: 1 }
  const { rejected } = await deps.events.listRejected(query, signal)
  const [found] = rejected
  return found === undefined ? refusal(noSuchReject) : answer(200, encodeRejectedEvent(found))
}

const noSuchReject = createNotFoundError(
  'The project has no reject with this id. Rejects are deleted after PENNON_REJECT_RETENTION_DAYS.',
)

async function replayRejects(
  deps: ManagementDeps,
  { change, project, body, signal }: ProjectCall<Record<string, never>, Static<typeof rejectReplaySchema>>,
): Promise<Answer> {
  const { ids, filter, limit = replayLimitMax, cursor, dry_run: isDryRun = false, partial: isPartial = false } = body
  if ((ids === undefined) === (filter === undefined))
    return refusal(
      createInvalidInputError(
        'ids',
        'Send either ids or a filter; {"filter": {}} matches every reject not replayed yet.',
      ),
    )
  if (ids !== undefined && (cursor !== undefined || body.limit !== undefined))
    return refusal(createInvalidInputError(cursor === undefined ? 'limit' : 'cursor', 'Allowed only with a filter.'))
  const beyond = listQuery.cursor.read(cursor, 'cursor')
  if (!beyond.ok) return refusal(beyond.error)
  const read = ids === undefined ? readFilter(deps, project, { replayed: false, ...filter }, 'filter.') : ok({ ids })
  if (!read.ok) return refusal(read.error)
  const replayed = await answerFromEventStore(() =>
    deps.rejects
      .replay(
        project,
        { ...read.value, ...omitUndefined({ beyond: beyond.value }) },
        { isDryRun, isPartial, limit: ids?.length ?? limit },
        signal,
      )
      .catch(error => {
        if (error instanceof PortError && error.port === 'event-log') return refusal(logUnavailable)
        throw error
      }),
  )
  if ('status' in replayed) return replayed
  const shown = encodeReport(replayed, isDryRun, ids)
  if (!isDryRun && shown.counts.stored > 0) await deps.management.recordActivity(toActivity(project, shown), change)
  return answer(200, shown)
}

/** Leaves out the project's name, which a key that may replay rejects may not be able to read. */
function toActivity({ id }: Project, { counts }: RejectReplayReportJson): NewActivity {
  return {
    ...{ kind: 'rejected_event', projectId: id, itemId: String(id), itemName: '', activity: 'replayed' },
    changes: diffJson({}, { ...counts }),
  }
}

const logUnavailable = wireError(503, 'transient_error', 'The log temporarily accepts no events: repeat the request.')

function encodeReport(
  { results, next, remaining }: ReplayReport,
  isDryRun: boolean,
  ids: readonly string[] | undefined,
): RejectReplayReportJson {
  const found = new Set(results.map(({ rejectId }) => rejectId))
  const missing = [...new Set(ids ?? [])].filter(id => !found.has(id))
  const shown: RejectReplayReportJson['results'] = [
    ...results.map(({ rejectId, result, reason, field, eventCount, refusedCount }) => {
      return { id: rejectId, result, reason, field, events: eventCount, events_refused: refusedCount }
    }),
    ...missing.map(id => {
      return { id, result: 'cannot' as const, reason: 'not_found', field: null, events: 0, events_refused: 0 }
    }),
  ]
  const count = (wanted: string) => shown.filter(({ result }) => result === wanted).length
  const events = shown.reduce((sum, { events }) => sum + events, 0)
  return {
    dry_run: isDryRun,
    counts: { stored: count('stored'), refused: count('refused'), cannot: count('cannot'), events },
    results: shown,
    remaining,
    next: next === null ? null : encodeCursor(next),
  }
}

type NamedFilter = {
  readonly [K in keyof Static<typeof rejectFilterSchema>]?: Static<typeof rejectFilterSchema>[K] | undefined
}

function readFilter(
  deps: ManagementDeps,
  project: Project,
  named: NamedFilter,
  prefix = '',
): Result<Omit<RejectedFilter, 'projectId'>, WireError> {
  const zone = { timezone: project.timezone, nowMs: deps.clock.nowMs() }
  const bounds = readTimeBounds(named, zone, prefix)
  if (!bounds.ok) return bounds
  const { reason, field, event, distinct_id: distinctId, lane, search, replayed } = named
  const uuid = named.uuid?.toLowerCase()
  for (const [name, value] of Object.entries(named))
    if (typeof value === 'string' && value.includes('\0'))
      return err(createInvalidInputError(`${prefix}${name}`, 'Must not contain NUL characters.'))
  const meant = reason === undefined ? null : suggestReason(reason)
  if (meant !== null)
    return err(createInvalidInputError(`${prefix}reason`, `Unknown reason ${reason}. Did you mean ${meant}?`))
  return ok(omitUndefined({ reason, field, event, distinctId, uuid, search, replayed, ...bounds.value, lane }))
}

/** The known reason that a misspelt reason resembles. Null if there is none: another version may have stored the reason. */
function suggestReason(reason: string): string | null {
  return knownRejectReasons.includes(reason) ? null : findIntendedName(reason, knownRejectReasons)
}

function parseCursor(text: string): RejectedCursor | null {
  const match = /^(-?\d{1,13})_([0-9a-f-]{36})$/.exec(text)
  return match === null ? null : { receivedAtMs: Number(match[1]), rejectId: match[2]! }
}

function encodeCursor({ receivedAtMs, rejectId }: RejectedCursor): string {
  return `${receivedAtMs}_${rejectId}`
}
