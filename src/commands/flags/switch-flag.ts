// `pennon flags enable`, `disable`, `archive` and `restore`.

import { archive, disable, enable, unarchive } from '#core/flags/definitions/narrow-writes.ts'
import { changeFlag, type FlagChange } from './change-flag.ts'
import type { ChangeOptions } from './confirm-change.ts'

const switches = {
  enable: { action: 'enable', write: enable },
  disable: { action: 'disable', write: disable },
  archive: { action: 'archive', write: archive },
  restore: { action: 'unarchive', write: unarchive },
} as const satisfies Record<string, FlagChange>

export function switchFlag(key: string, how: keyof typeof switches, options: ChangeOptions): Promise<void> {
  return changeFlag(key, options, () => switches[how])
}
