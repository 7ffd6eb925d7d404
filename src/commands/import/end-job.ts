// `pennon import publish FOLDER` makes the sent events part of the project; `pennon import discard FOLDER` takes them back
// as if they had never been sent. Source: docs/wire/import.md §2.11.

import { formatCount } from '#core/format-count.ts'
import { toPrintable } from '#core/printable.ts'
import { inDocs } from '#distribution.ts'
import { formatWaitSpan } from '#importer/fetch/waiting.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { readCheckpoint } from '#importer/send/checkpoint.ts'
import { openRetries } from '#importer/send/retried-records.ts'
import type { ServiceApi } from '#importer/send/service-api.ts'
import {
  endServiceJob,
  type JobEnding,
  readJobEndTime,
  readServiceJob,
  readServiceState,
  storeEnding,
} from '#importer/send/service-job.ts'
import { readExpectations } from '#importer/stages/expected/expected.ts'
import { openStagedJob } from '#importer/stages/part-lines.ts'
import type { PersonsCheck } from '#importer/stages/report/import-report.ts'
import { formatNote } from '#importer/stages/report/note-messages.ts'
import { readJobReport } from '#importer/verify/job-report.ts'
import { readSentSummary, storePersonsCheck, updateReport } from '#importer/verify/sent-summary.ts'
import { verifyPersons } from '#importer/verify/verify-persons.ts'
import { countSentEvents } from '#importer/verify/verify-stage.ts'
import { canAskQuestions } from '../client/prompt.ts'
import { refuse } from '../refuse.ts'
import { requireManifest } from './job/job-stages.ts'
import { describeNextStep, endStates } from './job/next-step.ts'
import { type Job, runExclusivelyOnJob } from './job/open-job.ts'
import { runUntilInterrupted } from './messages/interruption.ts'
import { confirmTarget, printLine, quotePath } from './messages/print.ts'
import { createServiceApi, requireTrustedTarget } from './service/target-api.ts'

/** As commander gives them. */
interface EndOptions {
  /** The name of the project (or its address, if the name is unknown), given as an option instead of typed. */
  readonly project?: string
  /** Whether to publish although verifying found differences or was never done. */
  readonly unverified?: boolean
}

type How = JobEnding['how']

export async function publishOrDiscardImport(how: How, path: string, options: EndOptions): Promise<void> {
  const request: Request = { state: 'not sent' }
  const describePause = () => interruptedMessages[request.state](how, quotePath(path))
  await runExclusivelyOnJob(path, job =>
    runUntilInterrupted(describePause, signal => endJob(job, how, options, request, signal)),
  )
}

/** How far the request to publish or discard has come, which decides what an interrupted command prints. */
interface Request {
  state: 'not sent' | 'sent' | 'accepted'
}

const interruptedMessages: Record<Request['state'], (how: string, at: string) => string> = {
  'not sent': (how, at) => `canceled. Nothing was changed. To ${how}: pennon import ${how} ${at}`,
  sent: (how, at) =>
    `canceled. The service has not confirmed the request to ${how}. To check: pennon import status ${at}. To repeat the request: pennon import ${how} ${at}`,
  accepted: (how, at) => `no longer waiting. The service continues; to wait again: pennon import ${how} ${at}`,
}

async function endJob(job: Job, how: How, options: EndOptions, request: Request, signal: AbortSignal): Promise<void> {
  const { folder, plan, at } = job
  const serviceJob = readServiceJob(folder)
  if (serviceJob === null || plan.target === null) refuse(await describeNothingSent(job, how))
  const { id } = serviceJob
  const api = createServiceApi(requireTrustedTarget(job), signal)
  const before = await readServiceState(api, id)
  const [underWay, done] = endStates[how]
  if (before === underWay || before === done) request.state = 'accepted'
  if (before === done) {
    await recordEnding(job, id, how, api)
    printLine(`Import job ${id} is already ${done}.`)
    printLine(
      how === 'publish' ? describeNextAfterPublish(at, await countDifferingPersons(job, id, api)) : afterDiscard,
    )
    return
  }
  if (how === 'publish' && before === 'discarded')
    refuse(`import job ${id} was discarded, so there is nothing to publish. ${afterDiscard}`)
  if (how === 'publish' && before !== 'publishing' && options.unverified !== true) await refuseUnverified(job, id, api)
  const name = plan.target.projectName ?? plan.target.address
  if (options.project === undefined) {
    const scripted = `pennon import ${how} ${at} --project ${JSON.stringify(name)}`
    if (!canAskQuestions()) refuse(`confirm the project: ${scripted}`)
    const left = ['Nothing was changed.', await describeNextStep(job)]
    if (!(await confirmTarget(name, `${how} the import`, left))) return
  } else if (options.project !== name)
    refuse(`--project is ${JSON.stringify(options.project)}, but the target is ${JSON.stringify(name)}`)
  try {
    await endServiceJob(api, id, how, {
      onAsked: () => {
        if (request.state === 'not sent') request.state = 'sent'
      },
      onAccepted: () => {
        request.state = 'accepted'
        storeEnding(folder, { serviceJobId: id, how, isDone: false })
      },
      onStep: createStepReporter(how, { nowMs: () => api.clock.nowMs(), say: printLine }),
    })
    await recordEnding(job, id, how, api)
  } catch (error) {
    if (!(error instanceof JobStopped)) throw error
    throw new JobStopped(
      `${error.message.replace(/\.$/, '')}. Next: pennon import ${how} ${at} to retry, or pennon import status ${at} to see its state`,
    )
  }
  const { notes } = await readJobReport(api, id)
  if (how === 'publish') {
    printLine('Published: the events are part of the project.')
    const differing = await printPersonsCheck(job, id, api)
    for (const note of notes) printLine(`  ${formatNote(note)}`)
    return printLine(describeNextAfterPublish(at, differing))
  }
  const leftNotes = notes.filter(({ reason }) => reason.startsWith(leftPrefix))
  const removed = readSentSummary(folder)?.balance.sent ?? 0
  printLine(`Discarded import job ${id}: its ${formatCount(removed, 'event was', 'events were')} removed.`)
  if (before === 'published')
    printLine('Events that were also sent by another import or by live traffic remain visible.')
  if (leftNotes.length > 0) printLine(`Not everything could be undone${inDocs('import.md')}:`)
  else if (before === 'published') printLine('All its changes to persons and groups are undone.')
  for (const note of leftNotes) printLine(`  ${formatNote(note)}`)
  printLine(afterDiscard)
}

/** Records in the folder that the job has ended, and updates the report, which people pass on. */
async function recordEnding({ folder, plan }: Job, serviceJobId: string, how: How, api: ServiceApi): Promise<void> {
  const at = await readJobEndTime(api, serviceJobId, how)
  const ending: JobEnding = { serviceJobId, how, isDone: true, ...(at !== null && { at }) }
  storeEnding(folder, ending)
  updateReport(folder, plan)
}

/** The service does not know a job that was never sent: removing the folder is enough. */
async function describeNothingSent(job: Job, how: How): Promise<string> {
  const next = await describeNextStep(job)
  const hint = how === 'publish' ? '' : ` To delete the plan, remove the folder ${job.path}.`
  return toPrintable(`nothing has been sent yet, so there is nothing to ${how}.${hint} ${next}`)
}

const leftPrefix = 'undo_left:'
const afterDiscard = 'Next: pennon import plan ANOTHER-FOLDER (only to import again)'

/** @param differing how many of the compared persons differ from the import. */
function describeNextAfterPublish(at: string, differing: number): string {
  const takenBack = `To undo it within 30 days: pennon import discard ${at}`
  return differing === 0
    ? `Done. ${takenBack}`
    : `Next: find out why ${formatCount(differing, 'person differs', 'persons differ')} from the import. ${takenBack}`
}

/** Compares persons unless an earlier command has done so; an earlier command may have been interrupted before that. */
async function countDifferingPersons(job: Job, serviceJobId: string, api: ServiceApi): Promise<number> {
  const checked = readSentSummary(job.folder)?.persons ?? null
  return checked === null ? printPersonsCheck(job, serviceJobId, api) : checked.differences.length
}

/**
 * Persons get imported values only when the job is published, so persons can be compared only now. @returns how many
 * differ.
 */
async function printPersonsCheck(
  { folder, plan, source }: Job,
  serviceJobId: string,
  api: ServiceApi,
): Promise<number> {
  // This may read everything that was sent: minutes for millions of events.
  printLine('publish: comparing persons with the import')
  const manifest = requireManifest(folder)
  using staged = openStagedJob(folder, manifest)
  const retried = openRetries({ folder, plan, manifest, source })
  const sent = [...retried, { folder, job: staged, checkpoint: readCheckpoint(folder) }]
  const candidates = readExpectations(folder, countSentEvents(sent))?.persons ?? null
  const check = await verifyPersons({ sent, jobId: serviceJobId, personOf: staged.personOf, candidates, api })
  storePersonsCheck(folder, check)
  updateReport(folder, plan)
  printLine(describeComparison(check))
  for (const difference of check.differences) printLine(`  differs: ${difference}`)
  return check.differences.length
}

function describeComparison({ compared, equal, newer }: PersonsCheck): string {
  if (compared === 0) return 'No persons were compared, since the import has no person properties and no links.'
  const values = newer === 0 ? '' : `, ${formatCount(newer, 'has', 'have')} newer values`
  return `${formatCount(compared, 'person')} at random: ${formatCount(equal, 'matches', 'match')} the import${values}.`
}

async function refuseUnverified({ folder, at }: Job, serviceJobId: string, api: ServiceApi): Promise<void> {
  const sent = readSentSummary(folder)
  if (sent?.isAll !== true) refuse(`not everything has been sent yet: pennon import run ${at}`)
  const { verification, balance } = sent
  if (verification === null)
    refuse(`the stored events have not been compared with the sent ones yet: pennon import run ${at}`)
  if (!verification.ok)
    refuse(
      `the stored events differ from the sent ones. To see the differences: pennon import report ${at}; to compare again: pennon import run ${at}; to publish anyway: --unverified`,
    )
  if (!balance.isBalanced)
    refuse(`the counts of the import do not add up; see pennon import report ${at}. To publish anyway: --unverified`)
  // Let the service count its events again: if it was restored from a backup, it does not know which events it lost.
  const { rows } = await readJobReport(api, serviceJobId)
  const had = `the service has ${formatCount(rows, 'event')} of the import, and had ${verification.stored_rows.toLocaleString('en')} when they were compared`
  if (rows > verification.stored_rows) refuse(`${had}. To compare again: pennon import run ${at}`)
  if (rows < verification.stored_rows)
    refuse(
      `${had}: persons may have been erased since, or the service was restored to an earlier state. To see what is missing: pennon import run ${at}. To remove the stored events and import again from another folder: pennon import discard ${at}`,
    )
}

/**
 * How often a step is printed again: joining a million persons takes many minutes, and silence would look like a
 * standstill.
 */
const againMs = 30_000

const stepLabels: Readonly<Record<string, string>> = {
  draining: 'waiting for events that are still being processed',
  links: 'linking persons',
  persons: 'merging person properties',
  groups: 'joining groups',
  person_properties: 'adding person properties to the events',
  'publish rows': 'making the events visible',
  'discard rows': 'removing the events',
  undo: 'restoring persons and groups',
  clearing: 'clearing up',
}

/**
 * Prints each step once, and again every 30 s.
 * @returns a function to call with the current step after each poll of the service, which happens every second.
 */
export function createStepReporter(
  how: string,
  { nowMs, say }: { readonly nowMs: () => number; readonly say: (line: string) => void },
): (step: string | null) => void {
  let current: string | null = null
  let [begunMs, reportedMs] = [0, 0]
  return step => {
    const atMs = nowMs()
    const isNew = step !== current
    current = step
    if (isNew) begunMs = atMs
    else if (atMs - reportedMs < againMs) return
    if (step === null) return
    reportedMs = atMs
    const label = stepLabels[`${how} ${step}`] ?? stepLabels[step] ?? step
    say(isNew ? `${how}: ${label}` : `${how}: still ${label}, after ${formatWaitSpan(atMs - begunMs)}`)
  }
}
