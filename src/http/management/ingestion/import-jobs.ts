// Import jobs: importers create jobs and report their progress, and jobs are published or discarded as a whole. The worker
// publishes and discards; the answers report its progress.

import Type from 'typebox'
import { isUuid } from '#core/events/uuid.ts'
import {
  type DescribedImportJob,
  implicitDiscardsMax,
  jobsPerDayMax,
  keptJobsMax,
  openJobsMax,
} from '#core/imports/import-job.ts'
import type { DayAndEvent, ImportedCount } from '#core/imports/imported-counts.ts'
import type { JsonObject } from '#core/json.ts'
import type { Result } from '#core/result.ts'
import type { ImportedRows } from '#ports/events/imported-rows.ts'
import type { TooManyJobs } from '#ports/state/import-job-store.ts'
import {
  createJob,
  discardJob,
  findJob,
  type JobRefusal,
  publishJob,
  updateJob,
} from '#services/imports/manage-jobs.ts'
import { encodeEvent, eventSchema } from '#wire/management/events.ts'
import {
  createImportJobSchema,
  decodeImportOptions,
  encodeImportJob,
  encodeImportJobReport,
  importCountPageSchema,
  importJobSchema,
  importJobTextBytesMax,
  importReportSchema,
  updateImportJobSchema,
} from '#wire/management/import-jobs.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import {
  type Answer,
  answer,
  answerFromEventStore,
  createInvalidInputError,
  createNotFoundError,
  createPermissionDeniedError,
  listAnswer,
  refusal,
} from '../kit/answers.ts'
import { type Caller, hasScope } from '../kit/authenticate.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { itemRoutes, type ManagementRoute, type ProjectItem, projectRoutes } from '../kit/endpoint.ts'
import { answerCountedList, buildUrlWithParams, encodeObjects, encodeRows } from '../kit/list-answers.ts'
import { cursorParam, pageParams, requiredParam, textParam } from '../kit/query-params.ts'

const uuidCountMax = 200
const tooManyJobs: Readonly<Record<TooManyJobs, string>> = {
  too_many_open: `The project has ${openJobsMax} import jobs that are neither published nor discarded: publish or discard one first.`,
  too_many_kept: `The project has ${keptJobsMax} published or open import jobs, each of which slows its queries: send several files in one job, import without a job, or discard jobs that are no longer needed.`,
  too_many_per_day: `The project created ${jobsPerDayMax} import jobs within 24 hours: wait before you create the next one, or send several files in one job.`,
}
/** Source: docs/wire/import.md §3.10. */
const noDestinations = createInvalidInputError(
  'replay_side_effects',
  'Pennon sends events to no destinations, webhooks or workflows: leave the list empty.',
)
const onlyAdminsUndo = createPermissionDeniedError('Only an admin may undo an import that was published.')
const noSuchJob = createNotFoundError('The project has no import job with this id.')

export function importJobsRoutes(deps: ManagementDeps): ManagementRoute[] {
  const { management, events } = deps
  const jobs: ProjectItem<DescribedImportJob> = {
    ...{ param: 'jobId', missing: noSuchJob },
    find: async (projectId, text) => {
      const id = parseJobId(text)
      return id === 0 ? null : findJob(deps, projectId, id)
    },
  }
  return [
    ...projectRoutes(deps, {
      route: 'GET /import_jobs',
      id: 'import_jobs_list',
      summary: 'List import jobs, newest first.',
      scope: 'import_job:read',
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(importJobSchema) },
      handle: call =>
        answerCountedList(
          call,
          call.query,
          async slice => {
            const { count, jobs } = await management.listImportJobs(call.project.id, slice)
            return { count, results: jobs }
          },
          encodeObjects(job => encodeImportJob(job, mayAddEvents(call.caller))),
        ),
    }),
    ...projectRoutes(deps, {
      route: 'POST /import_jobs',
      id: 'import_jobs_create',
      summary:
        'Create an import job. Batches that name it in the X-Import-Job header stay hidden until it is published.',
      scope: 'import_job:write',
      body: createImportJobSchema,
      success: { status: 201, schema: importJobSchema },
      handle: async ({ change, project, body }) => {
        const { source, name = source, plan = {} } = body
        const tooLong = findLengthRefusal({ plan })
        if (tooLong !== null) return tooLong
        if ((body.replay_side_effects ?? []).length > 0) return refusal(noDestinations)
        const secondsMax = project.ingestion.dropEventsOlderThanSeconds ?? 0
        if (secondsMax > 0 && body.accept_old !== true) return refusal(oldEventsDroppedError(secondsMax))
        const options = decodeImportOptions(body.options)
        const created = await createJob(deps, { projectId: project.id, name, source, plan, options }, change)
        if (!created.ok) return refusal(tooManyJobsError(created.error))
        return answer(201, encodeImportJob(created.value, true))
      },
    }),
    ...itemRoutes(deps, jobs, {
      route: 'GET /import_jobs/:jobId',
      id: 'import_jobs_retrieve',
      summary: 'Get one import job: its state, and the progress of publishing or discarding.',
      scope: 'import_job:read',
      success: { status: 200, schema: importJobSchema },
      handle: async ({ caller, item: job }) => answer(200, encodeImportJob(job, mayAddEvents(caller))),
    }),
    ...projectRoutes(deps, {
      route: 'PATCH /import_jobs/:jobId',
      id: 'import_jobs_update',
      summary: "Report the importer's progress. 409 once the job is being published or discarded.",
      scope: 'import_job:write',
      body: updateImportJobSchema,
      success: { status: 200, schema: importJobSchema },
      handle: async ({ change, project, params, body }) => {
        const tooLong = findLengthRefusal(body)
        return tooLong ?? answerJob(await updateJob(deps, project.id, parseJobId(params.jobId!), body, change))
      },
    }),
    ...projectRoutes(deps, {
      ...jobAction(
        'publish',
        'Publish the job: its events become visible, and its persons and links are merged into the project.',
      ),
      // An editor prepares imports; an admin approves them.
      scopeOfPersons: '*',
      handle: async ({ change, project, params }) =>
        answerJob(await publishJob(deps, project.id, parseJobId(params.jobId!), change)),
    }),
    ...projectRoutes(deps, {
      ...jobAction('discard', 'Discard the job, or undo it within 30 days of publishing.'),
      handle: async ({ caller, change, project, params }) => {
        const id = parseJobId(params.jobId!)
        if (caller.kind === 'person' && !hasScope(caller, '*')) {
          const job = await findJob(deps, project.id, id)
          if (job !== null && job.publishedAtMs !== null) return refusal(onlyAdminsUndo)
        }
        return answerJob(await discardJob(deps, project.id, id, change))
      },
    }),
    ...itemRoutes(deps, jobs, {
      route: 'GET /import_jobs/:jobId/report',
      id: 'import_jobs_report',
      summary: 'Report what is stored for the job, and the outcomes of all other events.',
      scope: 'import_job:read',
      success: { status: 200, schema: importReportSchema },
      handle: async ({ request, project, caller, item: job, signal }) => {
        const notes = await management.listImportNotes(job.id)
        const shown = {
          showsId: mayAddEvents(caller),
          showsPersons: hasScope(caller, 'person:read'),
          showsGroups: hasScope(caller, 'group:read'),
        }
        return answerFromEventStore(async () => {
          const rows = await events.countImportedRows(project.id, job.id, signal)
          const { counts, cursor } = await findCountsPage(events, { job, cursor: null }, signal)
          const next =
            cursor === null ? null : buildUrlWithParams(request, { cursor }).replace(/\/report\/?\?/, '/counts/?')
          return answer(200, encodeImportJobReport(job, rows, { counts, next }, notes, shown))
        })
      },
    }),
    ...itemRoutes(deps, jobs, {
      route: 'GET /import_jobs/:jobId/counts',
      id: 'import_jobs_counts',
      summary: 'List stored events of the job by UTC day and name, beyond those in the report.',
      scope: 'import_job:read',
      query: { cursor: cursorParam(parseCountsCursor) },
      success: { status: 200, schema: importCountPageSchema },
      handle: ({ request, item: job, query, signal }) =>
        answerFromEventStore(async () => {
          const { counts, cursor } = await findCountsPage(events, { job, cursor: query.cursor ?? null }, signal)
          return answer(200, {
            next: cursor === null ? null : buildUrlWithParams(request, { cursor }),
            results: counts,
          })
        }),
    }),
    ...projectRoutes(deps, {
      route: 'GET /import_jobs/:jobId/events',
      id: 'import_jobs_events',
      summary: `Get up to ${uuidCountMax} stored events of the job by uuid, published or not.`,
      scope: 'import_job:read query:read',
      query: { uuids: requiredParam(textParam('Uuids, separated by commas.')) },
      success: { status: 200, schema: Type.Object({ results: Type.Array(eventSchema) }) },
      handle: async ({ project, params, query, signal }) => {
        const uuids = query.uuids.toLowerCase().split(',')
        if (uuids.length > uuidCountMax || !uuids.every(isUuid))
          return refusal(createInvalidInputError('uuids', `At most ${uuidCountMax} UUIDs, separated by commas.`))
        const job = await jobs.find(project.id, params.jobId!)
        if (job === null) return refusal(noSuchJob)
        return answerFromEventStore(async () =>
          listAnswer(
            {},
            await encodeRows(encodeEvent)(await events.findImportedRows(project.id, job.id, uuids, signal)),
          ),
        )
      },
    }),
  ]
}

/** The common fields of the two actions. @param summary says what the action does. */
const jobAction = <const Name extends string>(name: Name, summary: string) => ({
  route: `POST /import_jobs/:jobId/${name}` as const,
  id: `import_jobs_${name}`,
  summary: `${summary} Idempotent; the job's state shows when it is complete.`,
  scope: 'import_job:write',
  success: { status: 202, schema: importJobSchema },
})

function parseJobId(text: string): number {
  return /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : 0
}

function mayAddEvents(caller: Caller): boolean {
  return hasScope(caller, 'import_job:write')
}

const refusals: Readonly<Record<Exclude<JobRefusal, 'not_found'>, string>> = {
  publishing: 'The job is being published.',
  published: 'The job is already published and can no longer change, but it can be discarded.',
  discarding: 'The job is being discarded.',
  discarded: 'The job is discarded: create another job.',
  too_many_implicit_jobs: `Imports of this day without a job were discarded ${implicitDiscardsMax} times, the maximum: import into a job, which can always be discarded.`,
  final:
    'The job was published at least 30 days ago: the data needed to undo it has been deleted, so it can no longer be discarded.',
}

/** Answers with a job or the refusal of its change, for a caller whose key may write. */
function answerJob(result: Result<DescribedImportJob, JobRefusal>): Answer {
  if (result.ok) {
    const { state } = result.value
    return answer(state === 'publishing' || state === 'discarding' ? 202 : 200, encodeImportJob(result.value, true))
  }
  if (result.error === 'not_found') return refusal(noSuchJob)
  return refusal(wireError(409, 'conflict', refusals[result.error], 'state'))
}

/**
 * A limit that allows another job after some time, or after a job has ended, is a `conflict`. The limit on kept jobs has a
 * separate code, since waiting hardly ever helps there.
 */
function tooManyJobsError(which: TooManyJobs): WireError {
  return wireError(409, which === 'too_many_kept' ? 'too_many_import_jobs' : 'conflict', tooManyJobs[which])
}

/** Source: docs/wire/import.md §3.6. */
function oldEventsDroppedError(seconds: number) {
  return wireError(
    409,
    'project_drops_old_events',
    `The project drops events older than ${seconds} seconds (drop_events_older_than_seconds): ` +
      'set that to 0, or send "accept_old": true to import older events anyway.',
    'accept_old',
  )
}

function findLengthRefusal(body: { readonly plan?: JsonObject; readonly progress?: JsonObject }): Answer | null {
  for (const key of ['plan', 'progress'] as const)
    if (body[key] !== undefined && Buffer.byteLength(JSON.stringify(body[key])) > importJobTextBytesMax)
      return refusal(createInvalidInputError(key, `At most ${importJobTextBytesMax} bytes of JSON.`))
  return null
}

/** Each page reads all stored rows from its first day on, so pages are larger than in other lists. */
const countsPerPageMax = 10_000
/** Bounds the text of a page, since the names in it are chosen by clients, up to 200 characters each. */
const pageBytesMax = 1024 * 1024

/** The counts after the cursor, and the cursor of the next page; null on the last page. */
async function findCountsPage(
  events: Pick<ImportedRows, 'listImportedCounts'>,
  { job, cursor }: { readonly job: DescribedImportJob; readonly cursor: DayAndEvent | null },
  signal: AbortSignal,
): Promise<{ readonly counts: readonly ImportedCount[]; readonly cursor: string | null }> {
  const asked = { projectId: job.projectId, importJobId: job.id, after: cursor, limit: countsPerPageMax + 1 }
  const found = await events.listImportedCounts(asked, signal)
  const counts = found.slice(0, countFitting(found))
  const last = counts.at(-1)
  return { counts, cursor: last === undefined || counts.length === found.length ? null : `${last.day}_${last.event}` }
}

function countFitting(counts: readonly ImportedCount[]): number {
  let bytes = 0
  const over = counts.findIndex((count, index) => {
    bytes += Buffer.byteLength(JSON.stringify(count))
    return index >= countsPerPageMax || (bytes > pageBytesMax && index > 0)
  })
  return over === -1 ? counts.length : over
}

function parseCountsCursor(text: string): DayAndEvent | null {
  const match = /^(\d{4}-\d\d-\d\d)_(.+)$/s.exec(text)
  return match === null || Number.isNaN(Date.parse(match[1]!)) ? null : { day: match[1]!, event: match[2]! }
}
