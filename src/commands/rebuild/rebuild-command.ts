// Options and help of `pennon rebuild`. The code of a command is loaded only when it is called.

import type { Command } from 'commander'
import { addAddressOptions } from '../client/instance-address.ts'
import type { RebuildOptions } from './rebuild-persons.ts'

export function addRebuildCommand(program: Command): void {
  const rebuild = program.command('rebuild').description('repair data of a running instance by its events: persons')

  addAddressOptions(
    rebuild.command('persons [ids...]').description('make persons what their stored events make of them'),
  )
    .option('--all', 'all persons of the project')
    .option('--apply', 'change the persons (default: only show what would change)')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
IDS are up to 1,000 distinct ids, or uuids of persons; a uuid counts twice, since it may be a distinct id, too. Each
includes the distinct ids that any event links with it. --all takes every distinct id that has a person; name a missing
person by its distinct id.

Without --apply nothing is changed: the result shows which persons would change, and in which properties. Events that
were deleted no longer count: a person loses the values, and the links of its distinct ids, that only deleted events
explain, and a person without any event is removed, with its flag assignments. Look at the result before you add --apply.
A split of a person (private API) stays.

The worker does this between import jobs, while it processes live events. Ctrl-C stops waiting, but not the worker. Set
PENNON_PERSONAL_KEY to a personal API key with the scopes person:read and person:write; \`pennon new-key\` creates one
where the instance runs.

  $ export PENNON_PERSONAL_KEY=phx_…
  $ pennon rebuild persons ada@example.com
  $ pennon rebuild persons ada@example.com --apply
  $ pennon rebuild persons --all --json | jq .report
  $ pennon rebuild persons --all --apply --host https://pennon.example

Exit codes: 0 done; 1 the instance failed or did not answer in time; 2 no key, a key without the right, no instance at
the address, or another rebuild of the project is not done yet; one line on stderr says which, and the remedy.`,
    )
    .action(async (ids: string[], options: RebuildOptions) =>
      (await import('./rebuild-persons.ts')).rebuildPersons(ids, options),
    )
}
