// Options and help of `pennon flags`. The code of a command is loaded only when it is called.

import { type Command, Option } from 'commander'
import { addAddressOptions, collectOption } from '../client/instance-address.ts'
import type { ClientOptions } from '../client/run-client.ts'
import type { ChangeOptions } from './confirm-change.ts'
import type { CreateOptions } from './create-flag.ts'
import type { ExplainOptions } from './explain-flag.ts'
import type { ImportFlagsOptions } from './import-flags.ts'
import type { ListOptions } from './list-flags.ts'
import type { RolloutOptions } from './roll-out.ts'
import type { UsageOptions } from './show-usage.ts'

export function addFlagsCommand(program: Command): void {
  const flags = program
    .command('flags')
    .description('feature flags of a running instance: list, create, enable, roll out, export and import')
    .addHelpText(
      'after',
      `
Set PENNON_PERSONAL_KEY to a personal API key with the scope feature_flag:read or feature_flag:write; \`pennon new-key\`
creates one where the instance runs. The instance is the one at PENNON, otherwise at HOST and PORT or
PENNON_ADMIN_PORT; --host overrides both, and needs a key of that instance.

  $ export PENNON_PERSONAL_KEY=phx_…
  $ pennon flags list --host https://pennon.example
  $ pennon flags usage new-checkout --from -7d
  $ pennon flags explain new-checkout ada@example.com --property plan=pro
  $ pennon flags rollout new-checkout 25

Commands that change a flag first show what will change and how many stored persons get another value (this count needs
the scope person:read), then ask for confirmation. --yes skips the count and the confirmation, for scripts; without a
terminal, nothing is changed unless --yes is given. If the flag already has the requested state, nothing is written. For
all other changes: export the flag, edit the file, import it.

A terminal gets coloured tables, a file or pipe plain tables, and --json prints the private API's response.

Exit codes: 0 done; 1 the instance failed or did not answer in time, or the output could not be written; 2 no key, a key
without the right, no instance at the address, or no such flag; one line on stderr says which, and the remedy.`,
    )

  addClientOptions(flags.command('list').description('list flags, newest first'))
    .option('--search <text>', 'only flags with this text in their key or name')
    .addOption(
      new Option('--active <state>', 'only enabled (true), disabled (false) or stale flags').choices([
        'true',
        'false',
        'stale',
      ]),
    )
    .option('--archived', 'only archived flags (default: only unarchived ones)')
    .addHelpText(
      'after',
      `
ROLLOUT shows the reach of the conditions: everyone, no one, or the largest percentage of any condition. STALE flags are
likely safe to remove: not called for 30 days; or without a recorded call and the same for all users for 30 days; or
rolled out to no users for 30 days. \`pennon flags show\` prints the reason.

  $ pennon flags list
  $ pennon flags list --search checkout --active true
  $ pennon flags list --active stale
  $ pennon flags list --json | jq -r '.[].key'`,
    )
    .action(async (options: ListOptions) => (await import('./list-flags.ts')).listFlags(options))

  addClientOptions(
    flags.command('show <flag>').description('show the conditions, variants and payloads of a flag, by key or id'),
  )
    .addHelpText('after', '\n  $ pennon flags show new-checkout\n  $ pennon flags show 17 --json | jq .filters')
    .action(async (flag: string, options: ClientOptions) => (await import('./show-flag.ts')).showFlag(flag, options))

  addClientOptions(
    flags.command('history <flag>').description('list the changes of a flag: when, by whom, and what, newest first'),
  )
    .addHelpText(
      'after',
      "\n  $ pennon flags history new-checkout\n  $ pennon flags history 17 --json | jq '.[0].detail.changes'",
    )
    .action(async (flag: string, options: ClientOptions) =>
      (await import('./show-history.ts')).showHistory(flag, options),
    )

  addClientOptions(flags.command('usage <flag>').description('count the calls and persons of a flag by value'))
    .option('--from <date>', 'start: a date, or a span such as -7d', '-30d')
    .option('--to <date>', 'end (default: now)')
    .addOption(new Option('--interval <interval>', 'time span of one bar').choices(['day', 'hour']).default('day'))
    .addHelpText(
      'after',
      `
Prints a row per flag value, with a bar per day; all rows have the same scale. CALLS counts all calls reported by SDKs.
PERSONS is the largest number of persons on one day, since the same person can appear on several days.

  $ pennon flags usage new-checkout
  $ pennon flags usage new-checkout --from -48h --interval hour
  $ pennon flags usage new-checkout --json | jq '.results[] | {value, calls}'`,
    )
    .action(async (flag: string, options: UsageOptions) => (await import('./show-usage.ts')).showUsage(flag, options))

  addClientOptions(
    flags.command('explain <flag> <distinct-id>').description('explain the value of a flag for a person'),
  )
    .option('--property <key=value>', 'person property that overrides the stored one; repeatable', collectOption)
    .option('--group <type=key>', 'group of the person; repeatable', collectOption)
    .addHelpText(
      'after',
      `
Prints each condition set in order, with the values its filters were compared with. Property values are read as JSON if
possible (true, 18, ["a"]), otherwise as text. Nothing is stored or counted.

  $ pennon flags explain new-checkout ada@example.com
  $ pennon flags explain new-checkout ada@example.com --property plan=pro --property age=18
  $ pennon flags explain company-beta ada@example.com --group company=acme`,
    )
    .action(async (flag: string, distinctId: string, options: ExplainOptions) =>
      (await import('./explain-flag.ts')).explainFlag(flag, distinctId, options),
    )

  addChangingCommands(flags)
  addFileCommands(flags)
}

function addChangingCommands(flags: Command): void {
  addConfirmationOption(flags.command('create <key>').description('create a flag; without conditions it is disabled'))
    .option('--name <text>', 'description of the flag')
    .option('--tag <tag>', 'a tag; repeatable', collectOption)
    .option('--rollout <percentage>', 'one condition for this percentage of all users')
    .option('--filters <json>', 'conditions, variants and payloads, as in the private API')
    .option('--active', 'enable the flag; without conditions, for all users')
    .option('--inactive', 'keep the flag disabled even with conditions')
    .addHelpText(
      'after',
      `
With --rollout or conditions in --filters, the flag is enabled immediately for the users they match. A version 2 flag
(--filters with rules) stays disabled without --active.

  $ pennon flags create new-checkout --name 'The checkout of 2027'
  $ pennon flags create new-checkout --rollout 10
  $ pennon flags create pro-only --filters \\
      '{"groups": [{"properties": [{"key": "plan", "type": "person", "value": "pro"}]}]}'`,
    )
    .action(async (key: string, options: CreateOptions) => (await import('./create-flag.ts')).createFlag(key, options))

  for (const [name, description, more] of [
    ['enable', 'enable a flag', 'Refused if it is archived, or if a flag it depends on is disabled.'],
    ['disable', 'disable a flag', 'Refused while enabled flags depend on it; the message names them.'],
    ['archive', 'archive a flag, which also disables it', 'Refused while it is in use; the message says by what.'],
    ['restore', 'unarchive a flag', 'It stays disabled until pennon flags enable.'],
  ] as const)
    addConfirmationOption(flags.command(`${name} <flag>`).description(description))
      .addHelpText(
        'after',
        `\n${more}\n\n  $ pennon flags ${name} new-checkout\n  $ pennon flags ${name} 17 --yes --json`,
      )
      .action(async (flag: string, options: ChangeOptions) =>
        (await import('./change-flag.ts')).changeFlagState(flag, name, options),
      )

  addConfirmationOption(
    flags.command('rollout <flag> <share>').description('set the percentage of a condition, or roll out to everyone'),
  )
    .option('--condition <number>', 'number of the condition in pennon flags show; required if there are several')
    .option('--variant <key>', 'with everyone: variant for all users; required if the flag has variants')
    .addHelpText(
      'after',
      `
SHARE is a percentage, or everyone, which inserts a condition for all users before the existing ones. Neither enables the
flag. If the flag is changed by someone else at the same time, the command exits with code 2 and can be repeated.

  $ pennon flags rollout new-checkout 25
  $ pennon flags rollout new-checkout 0 --condition 2 --yes
  $ pennon flags rollout new-checkout everyone --variant test`,
    )
    .action(async (flag: string, share: string, options: RolloutOptions) =>
      (await import('./roll-out.ts')).rollOutFlag(flag, share, options),
    )
}

function addFileCommands(flags: Command): void {
  addAddressOptions(
    flags.command('export [flag...]').description('export flags, and the cohorts they use, for another project'),
  )
    .addHelpText(
      'after',
      `
The file is written to stdout, notes about omitted data to stderr. It refers to objects by name instead of id, and is
sorted, so that version control shows changes. With flag keys, only these flags are exported, with everything they use.
Rules keep their seeds: with the same keys and seeds, users keep their values.

Included: flags (also archived ones), tags, and the cohorts and group type names that flags use. Not included: deleted
flags, encrypted payloads, members of static cohorts, experiments, surveys, and early access features except their flags.

Requires a key with the scopes feature_flag:read, cohort:read and group:read.

  $ pennon flags export > flags.json
  $ pennon flags export new-checkout search > two.json
  $ PENNON_PERSONAL_KEY=phx_of_the_other pennon flags import flags.json --host https://other.example`,
    )
    .action(async (keys: string[], options: ClientOptions) =>
      (await import('./export-flags.ts')).exportFlags(keys, options),
    )

  addAddressOptions(
    flags.command('import <file...>').description('import flags from a file, or from PostHog, into a project'),
  )
    .option('--json', 'print the changes as JSON')
    .option('--yes', 'import without confirmation')
    .option('--dry-run', 'show the changes and affected persons, and write nothing')
    .option('--cohorts <file>', "PostHog's list of cohorts; repeatable", collectOption)
    .option('--group-types <file>', "PostHog's list of group types", collectOption)
    .addHelpText(
      'after',
      `
FILE is a file from pennon flags export, or all pages of PostHog's response to GET /api/projects/:id/feature_flags/. If
PostHog's flags use cohorts or group types, also pass its lists of these (/cohorts/, /groups_types/).

Existing flags with the same key, and cohorts with the same name, are overwritten if they differ; everything else in the
project is unchanged. The whole file is checked before anything is written, and the changes are shown with the number of
persons who get another value. If the import stops early, it says what was written; run it again to continue.

Requires a key of the target instance with the scopes feature_flag:write, cohort:write and group:read, person:read for
the counts, and all scopes for flags with rules.

  $ pennon flags import flags.json --dry-run
  $ PENNON_PERSONAL_KEY=phx_of_the_other pennon flags import flags.json --host https://other.example
  $ pennon flags import flags.json --project 2 --yes --json
  $ pennon flags import page1.json page2.json --cohorts cohorts.json --group-types types.json`,
    )
    .action(async (paths: string[], options: ImportFlagsOptions) =>
      (await import('./import-flags.ts')).importFlags(paths, options),
    )
}

function addConfirmationOption(command: Command): Command {
  return addClientOptions(command).option('--yes', 'change without confirmation')
}

function addClientOptions(command: Command): Command {
  return addAddressOptions(command).option('--json', "print the private API's response as JSON")
}
