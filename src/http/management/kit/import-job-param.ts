// The parameter `import_job`, which adds the events and persons of one pending job to one answer
// (docs/decisions/0079-seeing-a-pending-job.md).

import { type ImportJob, type ImportJobState, isJobPending } from '#core/imports/import-job.ts'
import { err } from '#core/result.ts'
import { findJob, type ManageJobsDeps } from '#services/imports/manage-jobs.ts'
import { wireError } from '#wire/wire-error.ts'
import { type Answer, createInvalidInputError, createNotFoundError, refusal } from './answers.ts'
import { createMissingScopeError, hasScope } from './authenticate.ts'
import type { ProjectCall } from './endpoint.ts'
import { type QueryParam, wholeNumberParam } from './query-params.ts'

export const importJobParam = { import_job: jobParam() }

function jobParam(): QueryParam<number | undefined> {
  const description =
    'Number or id of a pending import job: the answer is as if the job were published. Requires `import_job:read`.'
  const one = wholeNumberParam({ description, minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
  return {
    ...one,
    isFilter: true,
    // Refuses a repeated parameter, since all jobs but the last would be ignored.
    readAll: (texts, name) =>
      texts.length > 1 ? err(createInvalidInputError(name, 'Name one import job.')) : one.read(texts[0], name),
  }
}

/**
 * Answers with the pending job that the request names, or with none. If the job ceases to be pending before the answer is
 * complete, the answer is refused: some of the job's rows may have been counted twice, or not at all.
 */
export async function answerWithJob(
  deps: ManageJobsDeps,
  { project, caller, query }: ProjectCall<typeof importJobParam, unknown>,
  answer: (job: ImportJob | null) => Promise<Answer>,
): Promise<Answer> {
  const { import_job: id } = query
  if (id === undefined) return answer(null)
  if (!hasScope(caller, 'import_job:read'))
    return refusal(createMissingScopeError('import_job:read', 'The parameter import_job requires it.'))
  const before = await findJob(deps, project.id, id)
  if (before === null) return refusal(noSuchJob)
  if (!isJobPending(before)) return refusal(notPendingError(before.state))
  const answered = await answer(before)
  const after = await findJob(deps, project.id, id)
  return after !== null && isJobPending(after) ? answered : refusal(notPendingError(after?.state ?? 'discarded'))
}

const noSuchJob = createNotFoundError('The project has no import job with this number or id.')

const whyNotPending: Partial<Record<ImportJobState, string>> = {
  publishing: 'is being published: once that is done, its events are visible without import_job.',
  published: 'is published: its events are visible without import_job.',
  discarding: 'is being discarded.',
  discarded: 'is discarded.',
}

function notPendingError(state: ImportJobState) {
  return wireError(409, 'import_job_not_pending', `The import job ${whyNotPending[state]}`, 'import_job')
}
