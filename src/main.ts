// The commands. Each lives in a file of its own under `commands/`, loaded only when it is called.

import '../bin/compile-cache.js'
import { flushCompileCache } from 'node:module'
import { Command, Option } from 'commander'
import { version } from './version.ts'

const program = new Command('pennon')
  .description('Feature flags and event ingestion over PostHog’s wire protocol.')
  .version(version, '-v, --version', 'print the version')
  .showHelpAfterError('Run `npm run pennon -- --help` for the commands.')
  .addHelpText(
    'after',
    `
Start here:
  $ npm start                       serve on http://127.0.0.1:8000 with embedded stores in ./data
  $ npm run pennon -- doctor        check folder, ports and stores, and how to mend what is wrong
  $ npm run pennon -- config        every setting, its value and where that comes from

Settings are environment variables, for example PORT=9000 npm start. \`pennon\` in a help text is bin/pennon, which runs
from any folder, or \`npm run pennon --\`.`,
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
    '\n`pennon serve` starts one by itself. One worker owns the log at a time; a new one takes it over.',
  )
  .addOption(new Option('--test-clock <ms>', 'a clock that tests move').hideHelp())
  .action(async (options: { testClock?: string }) => (await import('./commands/work.ts')).work(options))

program
  .command('config')
  .description('list every setting with its value and origin; secrets are masked')
  .option('--json', 'print JSON')
  .action(async (options: { json?: boolean }) => (await import('./commands/show-config.ts')).showConfig(options))

program
  .command('doctor')
  .description('check what a start needs and say how to mend what is wrong')
  .action(async () => (await import('./commands/doctor.ts')).doctor())

program
  .command('version')
  .description('print the versions of Pennon, Node and the embedded engines')
  .action(async () => (await import('./commands/show-version.ts')).showVersion())

// Started by `serve`, never by hand.
program
  .command('events', { hidden: true })
  .requiredOption('--folder <folder>')
  .requiredOption('--http-port <port>')
  .action(async (options: { folder: string; httpPort: string }) => {
    const { runEngineProcess } = await import('./adapters/clickhouse-embedded/engine-process.ts')
    runEngineProcess({ folder: options.folder, httpPort: Number(options.httpPort) })
  })
program.command('front', { hidden: true }).action(async () => (await import('./commands/front.ts')).front())

await program.parseAsync()
// Now, not at the end: a process that is killed would never leave anything behind.
flushCompileCache()
