// The options and help of `pennon import fetch`.

import { type Command, Option } from 'commander'
import type { FetchOptions } from './fetch.ts'

export function addFetchCommand(command: Command): void {
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
    .action(async (folder: string, options: FetchOptions) => (await import('./fetch.ts')).fetchExport(folder, options))
}
