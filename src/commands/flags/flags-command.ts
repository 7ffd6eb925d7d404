// The options and help of `pennon flags`. What the commands do is loaded only when one is called.

import { type Command, Option } from 'commander'
import { addAddressOptions } from '../client/instance-address.ts'
import type { ClientOptions } from '../client/run-client.ts'
import type { ChangeOptions } from './confirm-change.ts'
import type { CreateOptions } from './create-flag.ts'
import type { ExplainOptions } from './explain-flag.ts'
import type { ImportOptions } from './import-flags.ts'
import type { ListOptions } from './list-flags.ts'
import type { RolloutOptions } from './roll-out.ts'
import type { UsageOptions } from './show-usage.ts'

export function addFlagsCommand(program: Command): void {
  const flags = program
    .command('flags')
    .description('feature flags of a running instance: read, create, switch, roll out, and move to another project')
    .addHelpText(
      'after',
      `
The personal API key, with the scope feature_flag:read or feature_flag:write, is in PENNON_PERSONAL_KEY; \`pennon new-key\`
makes one where the instance runs. The instance is the one at the address in PENNON, else that of the settings (HOST,
PORT, PENNON_ADMIN_PORT); --host names another, whose key is another, too.

  $ export PENNON_PERSONAL_KEY=phx_…
  $ pennon flags list --host https://pennon.example
  $ pennon flags usage new-checkout --from -7d
  $ pennon flags explain new-checkout ada@example.com --property plan=pro
  $ pennon flags rollout new-checkout 25

What changes a flag shows first what will change and how many of the stored persons get another value, which takes the
scope person:read, and asks. --yes changes it without a question and a count, for scripts; where nobody can be asked,
nothing is changed without it. What is that way already stays, and nothing is written. What no command changes is changed
in a file: export, an editor, import.

A terminal gets tables and colours, a file or a pipe tables without colours, and --json what the private API answers.

Exit codes: 0 done; 1 the instance failed or did not answer in time, or the output could not be written; 2 no key, a key
without the right, no instance at the address, or no such flag; one line on stderr says which, and the remedy.`,
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
    .option('--property <key=value>', 'a person property that replaces the stored one; may be repeated', collectOption)
    .option('--group <type=key>', 'a group that the person belongs to; may be repeated', collectOption)
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

  addChangingCommands(flags)
  addFileCommands(flags)
}

function addChangingCommands(flags: Command): void {
  changing(flags.command('create <key>').description('make a flag; without conditions it stays off'))
    .option('--name <text>', 'what it is for')
    .option('--tag <tag>', 'may be repeated', collectOption)
    .option('--rollout <percentage>', 'one condition: this share of everybody')
    .option('--filters <json>', 'conditions, variants and payloads, as the private API takes them')
    .option('--active', 'switch it on, for everybody where no conditions are given')
    .option('--inactive', 'keep it off although conditions are given')
    .addHelpText(
      'after',
      `
With --rollout or conditions in --filters the flag is on at once, for those whom they let in. One with rules, a document
of version 2 in --filters, is off without --active.

  $ pennon flags create new-checkout --name 'The checkout of 2027'
  $ pennon flags create new-checkout --rollout 10
  $ pennon flags create pro-only --filters \\
      '{"groups": [{"properties": [{"key": "plan", "type": "person", "value": "pro"}]}]}'`,
    )
    .action(async (key: string, options: CreateOptions) => (await import('./create-flag.ts')).createFlag(key, options))

  for (const [name, description, more] of [
    ['enable', 'switch a flag on', 'Not while it is archived, nor while a flag that it depends on is off.'],
    ['disable', 'switch a flag off', 'Not while active flags depend on it; the answer names them.'],
    [
      'archive',
      'put a flag out of the way, and so switch it off',
      'Not while anything uses it; the answer names what.',
    ],
    ['restore', 'take a flag out of the archive', 'It stays off until pennon flags enable.'],
  ] as const)
    changing(flags.command(`${name} <flag>`).description(description))
      .addHelpText(
        'after',
        `\n${more}\n\n  $ pennon flags ${name} new-checkout\n  $ pennon flags ${name} 17 --yes --json`,
      )
      .action(async (flag: string, options: ChangeOptions) =>
        (await import('./switch-flag.ts')).switchFlag(flag, name, options),
      )

  changing(flags.command('rollout <flag> <share>').description('set the percentage of a condition, or let everyone in'))
    .option('--condition <number>', 'which one, as pennon flags show counts; needed where there are several')
    .option('--variant <key>', 'with everyone: the variant that everyone gets; needed where there are variants')
    .addHelpText(
      'after',
      `
SHARE is a percentage, or everyone: a condition for all in front of the others, which stay. Neither switches the flag on.
Who changes the flag at the same moment is not overwritten: then it ends with exit code 2, and can be repeated.

  $ pennon flags rollout new-checkout 25
  $ pennon flags rollout new-checkout 0 --condition 2 --yes
  $ pennon flags rollout new-checkout everyone --variant test`,
    )
    .action(async (flag: string, share: string, options: RolloutOptions) =>
      (await import('./roll-out.ts')).rollOut(flag, share, options),
    )
}

function addFileCommands(flags: Command): void {
  addAddressOptions(
    flags
      .command('export [flag...]')
      .description('write flags, and the cohorts they use, as a file for another project'),
  )
    .addHelpText(
      'after',
      `
The file goes to stdout, notes about what is not in it to stderr. It has names where definitions have ids, is sorted, and
is the same for the same definitions, so that a version control shows what changed. With keys only these flags are in
it, with all that they use. Rules keep their seeds: with the same keys and seeds everybody keeps the value that they have.

In it: flags, archived ones too, tags, the cohorts and names of group types that flags use. Not in it: deleted flags,
encrypted payloads, the members of static cohorts, and experiments, surveys and early access features, of which only the
flags come along.

The key needs the scopes feature_flag:read, cohort:read and group:read.

  $ pennon flags export > flags.json
  $ pennon flags export new-checkout search > two.json
  $ PENNON_PERSONAL_KEY=phx_of_the_other pennon flags import flags.json --host https://other.example`,
    )
    .action(async (keys: string[], options: ClientOptions) =>
      (await import('./export-flags.ts')).exportFlags(keys, options),
    )

  addAddressOptions(
    flags.command('import <file...>').description('write the flags of a file, or of PostHog, to a project'),
  )
    .option('--json', 'print what is written, or with --dry-run would be, as JSON')
    .option('--yes', 'write without a question')
    .option('--dry-run', 'show what would be written, and for whom it is another value')
    .option('--cohorts <file>', "PostHog's list of cohorts; may be repeated", collectOption)
    .option('--group-types <file>', "PostHog's list of group types", collectOption)
    .addHelpText(
      'after',
      `
FILE is one of pennon flags export, or what PostHog answers to GET /api/projects/:id/feature_flags/, all its pages. Where
flags use cohorts or group types, PostHog's lists of these (/cohorts/, /groups_types/) name them.

A flag of the same key, and a cohort of the same name, become as the file has them; what is that way already is left
alone, and what the file does not name stays. All is looked up and checked before anything is written, and shown with the
numbers of those who get another value. Should it stop on the way it says what was written, and goes on there when it is
run again.

The key is one of the instance that is written to. It needs the scopes feature_flag:write, cohort:write, group:read, and
person:read for the numbers; all scopes for flags with rules.

  $ pennon flags import flags.json --dry-run
  $ PENNON_PERSONAL_KEY=phx_of_the_other pennon flags import flags.json --host https://other.example
  $ pennon flags import flags.json --project 2 --yes --json
  $ pennon flags import page1.json page2.json --cohorts cohorts.json --group-types types.json`,
    )
    .action(async (paths: string[], options: ImportOptions) =>
      (await import('./import-flags.ts')).importFlags(paths, options),
    )
}

function changing(command: Command): Command {
  return asking(command).option('--yes', 'change it without a question')
}

function asking(command: Command): Command {
  return addAddressOptions(command).option('--json', 'print what the private API answers, as JSON')
}

function collectOption(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}
