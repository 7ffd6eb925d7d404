// Options and help of `pennon events`. The code of a command is loaded only when it is called.

import { type Command, Option } from 'commander'
import { addAddressOptions, collectOption } from '../client/instance-address.ts'
import type { CountOptions } from './count-events.ts'
import type { ExportOptions } from './export-events.ts'

export function addEventsCommand(program: Command): void {
  const events = program
    .command('events')
    .description('events of a running instance: count, export')
    .addHelpText(
      'after',
      `
Set PENNON_PERSONAL_KEY to a personal API key with the scope query:read; \`pennon new-key\` creates one where the
instance runs. The instance is the one at PENNON, otherwise at HOST and PORT or PENNON_ADMIN_PORT; --host overrides both.

  $ export PENNON_PERSONAL_KEY=phx_…
  $ pennon events count --from -7d
  $ pennon events export orders.jsonl --event 'order placed' --host https://pennon.example

Exit codes: 0 success; 1 aborted, or the instance failed; 2 no key, no instance, or the file already exists; 130 Ctrl-C.`,
    )

  addAddressOptions(events.command('count').description('count events by name and day'))
    .option('--event <name>', 'only events with this name; repeatable', collectOption)
    .option(
      '--from <date>',
      'start: a date, or a span such as -7d, which includes the whole first day (default: -30d, or the first day of the import job)',
    )
    .option('--to <date>', 'end (default: now, or the last day of the import job)')
    .option('--import-job <number>', 'also count the events of this pending import job')
    .addOption(
      new Option('--interval <interval>', 'time span of one bar (default: day; week or month for long ranges)').choices(
        ['hour', 'day', 'week', 'month'],
      ),
    )
    .option('--json', 'print the counts as JSON')
    .addHelpText(
      'after',
      `
Prints a row per event name, most frequent first, and one for all events; with --event, only the rows of these names.
Looking up names requires the scope event_definition:read; without it, use --event. --import-job counts as if the job
were published, by default over the days of the job, and requires the scope import_job:read.

  $ pennon events count
  $ pennon events count --event '$pageview' --event 'order placed' --from 2026-01-01 --interval month
  $ pennon events count --import-job 7
  $ pennon events count --json | jq '.results[] | {event, count}'`,
    )
    .action(async (options: CountOptions) => (await import('./count-events.ts')).countEvents(options))

  addAddressOptions(
    events.command('export <file>').description('download events into a file, exactly as they were sent'),
  )
    .addOption(
      new Option('--format <format>', 'file format (default: from the file name)').choices(['jsonl', 'csv', 'parquet']),
    )
    .option('--event <name>', 'only events with this name')
    .option('--distinct-id <id>', 'only events with this distinct id')
    .option('--person-id <uuid>', 'only events of this person')
    .option('--uuid <uuid>', 'only the event with this uuid')
    .option('--property <key=value>', 'only events with this property; repeat to require several', collectOption)
    .option('--from <time>', 'only events after this time: a time, a date, or an exact span such as -7d')
    .option('--to <time>', 'only events before this time')
    .option('--oldest-first', 'oldest first (default: newest first)')
    .option('--limit <rows>', 'stop after this many rows')
    .option('--resume', 'resume an interrupted export, with the options it was started with')
    .option('--force', 'overwrite the file and the remains of an earlier attempt')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
Until the export is complete, the file is named FILE.part; FILE.part.json beside it stores the options. Nothing is
overwritten without --force. --resume removes an incomplete last row and continues after the last complete one. Parquet
exports cannot be resumed, since a Parquet file is unreadable without its end.

  $ pennon events export events.jsonl
  $ pennon events export orders.csv --event 'order placed' --from -30d
  $ pennon events export orders.csv --resume
  $ pennon events export sample.parquet --limit 100000 --property plan=pro`,
    )
    .action(async (file: string, options: ExportOptions) =>
      (await import('./export-events.ts')).exportEvents(file, options),
    )
}
