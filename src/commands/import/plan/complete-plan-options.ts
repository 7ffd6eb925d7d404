// Questions of `pennon import plan` on a terminal about what the options do not say: source, files, mapping, project. In a
// script, a missing option is an error.

import { homedir } from 'node:os'
import { join } from 'node:path'
import { refuse } from '#commands/refuse.ts'
import { inDocs } from '#distribution.ts'
import { findRawFiles } from '#importer/read/raw-files.ts'
import { sourceNames } from '#importer/sources/sources.ts'
import { type Prompter, terminalPrompter } from '../../client/prompt.ts'
import { findJsonFileProblem, type PlanOptions, readJsonFile } from './plan-options.ts'
import {
  findAddressProblem,
  findDefaultAddress,
  findProjectKey,
  findProjectKeyProblem,
  findTargetProblem,
} from './resolve-target.ts'

/** Options as commander gives them. None is required, since the user at the terminal can be asked. */
export type GivenPlanOptions = Omit<PlanOptions, 'source'> &
  Partial<Pick<PlanOptions, 'source'>> & {
    /** Set by `pennon import go`, which runs the next step itself, so that it is not printed. */
    readonly isFollowed?: boolean
  }

/** @param fetched what the folder was fetched from; undefined when nothing was fetched into it. */
export async function completePlanOptions(
  given: GivenPlanOptions,
  files: readonly string[],
  fetched: { readonly source: string | null } | undefined,
  person: Prompter = terminalPrompter,
): Promise<{ readonly options: PlanOptions; readonly files: readonly string[] }> {
  const source = given.source ?? fetched?.source ?? (await askForSource(person))
  const named = files.length === 0 && fetched === undefined ? await askForFiles(person) : files
  const mapping = await askForMapping({ ...given, source }, person)
  return { options: { ...given, source, ...mapping, ...(await askForTarget(given, person)) }, files: named }
}

export async function askForSource(person: Prompter): Promise<string> {
  if (!person.canAsk()) refuse(`set the source product: --source is one of ${sourceNames.join(', ')}`)
  return askUntilValid(person, `Which product is it from? ${sourceNames.join(', ')}`, source =>
    sourceNames.includes(source) ? null : `there is no source ${JSON.stringify(source)}`,
  )
}

async function askForFiles(person: Prompter): Promise<readonly string[]> {
  if (!person.canAsk()) return []
  const question = 'File or folder of the export (for several, pass them as arguments)'
  const path = await askUntilValid(person, question, typed =>
    typed === '' ? 'an import needs one' : findFilesProblem(expandHome(typed)),
  )
  return [expandHome(path)]
}

async function findFilesProblem(path: string): Promise<string | null> {
  try {
    return (await findRawFiles([path])).length === 0 ? `there is no file in ${path}` : null
  } catch (error) {
    return `${path} cannot be read: ${(error as Error).message}`
  }
}

/** Generic files need a mapping, which may also be part of the configuration. */
async function askForMapping(
  { source, mapping, config }: PlanOptions,
  person: Prompter,
): Promise<Pick<PlanOptions, 'mapping'>> {
  if (source !== 'generic' || mapping !== undefined || !person.canAsk()) return {}
  if (config !== undefined && Object.hasOwn(readJsonFile(config, '--config'), 'mapping')) return {}
  const question = `Mapping file, which maps record fields to event, id and time${inDocs('import-mapping.md')}`
  const path = await askUntilValid(person, question, typed =>
    typed === '' ? 'the source generic needs one' : findJsonFileProblem(expandHome(typed), 'the mapping'),
  )
  return { mapping: expandHome(path) }
}

async function askUntilValid(
  person: Prompter,
  question: string,
  findProblem: (typed: string) => string | null | Promise<string | null>,
  byDefault?: string,
): Promise<string> {
  for (;;) {
    const typed = await person.ask(question, byDefault)
    const problem = await findProblem(typed)
    if (problem === null) return typed
    person.print(problem)
  }
}

/** Replaces `~` at the start of a typed path with the home folder, as a shell would. */
function expandHome(path: string): string {
  return path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : path
}

async function askForTarget(
  { projectKey, host, json }: GivenPlanOptions,
  person: Prompter,
): Promise<{ projectKey?: string; host?: string }> {
  if (!person.canAsk() || json === true) return {}
  const known = findProjectKey({ ...(projectKey !== undefined && { projectKey }) })
  if (known !== null) {
    // Planning checks a given address later; the default address may be wrong, so check it here and ask if it is.
    if (host !== undefined) return {}
    const problem = await findTargetProblem({ projectKey: known })
    if (problem === null) return {}
    person.print(problem)
  }
  const keyQuestion = 'Project API key (phc_…) of the target project; empty to rehearse only'
  const findTypedProblem = (typed: string) => (typed === '' ? null : findProjectKeyProblem(typed))
  for (;;) {
    const key = known ?? (await askUntilValid(person, keyQuestion, findTypedProblem))
    if (key === '') return {}
    const address = host ?? (await askForAddress(person))
    const target = { projectKey: key, ...(address !== undefined && { host: address }) }
    const problem = await findTargetProblem(target)
    if (problem === null) return target
    // Ask again; if `--host` is given, only for the key.
    person.print(problem)
  }
}

/** @returns undefined for the default address, whose private API may have a separate port. */
async function askForAddress(person: Prompter): Promise<string | undefined> {
  const byDefault = findDefaultAddress()
  const typed = await askUntilValid(person, 'URL of the instance', findAddressProblem, byDefault)
  return typed === byDefault ? undefined : typed
}
