// The options and help of `pennon events`. What the commands do is loaded only when one is called.

import { type Command, Option } from 'commander'
import { addAddressOptions } from '../client/instance-address.ts'
import type { CountOptions } from './count-events.ts'
import type { ExportOptions } from './export-events.ts'

export function addEventsCommand(program: Command): void {
  const events = program
    .command('events')
    .description('events of a running instance: count, export')
    .addHelpText(
      'after',
      `
The personal API key, with the scope query:read, is in PENNON_PERSONAL_KEY; \`pennon new-key\` makes one where the instance
runs. The instance is the one at the address in PENNON, else that of the settings (HOST, PORT, PENNON_ADMIN_PORT); --host names another.

  $ export PENNON_PERSONAL_KEY=phx_…
  $ pennon events count --from -7d
  $ pennon events export orders.jsonl --event 'order placed' --host https://pennon.example

Exit codes: 0 done; 1 it broke off or the instance failed; 2 no key, no instance, or a file that is in the way; 130 Ctrl-C.`,
    )

  addAddressOptions(events.command('count').description('how many events there are, by name and day'))
    .option('--event <name>', 'only events of this name; may be repeated', collectOption)
    .option('--from <date>', 'from when: a date, or a span such as -7d, which begins with its whole day', '-30d')
    .option('--to <date>', 'until when; until now unless given')
    .addOption(
      new Option('--interval <interval>', 'what a bar stands for')
        .choices(['hour', 'day', 'week', 'month'])
        .default('day'),
    )
    .option('--json', 'print the figures as JSON')
    .addHelpText(
      'after',
      `
A row for each name, the most frequent first, and one for all events together. Names are looked up with the scope
event_definition:read; a key without it needs --event.

  $ pennon events count
  $ pennon events count --event '$pageview' --event 'order placed' --from 2026-01-01 --interval month
  $ pennon events count --json | jq '.results[] | {event, count}'`,
    )
    .action(async (options: CountOptions) => (await import('./count-events.ts')).countEvents(options))

  addAddressOptions(
    events.command('export <file>').description('download events into a file, exactly as they were sent'),
  )
    .addOption(
      new Option('--format <format>', 'by the end of the name of the file unless given').choices([
        'jsonl',
        'csv',
        'parquet',
      ]),
    )
    .option('--event <name>', 'only events of this name')
    .option('--distinct-id <id>', 'only events of this distinct id')
    .option('--person-id <uuid>', 'only events of this person')
    .option('--uuid <uuid>', 'only the event with this uuid')
    .option('--property <key=value>', 'only events with this property; repeated, with all of them', collectOption)
    .option('--from <time>', 'only later events: a time, a date, or a span such as -7d, to the second')
    .option('--to <time>', 'only earlier events')
    .option('--oldest-first', 'in the order of time; newest first unless given')
    .option('--limit <rows>', 'end after so many rows')
    .option('--resume', 'go on with a file that broke off, with the options that it was begun with')
    .option('--force', 'replace the file, and what an earlier try left')
    .option('--json', 'print what was written as JSON')
    .addHelpText(
      'after',
      `
Until it is complete the file is called FILE.part, with FILE.part.json beside it, which says what was asked for. Nothing is
overwritten without --force. --resume cuts off a half row at the end and goes on behind the last whole one; Parquet cannot be
gone on with, since a file without its end has nothing that can be read.

  $ pennon events export events.jsonl
  $ pennon events export orders.csv --event 'order placed' --from -30d
  $ pennon events export orders.csv --resume
  $ pennon events export sample.parquet --limit 100000 --property plan=pro`,
    )
    .action(async (file: string, options: ExportOptions) =>
      (await import('./export-events.ts')).exportEvents(file, options),
    )
}

function collectOption(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}
