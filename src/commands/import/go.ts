// `pennon import go FILES…`: runs the commands of an import one after the other, for a person at a terminal with a few
// files.

import { existsSync } from 'node:fs'
import { isJobFolder } from '#importer/job/job-folder.ts'
import { canAskQuestions, terminalPrompter } from '../client/prompt.ts'
import { refuse } from '../refuse.ts'
import { publishOrDiscardImport } from './end-job.ts'
import { findSourceOrRefuse } from './job/open-job.ts'
import { printLines, quotePath } from './messages/print.ts'
import { askForSource, type GivenPlanOptions } from './plan/complete-plan-options.ts'
import { planImport } from './plan/plan.ts'
import { runImport } from './run/run.ts'

/** As commander gives them. */
interface GoOptions extends GivenPlanOptions {
  readonly folder?: string
  readonly overlapOk?: boolean
}

export async function importFiles(
  files: readonly string[],
  { folder, overlapOk = false, ...given }: GoOptions,
): Promise<void> {
  if (!canAskQuestions()) {
    const at = quotePath(folder ?? 'FOLDER')
    refuse(
      `there is no terminal to ask at. Use instead: pennon import plan ${at} ${files.map(quotePath).join(' ')} --source ${given.source ?? 'NAME'}; pennon import run ${at}, and again with the --yes that it prints; pennon import publish ${at} --project NAME`,
    )
  }
  const { name: source } = findSourceOrRefuse(given.source ?? (await askForSource(terminalPrompter)))
  const path = folder ?? findUnusedPath(`import-${new Date().toISOString().slice(0, 10)}-${source}`)
  if (existsSync(path) && isJobFolder(path))
    refuse(`${path} already contains an import. To continue it: pennon import run ${quotePath(path)}`)
  printLines([`The folder of the import: ${path}`])
  await planImport(path, files, { ...given, source, isFollowed: true })
  if (await runImport(path, { overlapOk, isFollowed: true })) await publishOrDiscardImport('publish', path, {})
}

function findUnusedPath(path: string): string {
  for (let nth = 2, at = path; ; at = `${path}-${nth++}`) if (!existsSync(at)) return at
}
