// Confirmation of a change to a flag: shows the difference and the affected persons, and asks yes or no.

import type { ChangeableFlag } from '#core/flags/definitions/single-flag-changes.ts'
import type { JsonObject } from '#core/json.ts'
import { toPrintableName } from '#core/printable.ts'
import { ClientError, type PrivateApi } from '../client/private-api.ts'
import { type Prompter, terminalPrompter } from '../client/prompt.ts'
import type { ClientOptions } from '../client/run-client.ts'
import { createTerminal } from '../client/terminal.ts'
import { formatAffectedCounts, formatDiff } from './flag-diff.ts'
import { printLines } from './output.ts'

export interface ChangeOptions extends ClientOptions {
  /** Whether to change the flag without asking. */
  readonly yes?: boolean
}

export interface PlannedChange {
  readonly title: string
  /** Null for a new flag. */
  readonly before: ChangeableFlag | null
  readonly after: ChangeableFlag
  /** For counting the affected persons: the changed fields, and the id of an existing flag. */
  readonly definition: JsonObject
}

/** @throws ClientError for `--json` without `--yes`, since the question would be part of the output. */
export function refuseUnconfirmableChange({ json, yes }: ChangeOptions): void {
  if (json === true && yes !== true) throw new ClientError('--json cannot ask for confirmation: add --yes.')
}

/**
 * @returns whether the change was confirmed. `--yes` confirms it without counting the affected persons.
 * @throws ClientError if there is no terminal to ask.
 */
export async function confirmChange(
  api: PrivateApi,
  { json, yes }: ChangeOptions,
  { title, before, after, definition }: PlannedChange,
): Promise<boolean> {
  if (json !== true)
    printLines([
      toPrintableName(title),
      ...formatDiff(before, after, createTerminal(process.stdout)).map(line => `  ${line}`),
    ])
  if (yes === true) return true
  const canAsk = terminalPrompter.canAsk()
  if (canAsk) printLines(['Counting affected persons. Ctrl-C cancels without changes.'])
  printLines([toPrintableName(await describeAffectedPersons(api, definition))])
  if (!canAsk)
    throw new ClientError(
      'Nothing was changed: there is no terminal to ask for confirmation. Add --yes to change without asking.',
    )
  if (await askYesOrNo(terminalPrompter, before === null ? 'Make it' : 'Change it')) return true
  printLines(['Nothing was changed.'])
  return false
}

/** Anything but a plain yes means no. */
export async function askYesOrNo(person: Pick<Prompter, 'ask'>, what: string): Promise<boolean> {
  const answer = await person.ask(`${what}? y or n`, 'n')
  return ['y', 'yes'].includes(answer.toLowerCase())
}

/**
 * @param keepsIdentity whether the given definition's rule ids and seeds are used, which requires a key with all scopes.
 */
export async function describeAffectedPersons(
  api: PrivateApi,
  definition: JsonObject,
  { keepsIdentity = false }: { keepsIdentity?: boolean } = {},
): Promise<string> {
  try {
    const query = keepsIdentity ? { skip_validation: 'true' } : {}
    return formatAffectedCounts(await api.postForLastLine('/feature_flags/reach/', { definition }, query))
  } catch (error) {
    // Some changes cannot be counted: of a flag that is evaluated by device, or with a key that lacks the scope.
    if (!(error instanceof ClientError) || error.status === null || error.exitCode === 1) throw error
    return `The affected persons could not be counted. ${error.message}`
  }
}
