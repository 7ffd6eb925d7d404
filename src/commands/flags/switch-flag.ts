// `pennon flags enable`, `disable`, `archive` and `restore`.

import { archive, disable, enable, unarchive } from '#core/flags/definitions/narrow-writes.ts'
import { ClientError } from '../client/private-api.ts'
import { changeFlag, type FlagChange } from './change-flag.ts'
import type { ChangeOptions } from './confirm-change.ts'

const switches = {
  enable: { action: 'enable', write: enable },
  disable: { action: 'disable', write: disable },
  archive: { action: 'archive', write: archive },
  restore: { action: 'unarchive', write: unarchive },
} as const satisfies Record<string, FlagChange>

export function switchFlag(key: string, how: keyof typeof switches, options: ChangeOptions): Promise<void> {
  return changeFlag(key, options, flag => {
    if (how === 'enable' && flag.archived)
      throw new ClientError(`${flag.key} is archived. Restore it first: pennon flags restore ${flag.key}`)
    return switches[how]
  })
}
