// `pennon flags history`: shows who changed a flag, when, and how.

import type { ActivityJson } from '#wire/management/activity.ts'
import { type ClientOptions, runClient } from '../client/run-client.ts'
import { type Column, formatTable } from '../client/table.ts'
import { createTerminal } from '../client/terminal.ts'
import { truncateToWidth } from '../client/text-width.ts'
import { buildFlagPath, requestWithFlagHint } from './find-flag.ts'
import { printJson, printLines } from './output.ts'

type Entry = Pick<ActivityJson, 'user' | 'activity' | 'detail' | 'created_at'>

export function showHistory(key: string, options: ClientOptions): Promise<void> {
  return runClient(options, 'feature_flag:read', async api => {
    const entries = await requestWithFlagHint(api, key, () => api.list(buildFlagPath(key, 'activity/')))
    if (options.json === true) printJson(entries)
    else printLines(formatTable(columns, entries as unknown as Entry[], createTerminal(process.stdout)))
  })
}

const columns: readonly Column<Entry>[] = [
  { title: 'VERSION', value: ({ detail }) => String(detail.version), align: 'right', style: () => 'bold' },
  { title: 'TIME', value: ({ created_at: at }) => at.slice(0, 19).replace('T', ' ') },
  { title: 'BY', value: ({ user }) => user?.first_name ?? '', widthMin: 6 },
  { title: 'CHANGE', value: describeEntry, widthMin: 20 },
]

function describeEntry({ activity, detail }: Entry): string {
  if (activity !== 'updated') return activity
  return detail.changes
    .map(({ path, before, after }) => `${path}: ${formatValue(before)} → ${formatValue(after)}`)
    .join(', ')
}

/** Enough for most values; `--json` has long ones, such as payloads. */
const valueWidthMax = 40

function formatValue(value: unknown): string {
  return value === null ? 'none' : truncateToWidth(JSON.stringify(value), valueWidthMax)
}
