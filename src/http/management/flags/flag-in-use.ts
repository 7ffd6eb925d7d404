// The error for a flag that cannot be deleted or archived because something uses it.

import type { FlagUser } from '#services/manage/retire-flags.ts'
import type { BulkErrorJson } from '#wire/management/flags/bulk-flags.ts'
import { type Caller, holdsScope } from '../kit/authenticate.ts'

/** Users named in the message; `used_by` lists all. */
const namedMax = 5

/** Names only users of the flag that the key may read. */
export function encodeInUse(
  by: readonly FlagUser[],
  how: string,
  caller: Caller,
): Pick<BulkErrorJson, 'reason' | 'used_by'> {
  const users = by.map(user => ({ ...user, name: mayRead(user, caller) ? user.name : null }))
  const named = users.slice(0, namedMax).map(({ kind, id, name }) => {
    const what = kind.replaceAll('_', ' ').replace('feature flag', 'flag')
    return `${what} ${name === null ? '' : `"${name}" `}(${id})`
  })
  const more = users.length > namedMax ? [`${users.length - namedMax} more`] : []
  return {
    reason: `The flag is in use, so it was not ${how}d: ${[...named, ...more].join(', ')}.`,
    used_by: users.map(({ kind, id, name }) => ({ type: kind, id, name })),
  }
}

function mayRead({ kind }: FlagUser, caller: Caller): boolean {
  return holdsScope(caller, `${kind}:read`)
}
