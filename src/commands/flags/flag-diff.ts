// Describes a change of a flag: lines for the difference, and for the number of persons who get another value.

import type { ChangeableFlag } from '#core/flags/definitions/single-flag-changes.ts'
import { formatCount } from '#core/format-count.ts'
import type { JsonObject } from '#core/json.ts'
import { toPrintableName } from '#core/printable.ts'
import type { Terminal } from '../client/terminal.ts'
import { describeConditions, formatVariantLines } from './describe-rollout.ts'

/** The flag after its fields are written; the write also switches off an archived flag. */
export function applyFlagFields(flag: ChangeableFlag, fields: Partial<ChangeableFlag>): ChangeableFlag {
  const { archived = flag.archived, active = flag.active, filters = flag.filters } = fields
  return { archived, active: active && !archived, filters }
}

/** @param before null for a new flag. */
export function formatDiff(before: ChangeableFlag | null, after: ChangeableFlag, terminal: Terminal): string[] {
  const old = before === null ? [] : listFacts(before)
  const now = listFacts(after)
  return [
    ...removeLines(old, now).map(line => terminal.paint('red', `- ${toPrintableName(line)}`)),
    ...removeLines(now, old).map(line => terminal.paint('green', `+ ${toPrintableName(line)}`)),
  ]
}

function listFacts({ active, archived, filters }: ChangeableFlag): string[] {
  const conditions = describeConditions(filters)
  return [
    active ? 'enabled' : 'disabled',
    ...(archived ? ['archived'] : []),
    ...(conditions.length === 0 ? ['no conditions: off for all users'] : conditions),
    ...formatVariantLines(filters).map(line => `variant ${line}`),
  ]
}

/** Removes from `lines` one occurrence for each line of `others`. */
function removeLines(lines: readonly string[], others: readonly string[]): string[] {
  const left = [...others]
  return lines.filter(line => {
    const at = left.indexOf(line)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

/** @param reach the last line of the answer of `/feature_flags/reach/`, which may be an error. */
export function formatAffectedCounts(reach: JsonObject): string {
  const readCount = (name: string) => Number(reach[name] ?? 0)
  const error = reach.error as JsonObject | undefined
  if (error !== undefined) return `The affected persons could not be counted: ${error.detail}`
  const [one, many] =
    reach.population === 'groups' ? ['stored group', 'stored groups'] : ['stored person', 'stored persons']
  const parts = [
    [readCount('gained'), 'gain the flag', 'gains the flag'],
    [readCount('lost'), 'lose the flag', 'loses the flag'],
    [readCount('moved'), 'change to another value', 'changes to another value'],
  ] as const
  const affected = parts
    .filter(([number]) => number > 0)
    .map(([number, many, one]) => `${number.toLocaleString('en')} ${number === 1 ? one : many}`)
  return `Of ${formatCount(readCount('evaluated'), one, many)}, ${affected.length === 0 ? 'none gets another value' : affected.join(', ')}.`
}
