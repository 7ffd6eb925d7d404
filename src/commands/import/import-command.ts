// Options and help of `pennon import`. The code of a command is loaded only when it is called.

import { createRequire } from 'node:module'
import { type Command, Option } from 'commander'
import { inDocs } from '#distribution.ts'
import { importKeyScopeList } from '#importer/job/key-scopes.ts'
import type { ConvertOptions } from './convert.ts'
import { addFetchCommand } from './fetch/fetch-command.ts'
import { addJobCommands } from './job-commands.ts'

/** Ends the help of every command about an import; docs/import.md has the same table. */
const exitCodes = `Exit codes: 0 done; 1 it failed on the way, such as for a broken disk: run it again; 2 it would not begin, or cannot go on as it
is, and a line on stderr says what to do; 130 Ctrl-C or SIGTERM paused it: the same command goes on.`

export function addImportCommand(program: Command): void {
  const command = program
    .command('import')
    .description('history of another product, brought in whole and once: fetch, plan, run, report, approve, …')
    .addHelpText(
      'after',
      `
An import is a folder. Each command says which one is next, and \`pennon import status FOLDER\` says it at any time:

  $ pennon import plan history export/ --source mixpanel    fixes what is imported, and to which project
  $ pennon import run history                               rehearses all of it; nothing is sent
  $ pennon import report history                            what would happen
  $ pennon import approve history                           signs it off
  $ pennon import run history                               sends it and compares what is stored; nothing is visible
  $ pennon import publish history                           makes it visible; discard takes it back

The public key of the project is in PENNON_PROJECT_KEY, and a personal key in PENNON_PERSONAL_KEY, with the scopes
${importKeyScopeList}${inDocs('import.md')}.

${exitCodes}`,
    )

  addFetchCommand(command)
  addJobCommands(command)

  command
    .command('convert')
    .description(
      'show the events that each record gives, to try a mapping: one record a line from stdin, one answer a line',
    )
    .requiredOption('--source <name>', 'the product that the records are from')
    .option('--config <file>', 'JSON with what the source needs to know, such as {"source_timezone": "Europe/Berlin"}')
    .option('--mapping <file>', 'JSON that says where the parts of an event stand, for the source generic')
    .option('--source-timezone <zone>', 'zone of times that name none, such as Europe/Berlin')
    .requiredOption(
      '--now <time>',
      'the time that counts as now, such as 2026-01-15T00:00:00Z: for records of the future',
    )
    .addOption(
      new Option('--format <format>', 'how the records are written; csv has a header line before its rows')
        .choices(['json', 'csv'])
        .default('json'),
    )
    .addHelpText(
      'after',
      () => `
Sources:
${sourceLines()}

Nothing is sent and nothing is kept. Each record gives one line:

  {"events":[…]}                            in the order in which they are sent: groups, links, then its own
  {"rejected":{"reason":"…","field":"…"}}   it cannot be sent, and which field is why
  {"skipped":"…"}                           nothing is wrong with it, but it gives no event

Records are read in order, and later ones build on earlier ones: a user and a device are linked once, a group is told of when
something about it is new. Events are shown without the four properties that every event of an import has: $geoip_disable,
historical_migration, analytics_source, $import_job_id.

  $ head -5 export.jsonl | pennon import convert --source mixpanel --now 2026-01-15T00:00:00Z
  $ pennon import convert --source generic --format csv --mapping mapping.json --now 2026-01-15T00:00:00Z < orders.csv
  $ zcat export.json.gz | pennon import convert --source amplitude --now 2026-01-15T00:00:00Z | grep -c '"rejected"'`,
    )
    .action(async (options: ConvertOptions) => (await import('./convert.ts')).convert(options))
}

/** The table of sources is loaded only for the help that shows it. */
function sourceLines(): string {
  const require = createRequire(import.meta.url)
  const { allSources } =
    require('../../importer/sources/sources.ts') as typeof import('../../importer/sources/sources.ts')
  const sources = allSources()
  const width = Math.max(...sources.map(({ name }) => name.length))
  return sources.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`).join('\n')
}
