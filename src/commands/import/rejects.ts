// `pennon import rejects FOLDER`: the records that are refused, one a line, or by reason with examples and a fix.
// Source: docs/wire/import.md §2.6.

import { existsSync } from 'node:fs'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { readCheckpoint } from '#importer/send/checkpoint.ts'
import { sentRejects } from '#importer/send/sent-rejects.ts'
import { type RejectLine, rejectFiles, rejectTexts } from '#importer/stages/reject-files.ts'
import { endWithOutput } from '../client/end-with-output.ts'
import { refuse } from '../refuse.ts'
import { openJob, orStop } from './open-job.ts'
import { printJson, printLines } from './print.ts'

/** As commander gives them. */
export interface RejectsOptions {
  readonly group?: boolean
  readonly reason?: string
  readonly json?: boolean
}

const examplesShown = 3
const sourceShown = 120

interface Group {
  count: number
  readonly fix: string
  readonly examples: RejectLine[]
}

export async function showRejects(path: string, options: RejectsOptions): Promise<void> {
  endWithOutput()
  const { folder } = openJob(path)
  if (!existsSync(folder.file('rehearsal'))) refuse(`nothing is rehearsed yet: pennon import run ${path}`)
  await orStop(folder, () => (options.group ? showGroups(folder, options) : showLines(folder, options)))
}

async function showLines(folder: JobFolder, { reason, json = false }: RejectsOptions): Promise<void> {
  for await (const text of textsOf(folder)) {
    const reject = JSON.parse(text) as RejectLine
    if (reason !== undefined && reject.reason !== reason) continue
    printLines([json ? text : rejectWords(reject)])
  }
}

async function showGroups(folder: JobFolder, { reason, json = false }: RejectsOptions): Promise<void> {
  const groups = new Map<string, Group>()
  for await (const text of textsOf(folder)) {
    const reject = JSON.parse(text) as RejectLine
    if (reason !== undefined && reject.reason !== reason) continue
    const group = groups.get(reject.reason) ?? { count: 0, fix: reject.fix, examples: [] }
    if (group.count++ === 0) groups.set(reject.reason, group)
    if (group.examples.length < examplesShown) group.examples.push(reject)
  }
  const sorted = [...groups].toSorted(([, a], [, b]) => b.count - a.count)
  if (json) {
    const shown = sorted.map(([name, { count, fix, examples }]) => ({ reason: name, count, fix, examples }))
    printJson(shown)
    return
  }
  const lines = sorted.flatMap(([name, { count, fix, examples }]) => [
    `${name}: ${count.toLocaleString('en')}`,
    `  ${fix}`,
    ...examples.map(reject => `  ${rejectWords(reject)}`),
    '',
  ])
  printLines(lines.length === 0 ? ['No record is rejected.'] : lines)
}

function rejectWords({ object, line, reason, field, detail, source }: RejectLine): string {
  const where = `${object}, line ${line}`
  const what = [reason, ...(field === null ? [] : [field]), ...(detail === null ? [] : [detail])].join(', ')
  const cut = source.length > sourceShown ? `${source.slice(0, sourceShown)}…` : source
  return `${where}: ${what}: ${cut}`
}

/** What sending refused as far as the checkpoint counts it. */
async function* textsOf(folder: JobFolder): AsyncGenerator<string> {
  const checkpoint = readCheckpoint(folder)
  const begun = checkpoint === null ? [] : [checkpoint.identity.progress, ...checkpoint.parts]
  const progress = new Map(begun.map(each => [each.id, each]))
  for (const { path, part, isSent } of rejectFiles(folder))
    if (!isSent) yield* rejectTexts(path)
    else
      for await (const { text } of sentRejects(folder, progress.get(part) ?? { id: part, rejects_bytes: 0 })) yield text
}
