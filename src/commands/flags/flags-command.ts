// The options and help of `pennon flags`. What the commands do is loaded only when one is called.

import { type Command, Option } from 'commander'
import type { ClientOptions } from '../client/run-client.ts'
import type { ExplainOptions } from './explain-flag.ts'
import type { ListOptions } from './list-flags.ts'
import type { UsageOptions } from './show-usage.ts'

export function addFlagsCommand(program: Command): void {
  const flags = program
    .command('flags')
    .description('feature flags of a running instance: list, show, usage, explain')
    .addHelpText(
      'after',
      `
The personal API key, with the scope feature_flag:read, is in PENNON_PERSONAL_KEY; \`pennon new-key\` makes one where the
instance runs. The instance is the one at the address in PENNON, else that of the settings (HOST, PORT, PENNON_ADMIN_PORT); --host names another.

  $ export PENNON_PERSONAL_KEY=phx_…
  $ pennon flags list --host https://pennon.example
  $ pennon flags usage new-checkout --from -7d
  $ pennon flags explain new-checkout ada@example.com --property plan=pro

A terminal gets tables and colours, a file or a pipe tables without colours, and --json what the private API answers.

Exit codes: 0 done; 1 the instance failed or did not answer in time, or the output could not be written; 2 no key, a key
without the right, no instance at the address, or no such flag; one line on stderr says which, and the way out.`,
    )

  asking(flags.command('list').description('list flags, newest first'))
    .option('--search <text>', 'only those with this text in key or name')
    .addOption(
      new Option('--active <state>', 'only those that are switched on or off, or that are on and stale').choices([
        'true',
        'false',
        'stale',
      ]),
    )
    .option('--archived', 'only those that are archived, which are left out otherwise')
    .addHelpText(
      'after',
      `
ROLLOUT says whom the conditions let in: everybody, nobody, or the largest percentage of those whom a condition is for.
STALE flags are likely safe to remove: not called for 30 days; or without a known call and the same for everybody for 30
days; or rolled out to nobody for 30 days. \`pennon flags show\` says which.

  $ pennon flags list
  $ pennon flags list --search checkout --active true
  $ pennon flags list --active stale
  $ pennon flags list --json | jq -r '.[].key'`,
    )
    .action(async (options: ListOptions) => (await import('./list-flags.ts')).listFlags(options))

  asking(flags.command('show <flag>').description('show one flag, by key or id: its conditions, variants and payloads'))
    .addHelpText('after', '\n  $ pennon flags show new-checkout\n  $ pennon flags show 17 --json | jq .filters')
    .action(async (flag: string, options: ClientOptions) => (await import('./show-flag.ts')).showFlag(flag, options))

  asking(flags.command('usage <flag>').description('how often a flag was called, and by how many persons, per value'))
    .option('--from <date>', 'from when: a date, or a span such as -7d', '-30d')
    .option('--to <date>', 'until when; until now unless given')
    .addOption(new Option('--interval <interval>', 'what a bar stands for').choices(['day', 'hour']).default('day'))
    .addHelpText(
      'after',
      `
A row for each value that the flag was answered with, and a bar for each day; all rows have one scale. CALLS are all calls
that SDKs reported. PERSONS is the largest number of persons of one day, since the same person may come on several.

  $ pennon flags usage new-checkout
  $ pennon flags usage new-checkout --from -48h --interval hour
  $ pennon flags usage new-checkout --json | jq '.results[] | {value, calls}'`,
    )
    .action(async (flag: string, options: UsageOptions) => (await import('./show-usage.ts')).showUsage(flag, options))

  asking(flags.command('explain <flag> <distinct-id>').description('why a flag has its value for somebody'))
    .option('--property <key=value>', 'a person property that replaces the stored one; may be repeated', repeated)
    .option('--group <type=key>', 'a group that the person belongs to; may be repeated', repeated)
    .addHelpText(
      'after',
      `
Each condition set in order, with what its filters were compared with. A value that is JSON (true, 18, ["a"]) is taken as
that, anything else as text. Nothing is written or counted.

  $ pennon flags explain new-checkout ada@example.com
  $ pennon flags explain new-checkout ada@example.com --property plan=pro --property age=18
  $ pennon flags explain company-beta ada@example.com --group company=acme`,
    )
    .action(async (flag: string, distinctId: string, options: ExplainOptions) =>
      (await import('./explain-flag.ts')).explainFlag(flag, distinctId, options),
    )
}

function asking(command: Command): Command {
  return command
    .option('--host <address>', 'where the private API is; by PENNON, or HOST and PENNON_ADMIN_PORT, unless given')
    .option('--project <id>', 'id of the project', '@current')
    .option('--json', 'print what the private API answers, as JSON')
}

function repeated(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}
