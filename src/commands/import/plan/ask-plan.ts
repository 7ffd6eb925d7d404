// What `pennon import plan` asks for on a terminal when it was not said: the source, the files, the project. A script gives
// options, and is told which of them are missing.

import { printable } from '#commands/client/printable.ts'
import { refuse } from '#commands/refuse.ts'
import { findRawFiles } from '#importer/read/raw-files.ts'
import { sourceNames } from '#importer/sources/sources.ts'
import { ask, canAsk } from '../words/prompt.ts'
import { whyNoAddress, whyNotTheTarget } from './ask-target.ts'
import type { PlanOptions } from './plan-options.ts'

/** As commander gives them: nothing is required, since a terminal can be asked. */
export type GivenPlanOptions = Omit<PlanOptions, 'source'> & Partial<Pick<PlanOptions, 'source'>>

export interface CompletedPlan {
  readonly options: PlanOptions
  readonly files: readonly string[]
}

/** @param fetched what the folder was fetched from; undefined when nothing was fetched into it. */
export async function completed(
  given: GivenPlanOptions,
  files: readonly string[],
  fetched: { readonly source: string | null } | undefined,
): Promise<CompletedPlan> {
  const source = given.source ?? fetched?.source ?? (await askForSource())
  const named = files.length === 0 && fetched === undefined ? await askForFiles() : files
  return { options: { ...given, source, ...(await askForTarget(given)) }, files: named }
}

async function askForSource(): Promise<string> {
  if (!canAsk()) refuse(`say what product it is from: --source is one of ${sourceNames.join(', ')}`)
  for (;;) {
    const source = await ask(`What product is it from? ${sourceNames.join(', ')}`)
    if (sourceNames.includes(source)) return source
    tell(`there is no source ${JSON.stringify(source)}`)
  }
}

/** Paths are taken as they are typed: only a shell knows `*` and `~`. */
async function askForFiles(): Promise<readonly string[]> {
  if (!canAsk()) return []
  for (;;) {
    const path = await ask('File or folder of the export')
    const problem = path === '' ? 'an import needs one' : await whyNoFiles(path)
    if (problem === null) return [path]
    tell(problem)
  }
}

async function whyNoFiles(path: string): Promise<string | null> {
  try {
    return (await findRawFiles([path])).length === 0 ? `there is no file in ${path}` : null
  } catch (error) {
    return `${path} cannot be read: ${(error as Error).message}`
  }
}

async function askForTarget({
  projectKey,
  host,
  json,
}: GivenPlanOptions): Promise<{ projectKey?: string; host?: string }> {
  if (projectKey !== undefined || process.env.PENNON_PROJECT_KEY !== undefined || !canAsk() || json === true) return {}
  for (;;) {
    const typed = await askForKey()
    if (typed === '') return {}
    const address = host ?? (await askForAddress())
    const target = { projectKey: typed, ...(address !== '' && { host: address }) }
    const problem = await whyNotTheTarget(target)
    if (problem === null) return target
    // Where --host says the address, only the key is asked for anew.
    tell(problem)
  }
}

async function askForKey(): Promise<string> {
  for (;;) {
    const typed = await ask('Public key (phc_…) of the project that it is for; empty to rehearse only')
    if (typed === '' || /^[\w-]+$/.test(typed)) return typed
    tell('that is no public key of a project, such as phc_…; its settings show it')
  }
}

async function askForAddress(): Promise<string> {
  for (;;) {
    const typed = await ask('Address of the instance; empty for the one that HOST and PORT say')
    const problem = typed === '' ? null : whyNoAddress(typed)
    if (problem === null) return typed
    tell(problem)
  }
}

function tell(problem: string): void {
  process.stdout.write(`${printable(problem)}\n`)
}
