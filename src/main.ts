// The command line. Each command has its own file under `commands/`, loaded only when the command is called.

import '../bin/preload.js'
import { flushCompileCache } from 'node:module'
import { Command, Option } from 'commander'
import { addAddressOptions, collectOption } from './commands/client/instance-address.ts'
import { addEventsCommand } from './commands/events/events-command.ts'
import { addFlagsCommand } from './commands/flags/flags-command.ts'
import { addImportCommand } from './commands/import/import-command.ts'
import { addRebuildCommand } from './commands/rebuild/rebuild-command.ts'
import type { SignInLinkOptions } from './commands/sign-in-link.ts'
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
${start(pennonCommand('doctor'), 'check folder, ports, stores, GeoIP and clock, with fixes')}
${start(pennonCommand('config'), 'all settings with their values and origins')}
${start(pennonCommand('new-key'), 'create another personal API key')}

Settings are environment variables, for example PORT=9000 ${startCommand}. Where help texts say \`pennon\`, run
\`${pennonCommand('').trim()}\` here.

Exit codes: 0 success; 1 failed, or doctor found a problem; 2 refused, including unknown commands and options: stderr
says what to do; 3 (work only) another worker owns the log.`,
  )

program
  .command('serve')
  .description('start Pennon: the HTTP server, event processing and the embedded event store')
  .option('--front-processes <count>', 'number of HTTP processes on the port (PENNON_FRONT_PROCESSES)')
  .addHelpText(
    'after',
    `
The first start creates the data folder, a project and a personal API key, and prints both keys with commands to try.
SIGTERM or Ctrl-C finishes open requests, writes queued data and stops within 10 seconds.

  $ PORT=9000 PENNON_DATA=/var/lib/pennon pennon serve
  $ pennon serve --front-processes 4`,
  )
  .action(async (options: { frontProcesses?: string }) => (await import('./commands/serve.ts')).serve(options))

program
  .command('work')
  .description('process events from the log into persons, groups and the event store')
  .addHelpText(
    'after',
    '\n`pennon serve` starts a worker itself, so this command is refused while it runs on the same data. Only one worker\nowns the log at a time: one that starts takes it over, and the previous one exits with code 3.',
  )
  .addOption(new Option('--test-clock <ms>', 'a clock that tests move').hideHelp())
  .addOption(new Option('--test-geoip <json>', 'locations of addresses, for tests').hideHelp())
  .action(async (options: { testClock?: string; testGeoip?: string }) =>
    (await import('./commands/work.ts')).runWorkCommand(options),
  )

program
  .command('new-key')
  .description('create a personal API key with all scopes, and print it')
  .option('--label <text>', 'name of the key in lists', 'pennon new-key')
  .addHelpText(
    'after',
    `
Use it to give another person or program access, or to replace a lost key: only the hash of a key is stored, so a key
cannot be shown again. Works while the instance is running; use the same settings. Exits with code 2 if there is no
state yet (PENNON_DATA or DATABASE_URL). To create a key with fewer scopes: POST /api/personal_api_keys/ with this key.

  $ pennon new-key --label "Ada's laptop"
  $ PENNON_DATA=/var/lib/pennon pennon new-key
  $ DATABASE_URL=postgres://pennon:secret@db:5432/pennon pennon new-key`,
  )
  .action(async (options: { label: string }) => (await import('./commands/new-key.ts')).createAndPrintKey(options))

program
  .command('sign-in-link')
  .description('create a link with which a person signs in once, and print it')
  .option('--email <address>', 'of a user, or of a new one')
  .addOption(
    new Option('--role <role>', 'of the user; default for a new one: admin').choices(['viewer', 'editor', 'admin']),
  )
  .option('--name <text>', 'name of a new user')
  .addHelpText(
    'after',
    `
For the first admin, and for people who cannot sign in any more. The link works once, within 24 hours. Works while the
instance is running; use the same settings. Exits with code 2 if there is no state yet (PENNON_DATA or DATABASE_URL).

  $ pennon sign-in-link
  $ pennon sign-in-link --email ada@example.com --role editor`,
  )
  .action(async (options: SignInLinkOptions) =>
    (await import('./commands/sign-in-link.ts')).createAndPrintLink(options),
  )

addAddressOptions(program.command('tail').description('print events of a running instance as they arrive'))
  .option('--event <name>', 'only events with this name; repeatable', collectOption)
  .option('--distinct-id <id>', 'only events with this distinct id; repeatable', collectOption)
  .option('--lane <names>', 'only these lanes, comma-separated; repeatable', collectOption)
  .option('--property <key=value>', 'only events with this property; repeat to require several', collectOption)
  .option('--historical', 'include imported events, with the time of the event')
  .option('--no-rejected', 'hide rejects')
  .option('--json', 'print complete messages as JSON')
  .addHelpText(
    'after',
    `
Set PENNON_PERSONAL_KEY to a personal API key with the scope query:read. Different options are combined with AND.

Lanes: main, overflow, error_tracking, heatmaps, warnings, ai, replay (rejects of /s/ only) and historical. Default: all
but historical. Properties are compared as text: n=3 also matches the number 3. Rejects are shown regardless of
--property, since they often lack properties.

If the instance restarts or the connection breaks, a line on stderr says so, and the command reconnects automatically.
It exits with code 2 if the key or the project is refused.

  $ export PENNON_PERSONAL_KEY=phx_…
  $ pennon tail --event '$pageview' --event 'order placed' --host https://pennon.example
  $ pennon tail --property plan=pro --property country=NO --no-rejected
  $ pennon tail --lane ai,error_tracking --json | jq .event`,
  )
  .action(async (options: TailOptions) => (await import('./commands/tail/tail.ts')).runTailCommand(options))

addFlagsCommand(program)
addEventsCommand(program)
addImportCommand(program)
addRebuildCommand(program)

program
  .command('backup <file>')
  .description('back up an instance, running or stopped, into one file')
  .option('--verify', 'check a backup instead: restore it beside its file, count the data, and remove the copy')
  .addHelpText(
    'after',
    `
The backup contains the state, log, events and encryption key in PENNON_DATA. Run it as the user of the instance, with the
same settings. A restore contains everything that was acknowledged before the backup started, without duplicates. The
file is a tar archive with checksums, readable by its owner only. Data in PostgreSQL (DATABASE_URL) or in an external
ClickHouse (CLICKHOUSE_URL) is not included.

--verify compares the counts with those recorded in the backup, and exits with code 2 if they differ. It needs disk space
beside the file for its content, and no instance.

  $ PENNON_DATA=/var/lib/pennon pennon backup /backups/pennon-2026-11-22.tar
  $ pennon backup --verify /backups/pennon-2026-11-22.tar`,
  )
  .action(async (file: string, { verify = false }: { verify?: boolean }) =>
    verify
      ? (await import('./commands/verify-backup.ts')).verifyBackup(file)
      : (await import('./commands/backup.ts')).runBackupCommand(file),
  )

program
  .command('restore <file>')
  .description('restore a backup into an empty PENNON_DATA')
  .addHelpText(
    'after',
    `
All files of the backup are checked before any is put in place. If one is damaged, it is named and nothing is changed.

  $ PENNON_DATA=/var/lib/pennon pennon restore /backups/pennon-2026-11-22.tar`,
  )
  .action(async (file: string) => (await import('./commands/restore.ts')).restore(file))

program
  .command('config')
  .description('list all settings with their values and origins; secrets are masked')
  .option('--json', 'print JSON')
  .action(async (options: { json?: boolean }) => (await import('./commands/show-config.ts')).showConfig(options))

program
  .command('doctor')
  .description('check everything that a start needs, and say how to fix problems')
  .option('--accept-missing-events', 'acknowledge rows lost from the event store and stop reporting them')
  .action(async (options: { acceptMissingEvents?: boolean }) =>
    (await import('./commands/doctor/doctor.ts')).runDoctorCommand(options),
  )

program
  .command('version')
  .description('print the versions of Pennon, Node and the embedded engines')
  .action(async () => (await import('./commands/show-version.ts')).showVersion())

// Started by `serve`, never manually.
program
  .command('engine', { hidden: true })
  .requiredOption('--folder <folder>')
  .requiredOption('--http-port <port>')
  .action(async (options: { folder: string; httpPort: string }) =>
    (await import('./commands/engine.ts')).runEngineCommand(options),
  )
program.command('front', { hidden: true }).action(async () => (await import('./commands/front.ts')).runFrontCommand())

/** Adds a pointer to the command's help to its errors. */
function pointToHelp(command: Command, name: string): void {
  command.showHelpAfterError(
    `Run \`${name} --help\` for ${command.commands.length > 0 ? 'the commands' : 'its options'}.`,
  )
  // Wrong usage exits with 2, like refusals of the commands, since repeating the call is pointless.
  command.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  for (const each of command.commands) pointToHelp(each, `${name} ${each.name()}`)
}

pointToHelp(program, 'pennon')
await program.parseAsync()
// Written now, not at the end, since a killed process would never write its cache.
flushCompileCache()
