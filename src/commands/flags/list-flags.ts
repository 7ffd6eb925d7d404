// `pennon flags list`: prints a table of flags.

import type { FlagJson } from '#wire/management/flags/flags.ts'
import type { ClientOptions } from '../client/run-client.ts'
import { runClient } from '../client/run-client.ts'
import { type Column, formatTable } from '../client/table.ts'
import { createTerminal, type Style, type Terminal } from '../client/terminal.ts'
import { describeRollout } from './describe-rollout.ts'
import { printJson, printLines } from './output.ts'

export interface ListOptions extends ClientOptions {
  readonly search?: string
  readonly active?: string
  readonly archived?: boolean
}

export function listFlags(options: ListOptions): Promise<void> {
  return runClient(options, 'feature_flag:read', async api => {
    const { search, active, archived } = options
    const flags = await api.list('/feature_flags/', {
      search,
      active,
      ...(archived === true ? { archived: 'true' } : {}),
    })
    if (options.json === true) printJson(flags)
    else if (flags.length === 0 && (search ?? active ?? archived) !== undefined) printLines(['No matching flags.'])
    else printLines(formatFlagTable(flags as unknown as FlagJson[], createTerminal(process.stdout)))
  })
}

export function formatFlagTable(flags: readonly FlagJson[], terminal: Terminal): string[] {
  if (flags.length === 0) return ['No flags.']
  return formatTable(columns, flags, terminal)
}

export const statusStyles: Readonly<Record<FlagJson['status'], Style>> = {
  ACTIVE: 'green',
  STALE: 'yellow',
  INACTIVE: 'dim',
  ARCHIVED: 'dim',
  DELETED: 'red',
}

const columns: readonly Column<FlagJson>[] = [
  { title: 'KEY', value: ({ key }) => key, widthMin: 12, style: () => 'bold' },
  { title: 'STATUS', value: ({ status }) => status.toLowerCase(), style: ({ status }) => statusStyles[status] },
  { title: 'ROLLOUT', value: ({ filters }) => describeRollout(filters), widthMin: 10 },
  { title: 'LAST CALLED', value: ({ last_called_at: at }) => at?.slice(0, 16).replace('T', ' ') ?? '' },
  { title: 'CHANGED', value: ({ updated_at: at }) => at.slice(0, 10), style: () => 'dim' },
  { title: 'TAGS', value: ({ tags }) => tags.join(', '), widthMin: 4 },
  { title: 'NAME', value: ({ name }) => name, widthMin: 8 },
]
