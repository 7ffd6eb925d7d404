// `pennon import publish FOLDER` and `pennon import discard FOLDER`: what was sent becomes part of the project, or is gone
// as if it had never been sent. Source: docs/wire/import.md §2.11.

import { createInterface } from 'node:readline/promises'
import { JobPaused } from '#importer/job/job-paused.ts'
import { readCheckpoint } from '#importer/send/checkpoint.ts'
import type { ServiceApi } from '#importer/send/job-api.ts'
import { readJobReport } from '#importer/send/job-report.ts'
import { endServiceJob, readServiceJob, stateOf } from '#importer/send/service-job.ts'
import { verifyPersons } from '#importer/send/verify-persons.ts'
import { type Verification, verifyFile } from '#importer/send/verify-stage.ts'
import { openStagedJob } from '#importer/stages/open-staged-job.ts'
import { endWithOutput } from '../client/end-with-output.ts'
import { printable } from '../client/printable.ts'
import { refuse } from '../refuse.ts'
import { manifestOf } from './job-stages.ts'
import { type Job, lockJob, openJob, orStop } from './open-job.ts'
import { apiOf } from './send-job.ts'

const personsFile = 'verify-persons.json'

/** As commander gives them. */
export interface EndOptions {
  /** The name of the project, or the address where the name is not known, instead of typing it. */
  readonly project?: string
  /** Publish although verifying found differences, or was never done. */
  readonly unverified?: boolean
}

export async function endImport(path: string, how: 'publish' | 'discard', options: EndOptions): Promise<void> {
  endWithOutput()
  const job = openJob(path)
  const unlock = lockJob(job.folder)
  const interrupted = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort())
  try {
    await orStop(job.folder, () => end(job, path, how, options, interrupted.signal))
  } catch (error) {
    if (!interrupted.signal.aborted && !(error instanceof JobPaused)) throw error
    process.stderr.write(
      `pennon: no longer waiting. The service goes on by itself; look again: pennon import ${how} ${path}\n`,
    )
    process.exit(130)
  } finally {
    unlock()
  }
}

async function end(
  job: Job,
  path: string,
  how: 'publish' | 'discard',
  options: EndOptions,
  signal: AbortSignal,
): Promise<void> {
  const { folder, plan } = job
  const serviceJob = readServiceJob(folder)
  if (serviceJob === null || plan.target === null) refuse(`nothing was sent yet: pennon import run ${path}`)
  if (how === 'publish' && options.unverified !== true) checkVerified({ folder }, path)
  const api = apiOf(plan.target, { waiting: reason => reason !== null && say(`waiting: ${reason}`) }, signal)
  const before = await stateOf(api, serviceJob.id)
  const wanted = how === 'publish' ? 'published' : 'discarded'
  if (before === wanted) return say(`Import job ${serviceJob.id} is ${wanted} already.`)
  await confirm(plan.target.projectName ?? plan.target.address, path, how, options)
  await endServiceJob(api, serviceJob.id, how, step => step !== null && say(`${how}: ${step}`))
  if (how === 'publish') {
    say(`Published: the events are part of the project. Undo it within 30 days: pennon import discard ${path}`)
    return tellPersons(job, serviceJob.id, api)
  }
  const { notes } = await readJobReport(api, serviceJob.id)
  say(`Discarded import job ${serviceJob.id}.`)
  for (const { reason, count } of notes) say(`  ${reason}: ${count.toLocaleString('en')}`)
}

/** Only now do persons have what the import says of them. */
async function tellPersons({ folder, plan, source }: Job, serviceJobId: string, api: ServiceApi): Promise<void> {
  const staged = openStagedJob({ folder, plan, manifest: manifestOf(folder), source })
  try {
    const check = await verifyPersons(staged, serviceJobId, id => staged.personOf(id), api)
    folder.writeJson(personsFile, check)
    const newer = check.newer === 0 ? '' : `, ${check.newer} have newer values`
    say(`${check.compared} persons at random: ${check.equal} are as the import says${newer}.`)
    for (const difference of check.differences) say(`  differs: ${difference}`)
  } finally {
    staged.close()
  }
}

function checkVerified({ folder }: Pick<Job, 'folder'>, path: string): void {
  if (readCheckpoint(folder)?.phase !== 'sent') refuse(`not everything is sent yet: pennon import run ${path}`)
  const verification = folder.readJson<Verification>(verifyFile)
  if (verification?.ok !== true)
    refuse(
      `what is stored was not found to be what was sent; see pennon import report ${path}. To publish it all the same: --unverified`,
    )
}

async function confirm(name: string, path: string, how: string, { project }: EndOptions): Promise<void> {
  if (project !== undefined) {
    if (project !== name) refuse(`--project is ${JSON.stringify(project)}, and the target is ${JSON.stringify(name)}`)
    return
  }
  if (process.stdin.isTTY !== true)
    refuse(`say which project it is for: pennon import ${how} ${path} --project ${JSON.stringify(name)}`)
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    const typed = await terminal.question(`Type the name of the target to ${how} the import (${printable(name)}): `)
    if (typed.trim() !== name) refuse('that is another name; nothing was done')
  } finally {
    terminal.close()
  }
}

function say(line: string): void {
  process.stdout.write(`${printable(line)}\n`)
}
