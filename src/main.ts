// The command line. Each command has its own file under `commands/`, loaded only when the command is called.

import '../bin/preload.js'
import { flushCompileCache } from 'node:module'
import { Command, Option } from 'commander'
import { addAddressOptions } from './commands/client/instance-address.ts'
import { addEventsCommand } from './commands/events/events-command.ts'
import { addFlagsCommand } from './commands/flags/flags-command.ts'
import { addImportCommand } from './commands/import/import-command.ts'
import type { TailOptions } from './commands/tail/tail.ts'
import { pennonCommand, startCommand } from './distribution.ts'
import { version } from './version.ts'

const start = (command: string, what: string) => `  $ ${command.padEnd(32)}${what}`

const program = new Command('pennon')
  .description('Feature flags and event ingestion over PostHog’s wire protocol.')
  .version(version, '-v, --version', 'print the version')
  .addHelpText(
    'after',
    `
Start here:
${start(startCommand, 'serve on http://127.0.0.1:8000 with embedded stores in ./data')}
${start(pennonCommand('doctor'), 'check folder, ports, stores, GeoIP and clock; how to mend what is wrong')}
${start(pennonCommand('config'), 'every setting, its value and where that comes from')}
${start(pennonCommand('new-key'), 'another personal API key: for one more person, or when one is lost')}

Settings are environment variables, for example PORT=9000 ${startCommand}. \`pennon\` in a help text is called
as \`${pennonCommand('').trim()}\` here.

Exit codes: 0 done; 1 it failed on the way, or doctor found something; 2 it would not begin or go on, also for a command
or an option that does not exist, and a line on stderr says what to do; 3 from work: another worker owns the log.`,
  )

program
  .command('serve')
  .description('serve HTTP and supervise event processing and the embedded event store')
  .option('--front-processes <count>', 'HTTP processes on one port (PENNON_FRONT_PROCESSES)')
  .addHelpText(
    'after',
    `
The first start creates the data folder, a project and a personal API key, and prints both keys with three things to try.
SIGTERM or Ctrl-C finishes open requests, writes what is queued and ends within 10 seconds.

  $ PORT=9000 PENNON_DATA=/var/lib/pennon pennon serve
  $ pennon serve --front-processes 4`,
  )
  .action(async (options: { frontProcesses?: string }) => (await import('./commands/serve.ts')).serve(options))

program
  .command('work')
  .description('process events from the log into persons, groups and the event store')
  .addHelpText(
    'after',
    '\nRefused while `pennon serve` runs here, which starts one by itself. One worker owns the log at a time; a new one takes it over.',
  )
  .addOption(new Option('--test-clock <ms>', 'a clock that tests move').hideHelp())
  .addOption(new Option('--test-geoip <json>', 'locations of addresses, for tests').hideHelp())
  .action(async (options: { testClock?: string; testGeoip?: string }) =>
    (await import('./commands/work.ts')).work(options),
  )

program
  .command('new-key')
  .description('create a personal API key with all scopes in the state of this configuration, and print it')
  .option('--label <text>', 'what the key is called in lists', 'pennon new-key')
  .addHelpText(
    'after',
    `
For one more person or program, or in place of a lost key: only the hash of a key is kept, so none can be shown again. Also while the instance runs, with the
settings that it has. It makes no instance: without state (PENNON_DATA, or DATABASE_URL) it ends with exit code 2.
A key with fewer scopes: POST /api/personal_api_keys/ with this one.

  $ pennon new-key --label "Ada's laptop"
  $ PENNON_DATA=/var/lib/pennon pennon new-key
  $ DATABASE_URL=postgres://pennon:secret@db:5432/pennon pennon new-key`,
  )
  .action(async (options: { label: string }) => (await import('./commands/new-key.ts')).newKey(options))

addAddressOptions(program.command('tail').description('print events of a running instance as they come in'))
  .option('--event <name>', 'only events of this name; may be repeated', collectOption)
  .option('--distinct-id <id>', 'only events of this distinct id; may be repeated', collectOption)
  .option('--lane <names>', 'only these lanes, separated by commas; may be repeated', collectOption)
  .option('--property <key=value>', 'only events with this property; repeated, with all of them', collectOption)
  .option('--historical', 'also imports, marked with their own time')
  .option('--no-rejected', 'without what was refused')
  .option('--json', 'print the whole of each message as JSON')
  .addHelpText(
    'after',
    `
The personal API key, with the scope query:read, is in PENNON_PERSONAL_KEY. Options of different names have to hold together.

Lanes are main, overflow, error_tracking, heatmaps, warnings, ai, replay (only what /s/ refused) and historical; all but
historical unless some are given. A property is compared as text: n=3 finds the number 3 too. What was refused is shown
whatever --property says, since it often lacks what it could be chosen by.

When the instance starts again or the connection breaks, that is said on stderr, and the view comes back by itself. A key or
a project that is refused ends it with exit code 2.

  $ export PENNON_PERSONAL_KEY=phx_…
  $ pennon tail --event '$pageview' --event 'order placed' --host https://pennon.example
  $ pennon tail --property plan=pro --property country=NO --no-rejected
  $ pennon tail --lane ai,error_tracking --json | jq .event`,
  )
  .action(async (options: TailOptions) => (await import('./commands/tail/tail.ts')).tail(options))

addFlagsCommand(program)
addEventsCommand(program)
addImportCommand(program)

program
  .command('backup <file>')
  .description('write everything of an instance into one file, while it runs')
  .option('--verify', 'write nothing: restore that backup beside its file, count what it holds, and remove that again')
  .addHelpText(
    'after',
    `
State, log, events and the encryption key, of PENNON_DATA; run it as the user of the instance, with its settings. Nothing that
was answered before the command began is missing after a restore, and nothing is counted twice. The file is a tar with
checksums, for its owner alone. What is in PostgreSQL (DATABASE_URL) or in a ClickHouse of yours (CLICKHOUSE_URL) is not in it.

--verify compares what it counts with what the backup says of itself, and ends with exit code 2 where they differ. It needs
space beside the file for what is in it, and no instance.

  $ PENNON_DATA=/var/lib/pennon pennon backup /backups/pennon-2026-11-22.tar
  $ pennon backup --verify /backups/pennon-2026-11-22.tar`,
  )
  .action(async (file: string, { verify = false }: { verify?: boolean }) =>
    verify
      ? (await import('./commands/verify-backup.ts')).verifyBackup(file)
      : (await import('./commands/backup.ts')).backup(file),
  )

program
  .command('restore <file>')
  .description('bring a backup back into an empty PENNON_DATA')
  .addHelpText(
    'after',
    `
Every file of the backup is checked before any comes into place; a damaged one is named, and nothing is changed.

  $ PENNON_DATA=/var/lib/pennon pennon restore /backups/pennon-2026-11-22.tar`,
  )
  .action(async (file: string) => (await import('./commands/restore.ts')).restore(file))

program
  .command('config')
  .description('list every setting with its value and origin; secrets are masked')
  .option('--json', 'print JSON')
  .action(async (options: { json?: boolean }) => (await import('./commands/show-config.ts')).showConfig(options))

program
  .command('doctor')
  .description('check what a start needs and say how to mend what is wrong')
  .option('--accept-missing-events', 'take rows that the event store lost as gone: they are not told of again')
  .action(async (options: { acceptMissingEvents?: boolean }) =>
    (await import('./commands/doctor/doctor.ts')).doctor(options),
  )

program
  .command('version')
  .description('print the versions of Pennon, Node and the embedded engines')
  .action(async () => (await import('./commands/show-version.ts')).showVersion())

// Started by `serve`, never by hand.
program
  .command('engine', { hidden: true })
  .requiredOption('--folder <folder>')
  .requiredOption('--http-port <port>')
  .action(async (options: { folder: string; httpPort: string }) =>
    (await import('./commands/engine.ts')).engine(options),
  )
program.command('front', { hidden: true }).action(async () => (await import('./commands/front.ts')).front())

/** Each error leads to the help of the command that was used. */
function leadToHelp(command: Command, name: string): void {
  command.showHelpAfterError(
    `Run \`${name} --help\` for ${command.commands.length > 0 ? 'the commands' : 'its options'}.`,
  )
  // Wrong use is refused as the commands refuse it: it is not to be tried again as it is.
  command.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  for (const each of command.commands) leadToHelp(each, `${name} ${each.name()}`)
}

function collectOption(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}

leadToHelp(program, 'pennon')
await program.parseAsync()
// Now, not at the end: a process that is killed would never write its cache.
flushCompileCache()
