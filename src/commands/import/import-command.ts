// Options and help of `pennon import`. The code of a command is loaded only when it is called.

import { createRequire } from 'node:module'
import { type Command, Option } from 'commander'
import { inDocs } from '#distribution.ts'
import { importKeyScopeList } from '#importer/job/key-scopes.ts'
import type { ConvertOptions } from './convert.ts'
import type { FetchOptions } from './fetch/fetch.ts'
import { addJobCommands } from './job-commands.ts'

/** The end of the help text of every import command; docs/import.md has the same table. */
const exitCodes = `Exit codes: 0 success; 1 failed, for example because of a disk error: run it again; 2 refused: a line on stderr says what to
do; 130 paused by Ctrl-C or SIGTERM: run the same command to continue.`

export function addImportCommand(program: Command): void {
  const command = program
    .command('import')
    .description('import the history of another product: fetch, plan, run, report, publish, …')
    .addHelpText(
      'after',
      `
Each import has its own folder. Each command prints the next one, and so does \`pennon import status FOLDER\`:

  $ pennon import plan history export/ --source mixpanel    select the files and the target project
  $ pennon import run history                               rehearse the whole import; nothing is sent
  $ pennon import report history                            show what would happen
  $ pennon import run history                               approve, send and verify it; nothing is visible yet
  $ pennon import publish history                           make it visible; discard undoes it

In a terminal, pennon import go does all of it for a few files.

Set PENNON_PROJECT_KEY to the project API key, and PENNON_PERSONAL_KEY to a personal API key with the scopes
${importKeyScopeList}${inDocs('import.md')}.

${exitCodes}`,
    )

  addFetchCommand(command)
  addJobCommands(command)

  command
    .command('convert')
    .description(
      'show the events that each record produces, to test a mapping: one record per line on stdin, one result per line',
    )
    .requiredOption('--source <name>', 'product the records come from')
    .option('--config <file>', 'JSON file with options of the source, such as {"source_timezone": "Europe/Berlin"}')
    .option('--mapping <file>', 'JSON file that maps record fields to events, for the source generic')
    .option('--source-timezone <zone>', 'time zone of times without a zone, such as Europe/Berlin')
    .requiredOption('--now <time>', 'time to use as now, such as 2026-01-15T00:00:00Z, for records in the future')
    .addOption(
      new Option('--format <format>', 'format of the records; csv needs a header line')
        .choices(['json', 'csv'])
        .default('json'),
    )
    .addHelpText(
      'after',
      () => `
Sources:
${formatSourceLines()}

Nothing is sent or stored. Each record produces one line:

  {"events":[…]}                            the events in sending order: groups, links, then the record's own
  {"rejected":{"reason":"…","field":"…"}}   the record cannot be sent; the field that causes it
  {"skipped":"…"}                           the record is valid but produces no event

Records are read in order, and later ones build on earlier ones: a user and a device are linked once, and a group is sent
only when something about it is new. The output omits the four properties of every imported event: $geoip_disable,
historical_migration, analytics_source, $import_job_id.

  $ head -5 export.jsonl | pennon import convert --source mixpanel --now 2026-01-15T00:00:00Z
  $ pennon import convert --source generic --format csv --mapping mapping.json --now 2026-01-15T00:00:00Z < orders.csv
  $ zcat export.json.gz | pennon import convert --source amplitude --now 2026-01-15T00:00:00Z | grep -c '"rejected"'`,
    )
    .action(async (options: ConvertOptions) => (await import('./convert.ts')).convertRecordsFromStdin(options))
}

/** The table of sources is loaded only for the help that shows it. */
function formatSourceLines(): string {
  const require = createRequire(import.meta.url)
  const { listSources } =
    require('../../importer/sources/sources.ts') as typeof import('../../importer/sources/sources.ts')
  const sources = listSources()
  const width = Math.max(...sources.map(({ name }) => name.length))
  return sources.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`).join('\n')
}

function addFetchCommand(command: Command): void {
  command
    .command('fetch <folder>')
    .description('download the data of another product into a folder; run again to resume')
    .addOption(
      new Option('--source <name>', 'the product to download from (default: the source of the folder)').choices(
        'mixpanel amplitude matomo posthog s3 http'.split(' '),
      ),
    )
    .option('--from <day>', 'first day, such as 2024-05-01')
    .option('--to <day>', 'last day, inclusive')
    .addOption(new Option('--region <region>', 'region of the project (default: us)').choices(['us', 'eu', 'in']))
    .option('--host <address>', 'URL of a self-hosted installation, or of another region')
    .option('--project-id <id>', 'id of a PostHog project, or of a Mixpanel project when using a service account')
    .option('--site-id <id>', 'id of a Matomo site')
    .option('--window-days <days>', 'days per file, for Mixpanel and Amplitude (default: 1)')
    .option('--calls-per-hour <count>', "Mixpanel's rate limit, if it is not 60")
    .option('--s3-url <url>', 's3://BUCKET/PREFIX')
    .option('--s3-endpoint <address>', 'endpoint URL of storage outside AWS')
    .option('--s3-region <region>', 'region of the bucket (default: AWS_REGION)')
    .option('--s3-path-style', 'put the bucket in the URL path, as most storage outside AWS requires')
    .option('--list <file>', 'file with URLs to download, one per line')
    .option('--dry-run', 'only estimate calls and time; download nothing')
    .option('--json', 'print progress and result as JSON')
    .addHelpText(
      'after',
      `
Secrets are read from environment variables, or from the file in NAME_FILE. They are never stored or shown:

  mixpanel   MIXPANEL_API_SECRET, or MIXPANEL_SERVICE_ACCOUNT and MIXPANEL_SERVICE_SECRET with --project-id
  amplitude  AMPLITUDE_API_KEY and AMPLITUDE_SECRET_KEY
  matomo     MATOMO_TOKEN
  posthog    POSTHOG_PERSONAL_KEY, also for another Pennon instance
  s3         the usual AWS settings: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, a role
  http       IMPORT_HTTP_AUTHORIZATION, sent as the header Authorization

Each part is saved as a file in FOLDER/raw once it is complete and verified, and is never downloaded again. The command
respects the source's rate limits, waits when asked to, and requests smaller windows where needed. Ctrl-C pauses it.

  $ pennon import fetch history --source mixpanel --region eu --from 2024-01-01 --to 2024-12-31 --dry-run
  $ pennon import fetch history --source mixpanel --region eu --from 2024-01-01 --to 2024-12-31
  $ pennon import fetch history
  $ pennon import fetch archive --source s3 --s3-url s3://acme-archive/segment-logs/ --s3-region eu-central-1`,
    )
    .action(async (folder: string, options: FetchOptions) =>
      (await import('./fetch/fetch.ts')).fetchExport(folder, options),
    )
}
