// `pennon flags import`: writes the flags and cohorts of a file to a project, after showing and counting the changes.
// Unchanged definitions are not written, so an interrupted import can be run again.

import { replaceReferenceValues } from '#core/flags/definitions/replace-references.ts'
import { formatCount } from '#core/format-count.ts'
import { type JsonObject, type JsonValue, toCompactJson } from '#core/json.ts'
import type { JsonChange } from '#core/json-diff.ts'
import { toPrintableName } from '#core/printable.ts'
import { ClientError, type PrivateApi } from '../client/private-api.ts'
import { terminalPrompter } from '../client/prompt.ts'
import { runClient } from '../client/run-client.ts'
import { createTerminal, type Terminal } from '../client/terminal.ts'
import { askYesOrNo, type ChangeOptions, describeAffectedPersons } from './confirm-change.ts'
import { fetchDefinitionLists } from './export-flags.ts'
import { formatDiff } from './flag-diff.ts'
import { printJson, printLines } from './output.ts'
import {
  buildWriteBody,
  type FlagImportPlan,
  formatDefinitionTitle,
  hasFlagRules,
  type PlannedFlagWrite,
  type PlannedWrite,
  planFlagImport,
  type ReferenceIds,
} from './plan-import.ts'
import { type ListFiles, readFlagFiles } from './read-flag-files.ts'
import { formatWriteCounts, writePlannedFlags } from './write-planned-flags.ts'

export interface ImportFlagsOptions extends ChangeOptions, ListFiles {
  /** Only show what would be written. */
  readonly dryRun?: boolean
}

/** The most flags whose reach is counted, since each count reads all persons. */
const countedFlagsMax = 20

export function importFlags(paths: readonly string[], options: ImportFlagsOptions): Promise<void> {
  return runClient(options, 'feature_flag:write, cohort:write and group:read', api =>
    importFlagsByApi(api, paths, options),
  )
}

/** @throws ClientError, also after a partial write; its message then lists the written definitions. */
export async function importFlagsByApi(
  api: PrivateApi,
  paths: readonly string[],
  options: ImportFlagsOptions,
): Promise<void> {
  const { json = false, yes = false, dryRun = false } = options
  if (json && !yes && !dryRun) throw new ClientError('--json cannot ask for confirmation: add --yes or --dry-run.')
  const { file, notes } = readFlagFiles(paths, options)
  const plan = await planFlagImport(file, await fetchDefinitionLists(api))
  const problems = plan.problems.length > 0 ? plan.problems : await findRightsProblems(api, plan)
  if (problems.length > 0) {
    for (const problem of problems) process.stderr.write(`pennon: ${toPrintableName(problem)}\n`)
    throw new ClientError(`Nothing was written: ${formatCount(problems.length, 'problem')}, listed above.`)
  }
  if (!json)
    printLines([
      ...formatPlanLines(plan, createTerminal(process.stdout)),
      ...notes.map(note => `Note: ${toPrintableName(note)}`),
    ])
  const written = new Map<PlannedWrite, JsonObject>()
  const printResult = () => {
    if (json) printJson({ dry_run: dryRun, ...buildResults(plan, written), notes: [...notes] })
  }
  if (plan.writes.length === 0) {
    if (!json) printLines(['Nothing to write.'])
    return printResult()
  }
  if (dryRun) {
    if (!json) printLines([...(await describeReachOfPlan(api, plan)), 'Nothing was written: this is a dry run.'])
    return printResult()
  }
  if (!yes && !(await isConfirmed(api, plan))) return
  try {
    await writePlannedFlags(api, plan, (write, answer) => {
      written.set(write, answer)
      const line = `${write.before === null ? 'created' : 'changed'} ${formatDefinitionTitle(write)}, version ${answer.version}`
      if (!json) printLines([toPrintableName(line)])
    })
  } finally {
    printResult()
  }
}

/** Rules keep their seeds only if they are written without validation; that requires a key with all scopes. */
async function findRightsProblems(api: PrivateApi, { writes }: FlagImportPlan): Promise<string[]> {
  const ofRules = writes.find(write => write.kind === 'flag' && hasFlagRules(write))
  if (ofRules === undefined) return []
  const { scopes } = await api.ownKey()
  return Array.isArray(scopes) && scopes.includes('*')
    ? []
    : [
        `${formatDefinitionTitle(ofRules)}: importing a flag with rules requires a key with all scopes, ["*"]. To create one: pennon new-key.`,
      ]
}

async function isConfirmed(api: PrivateApi, plan: FlagImportPlan): Promise<boolean> {
  if (!terminalPrompter.canAsk())
    throw new ClientError(
      'Nothing was written: there is no terminal to ask for confirmation. Add --yes to write without asking.',
    )
  printLines(['Counting affected persons. Ctrl-C cancels without changes.', ...(await describeReachOfPlan(api, plan))])
  const isYes = await askYesOrNo(terminalPrompter, `Write ${formatWriteCounts(plan.writes)}`)
  if (!isYes) printLines(['Nothing was written.'])
  return isYes
}

export function formatPlanLines({ writes, same, ids }: FlagImportPlan, terminal: Terminal): string[] {
  const lines = writes.flatMap(write => {
    const [first, ...rest] = formatDefinitionTitle(write)
    const title = toPrintableName(first!.toUpperCase() + rest.join(''))
    if (write.before !== null)
      return [
        `${title}, version ${write.before.version}`,
        ...write.changes.map(change => `  ${formatChangeLine(change, terminal)}`),
      ]
    if (write.kind === 'cohort')
      return [`${title}, new${write.wanted.is_static ? ': static, and without members' : ''}`]
    return [`${title}, new`, ...formatNewFlag(write, ids, terminal).map(line => `  ${line}`)]
  })
  return same.length === 0 ? lines : [...lines, `Already up to date: ${formatWriteCounts(same)}.`]
}

function formatNewFlag(write: PlannedFlagWrite, ids: ReferenceIds, terminal: Terminal): string[] {
  const { active, archived, filters } = write.wanted
  // Descriptions of conditions need the group type's index, but cohorts and flags by name. Rules refer to none of these.
  const groupType = (name: JsonValue) => ids.find('group_type', name) ?? name
  const shown = hasFlagRules(write)
    ? filters
    : replaceReferenceValues(filters, { cohort: name => name, flag: key => key, groupType })
  return formatDiff(null, { active, archived: archived === true, filters: shown }, terminal)
}

function formatChangeLine({ path, action, before, after }: JsonChange, terminal: Terminal): string {
  const [old, now] = [terminal.paint('red', formatValue(before)), terminal.paint('green', formatValue(after))]
  const change = action === 'created' ? `+ ${now}` : action === 'deleted' ? `- ${old}` : `${old} → ${now}`
  return `${toPrintableName(path)}: ${change}`
}

const shownCharsMax = 160

function formatValue(value: JsonValue): string {
  const text = toCompactJson(value)
  return toPrintableName(text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text)
}

/** A line for each flag that is or will be on. */
async function describeReachOfPlan(api: PrivateApi, plan: FlagImportPlan): Promise<string[]> {
  const flags = plan.writes
    .filter(write => write.kind === 'flag')
    .filter(({ wanted, before }) => wanted.active || before?.active === true)
  const lines: string[] = []
  for (const write of flags.slice(0, countedFlagsMax))
    lines.push(`${write.name}: ${await describeReach(api, write, plan)}`)
  if (flags.length > countedFlagsMax)
    lines.push(`Not counted for ${formatCount(flags.length - countedFlagsMax, 'more flag')}.`)
  return lines.map(toPrintableName)
}

async function describeReach(api: PrivateApi, write: PlannedFlagWrite, { ids }: FlagImportPlan): Promise<string> {
  if (!ids.areKnown(write.wanted.filters))
    return 'it uses objects that this import creates, so affected persons cannot be counted yet.'
  const { version: _, ...fields } = buildWriteBody(write, ids)
  const id = write.before?.id
  return describeAffectedPersons(api, id === undefined ? fields : { id, ...fields }, {
    keepsIdentity: hasFlagRules(write),
  })
}

function buildResults({ writes, same }: FlagImportPlan, written: ReadonlyMap<PlannedWrite, JsonObject>) {
  const unchanged = new Set(same)
  const toResult = (write: PlannedWrite): JsonObject => {
    const { kind, name, before, changes } = write
    const now = written.get(write) ?? before
    return {
      [kind === 'flag' ? 'key' : 'name']: name,
      action: unchanged.has(write) ? 'none' : before === null ? 'create' : 'update',
      written: written.has(write),
      id: now?.id ?? null,
      version: now?.version ?? null,
      changes: changes.map(change => ({ ...change })),
    }
  }
  const all = [...writes, ...same]
  return {
    cohorts: all.filter(({ kind }) => kind === 'cohort').map(toResult),
    flags: all.filter(({ kind }) => kind === 'flag').map(toResult),
  }
}
