// `pennon import rejects FOLDER`: prints rejected records, one per line, or grouped by reason with examples and a fix.
// Source: docs/wire/import.md §2.6.

import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { formatCount } from '#core/format-count.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { readCheckpoint } from '#importer/send/checkpoint.ts'
import { buildRecordKey, readRetryOutcomes } from '#importer/send/retry-outcomes.ts'
import { readSentRejects } from '#importer/send/sent-events.ts'
import { listRejectFiles, type RejectLine, readRejectTexts, rejectLineSchema } from '#importer/stages/reject-files.ts'
import { refuseMissingRehearsal, runReadOnlyOnJob } from './job/open-job.ts'
import { printJson, printLines, printNothingFound } from './messages/print.ts'

/** As commander gives them. */
interface RejectsOptions {
  readonly group?: boolean
  readonly reason?: string
  readonly json?: boolean
}

const noRejects = 'No records are rejected.'
const examplesShown = 3
const sourceShown = 120

/** A line of `rejects/`, and whether `pennon import retry` has sent the record since. */
type ShownReject = RejectLine & { readonly repaired?: true }

interface Group {
  count: number
  repaired: number
  readonly fix: string
  readonly examples: ShownReject[]
}

export async function showRejects(path: string, options: RejectsOptions): Promise<void> {
  await runReadOnlyOnJob(path, job => {
    const { folder } = job
    if (!existsSync(folder.file('rehearsal'))) refuseMissingRehearsal(job)
    return options.group ? printGroups(folder, options) : printRejects(folder, options)
  })
}

async function printRejects(folder: JobFolder, { reason, json = false }: RejectsOptions): Promise<void> {
  let count = 0
  for await (const reject of readRejects(folder, reason)) {
    count++
    printLines([json ? JSON.stringify(reject) : describeReject(reject)])
  }
  if (count === 0) printNothingFound(reason === undefined ? noRejects : `No records are rejected for ${reason}.`, json)
}

async function printGroups(folder: JobFolder, { reason, json = false }: RejectsOptions): Promise<void> {
  const groups = new Map<string, Group>()
  for await (const reject of readRejects(folder, reason)) {
    const group = groups.get(reject.reason) ?? { count: 0, repaired: 0, fix: reject.fix, examples: [] }
    if (group.count++ === 0) groups.set(reject.reason, group)
    if (reject.repaired === true) group.repaired++
    else if (group.examples.length < examplesShown) group.examples.push(reject)
  }
  const sorted = [...groups].toSorted(([, a], [, b]) => b.count - a.count)
  if (json) return printJson(sorted.map(([name, group]) => ({ reason: name, ...group })))
  const lines = sorted.flatMap(([name, { count, repaired, fix, examples }]) => [
    `${name}: ${count.toLocaleString('en')}${repaired === 0 ? '' : `, of which ${formatCount(repaired, 'is', 'are')} repaired and sent`}`,
    `  ${fix}`,
    ...examples.map(reject => `  ${describeReject(reject)}`),
    '',
  ])
  printLines(lines.length === 0 ? [noRejects] : lines)
}

function describeReject({ object, line, reason, field, detail, source, repaired }: ShownReject): string {
  const where = `${object}, line ${line}`
  const what = [reason, ...(field === null ? [] : [field]), ...(detail === null ? [] : [detail])].join(', ')
  const cut = source.length > sourceShown ? `${source.slice(0, sourceShown)}…` : source
  return `${where}: ${repaired === true ? 'repaired and sent; was ' : ''}${what}: ${cut}`
}

/** @param reason to filter by; undefined for all. */
async function* readRejects(folder: JobFolder, reason: string | undefined): AsyncGenerator<ShownReject> {
  const retried = readRetryOutcomes(folder)
  for await (const reject of readAllRejects(folder)) {
    if (reason !== undefined && reject.reason !== reason) continue
    yield retried.get(buildRecordKey(reject))?.kind === 'sent' ? { ...reject, repaired: true } : reject
  }
}

/** Yields the records rejected by the rehearsal and by sending, one part of the job after another. */
async function* readAllRejects(folder: JobFolder): AsyncGenerator<RejectLine> {
  const files = new Map(listRejectFiles(folder).map(({ path, part }) => [part, path]))
  const begun = readCheckpoint(folder)?.parts ?? []
  for (const part of new Set([...files.keys(), ...begun.map(({ id }) => id)].toSorted())) {
    const path = files.get(part)
    if (path !== undefined)
      for await (const text of readRejectTexts(path))
        yield folder.parseLine(relative(folder.path, path), text, rejectLineSchema)
    yield* readSentRejects(folder, part)
  }
}
