// The options and help of `pennon import fetch`.

import { type Command, Option } from 'commander'
import type { FetchOptions } from './fetch.ts'

export function addFetchCommand(command: Command): void {
  command
    .command('fetch <folder>')
    .description('download the export of another product into a folder; started again it goes on where it stopped')
    .addOption(
      new Option('--source <name>', 'where from; without it, what the folder was begun with').choices([
        'mixpanel',
        'amplitude',
        'matomo',
        'posthog',
        's3',
        'http',
      ]),
    )
    .option('--from <day>', 'first day of the export, such as 2024-05-01')
    .option('--to <day>', 'last day; it is part of the export')
    .addOption(new Option('--region <region>', 'of the project; us unless given').choices(['us', 'eu', 'in']))
    .option('--host <address>', 'of an installation of your own, or of another region')
    .option('--project-id <id>', 'of a PostHog project, or of a Mixpanel project with a service account')
    .option('--site-id <id>', 'of a Matomo site')
    .option('--window-days <days>', 'days of one file, for Mixpanel and Amplitude; 1 unless given')
    .option('--calls-per-hour <count>', 'for Mixpanel with another limit than 60')
    .option('--s3-url <url>', 's3://BUCKET/PREFIX')
    .option('--s3-endpoint <address>', 'of storage that is not at AWS')
    .option('--s3-region <region>', 'of the bucket; AWS_REGION unless given')
    .option('--s3-path-style', 'the bucket is in the path of the address, as most storage outside AWS wants')
    .option('--list <file>', 'addresses of files, one a line')
    .option('--dry-run', 'only say what it would take')
    .option('--json', 'progress and result as JSON')
    .addHelpText(
      'after',
      `
Secrets are in environment variables, or in files that NAME_FILE names; they are neither kept nor shown:

  mixpanel   MIXPANEL_API_SECRET, or MIXPANEL_SERVICE_ACCOUNT and MIXPANEL_SERVICE_SECRET with --project-id
  amplitude  AMPLITUDE_API_KEY and AMPLITUDE_SECRET_KEY
  matomo     MATOMO_TOKEN
  posthog    POSTHOG_PERSONAL_KEY, also for another Pennon
  s3         what the client of AWS reads: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, a role
  http       IMPORT_HTTP_AUTHORIZATION, sent as the header Authorization

Each part becomes a file in FOLDER/raw when all of it has come and was found whole, and is never fetched again. It keeps to the
limits of the source, waits as long as that asks for, and asks for less where a window is too large. Ctrl-C stops it.

  $ pennon import fetch history --source mixpanel --region eu --from 2024-01-01 --to 2024-12-31 --dry-run
  $ pennon import fetch history --source mixpanel --region eu --from 2024-01-01 --to 2024-12-31
  $ pennon import fetch history
  $ pennon import fetch archive --source s3 --s3-url s3://acme-archive/segment-logs/ --s3-region eu-central-1`,
    )
    .action(async (folder: string, options: FetchOptions) => (await import('./fetch.ts')).fetchExport(folder, options))
}
