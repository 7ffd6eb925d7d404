// The options and help of the commands about a job: plan, run, go, status, list, report, rejects, retry, publish, discard.

import { type Command, Option } from 'commander'
import { inDocs } from '#distribution.ts'

/** Loads the code of a command only when it is called. */
function createLazyAction<Arguments extends unknown[]>(load: () => Promise<(...given: Arguments) => Promise<unknown>>) {
  return async (...given: Arguments): Promise<void> => void (await (await load())(...given))
}

export function addJobCommands(command: Command): void {
  addPlanCommand(command)
  addRunCommand(command)
  addGoCommand(command)
  command
    .command('status <folder>')
    .description('show the state of an import, also while it runs in another terminal')
    .option('--json', 'print as JSON')
    .addHelpText(
      'after',
      `
With PENNON_PERSONAL_KEY, it also shows the state of the import job in the service. The last line is the next command.

  $ pennon import status history
  $ pennon import status history --json | jq -r .next.command
  $ watch pennon import status history`,
    )
    .action(createLazyAction(async () => (await import('./status.ts')).showStatus))
  command
    .command('list')
    .description('list the import jobs of a project, and the days they cover')
    .option('--host <address>', 'URL of the instance (default: PENNON, otherwise HOST and PORT)')
    .option('--project <id>', 'project id', '@current')
    .option('--json', "print the private API's response and the days as JSON")
    .addHelpText(
      'after',
      `
Requires PENNON_PERSONAL_KEY with the scope import_job:read. Two jobs may cover the same days: events that are the same in
both count once. A job can only be published or discarded from the folder it was planned in.

  $ pennon import list
  $ pennon import list --host https://pennon.example --json | jq '.covered[] | select(.ids == [])'`,
    )
    .action(createLazyAction(async () => (await import('./service/list-jobs.ts')).listJobs))
  command
    .command('report <folder>')
    .description('show what the rehearsal found, and what was sent since')
    .option('--json', 'print as JSON')
    .option('--samples', 'show records with the events they produce, or the reason for rejecting or skipping them')
    .option('--of <event>', 'only samples of this event, or of reject:REASON or skip:REASON')
    .option('--day <day>', 'only samples of this day')
    .addHelpText(
      'after',
      `
Once everything is sent, it also compares stored with sent events. As a web page, the report is in report.html in the
folder. Next: pennon import run, which asks to approve and send it, or publish.

  $ pennon import report history
  $ pennon import report history --samples --of Ordered
  $ pennon import report history --samples --of reject:timestamp_invalid`,
    )
    .action(createLazyAction(async () => (await import('./report.ts')).showReport))
  command
    .command('rejects <folder>')
    .description('list the records that cannot be sent, each with its line and reason')
    .option('--group', 'group by reason, with counts, three examples and what to do')
    .option('--reason <reason>', 'only rejects with this reason')
    .option('--json', 'print complete rejects as JSON')
    .addHelpText(
      'after',
      `
Line numbers refer to your files. Next: fix the mapping or the files and plan again before sending, or repair the records
and send them later with pennon import retry.

  $ pennon import rejects history --group
  $ pennon import rejects history --reason distinct_id_missing --json > to-repair.jsonl`,
    )
    .action(createLazyAction(async () => (await import('./rejects.ts')).showRejects))
  addEndCommands(command)
}

function addEndCommands(command: Command): void {
  command
    .command('retry <folder>')
    .description('send repaired records that were rejected, as part of the same import')
    .requiredOption(
      '--rejects <file>',
      'file with lines of rejects/ with a repaired source, or repaired records as JSON, one per line',
    )
    .addHelpText(
      'after',
      `
Repaired records get the ids that they would have had, so repeating the command creates no duplicates. Next: pennon import
run, which compares stored with sent events.

  $ pennon import rejects history --reason distinct_id_missing --json > repaired.jsonl
  $ pennon import retry history --rejects repaired.jsonl`,
    )
    .action(createLazyAction(async () => (await import('./retry.ts')).retryRejects))
  command
    .command('publish <folder>')
    .description('make the sent events visible in the project; can be undone for 30 days')
    .option('--project <name>', 'name of the target project (its URL if it has no name), instead of typing it')
    .option('--unverified', 'publish even if the stored events were not verified')
    .addHelpText(
      'after',
      `
The service links persons, merges properties and moves the events; Ctrl-C only stops waiting for it. In a terminal, you
must type the name of the project. To undo it within 30 days: pennon import discard.

  $ pennon import publish history
  $ pennon import publish history --project 'Default project'`,
    )
    .action(createLazyAction(async () => (await import('./end-job.ts')).publishOrDiscardImport.bind(null, 'publish')))
  command
    .command('discard <folder>')
    .description('undo an import, before or up to 30 days after publishing')
    .option('--project <name>', 'name of the target project (its URL if it has no name), instead of typing it')
    .addHelpText(
      'after',
      `
Everything the import wrote is restored to its previous state. Data that was changed or built upon since then is kept, and
listed with reason and count${inDocs('import.md')}.

  $ pennon import discard history
  $ pennon import discard history --project 'Default project'`,
    )
    .action(createLazyAction(async () => (await import('./end-job.ts')).publishOrDiscardImport.bind(null, 'discard')))
}

/** The options that `plan` and `go` share. */
function addPlanOptions(command: Command): Command {
  return command
    .option(
      '--source <name>',
      'product the files come from (listed by convert --help); default: from the download, or asked in a terminal',
    )
    .option('--config <file>', 'JSON file with options of the source')
    .option('--mapping <file>', 'JSON file that maps record fields to events, for the source generic')
    .option('--source-timezone <zone>', 'time zone of times without a zone, such as Europe/Berlin')
    .option(
      '--profile-timestamp <time>',
      'export time of Mixpanel profiles (default: end of the download, or the last event)',
    )
    .addOption(new Option('--format <format>', 'text format (default: detected per file)').choices(['json', 'csv']))
    .option('--host <address>', 'URL of the target (default: PENNON, otherwise HOST and PORT)')
    .option('--api-host <address>', 'URL of its private API, if that is on another port (PENNON_ADMIN_PORT)')
    .option('--project-key <key>', 'project API key of the target (default: PENNON_PROJECT_KEY)')
    .option(
      '--max-reject-share <share>',
      'pause if more than this share of records, and more than 5, are rejected',
      '1%',
    )
    .option('--allow-damaged-files', 'import the readable part of truncated or damaged files')
    .option('--hold-live-window', 'reject events of the last 48 hours')
    .option('--retention-days <days>', 'retention of the target; older events are rejected')
    .option('--keep-identical', 'keep identical lines without an id as separate events')
    .option('--promote-groups', 'use the property groups as $groups')
    .option('--allow-dangerous-merge', 'merge known users if the source says they are the same person')
    .option(
      '--keep-person-data',
      'keep $set, $set_once and $unset of PostHog events, even if the project has live events',
    )
    .option('--strip-person-data', 'omit them, even if the project has no live events')
    .addOption(
      new Option('--person-properties <how>', 'whether values of the import replace those of live events')
        .choices(['keep', 'overwrite'])
        .default('keep'),
    )
    .option('--first-touch-backdate', 'allow first values ($set_once) to replace those of later live events')
    .option('--geoip-from-record', 'look up the location of the IP address recorded with each event')
    .option('--count-in-experiments', "count the import's flag calls as flag exposures")
    .option('--accept-old', 'import old events even if the project drops them when sent live')
}

function addPlanCommand(command: Command): void {
  addPlanOptions(command.command('plan <folder> [files...]'))
    .description(
      'start an import in a new folder: select the files, the product they come from, and the target project',
    )
    .option('--json', 'print the plan as JSON')
    .addHelpText(
      'after',
      `
FILES are files and folders: JSONL, JSON, CSV, Parquet or Avro, optionally compressed with gzip, zip or zstd. Default: the
files that pennon import fetch downloaded into the folder. Nothing is sent; the target is only asked whether the keys are
valid. In a terminal, missing options are asked for. Next: pennon import run.

  $ pennon import plan history export/ --source mixpanel --project-key phc_…
  $ pennon import plan orders orders.csv --source generic --mapping mapping.json --source-timezone Europe/Berlin`,
    )
    .action(createLazyAction(async () => (await import('./plan/plan.ts')).planImport))
}

function addRunCommand(command: Command): void {
  command
    .command('run <folder>')
    .description('rehearse an import, ask to approve it, send and verify it; run again to resume')
    .option('--source-timezone <zone>', 'time zone of the records, if the scan finds that their times are not UTC')
    .option('--max-reject-share <share>', 'pause if more than this share of records, and more than 5, are rejected')
    .option('--allow-damaged-files', 'continue with the readable part of truncated or damaged files')
    .option('--rehearsal-project <key>', 'send the whole history of some persons to this test project, to look at it')
    .option('--overlap-ok', 'send even if the project has live events on the same days')
    .option('--rate <events>', 'initial events per second (default: 1,000)')
    .option('--rehearse-again', 'rehearse again even if nothing changed, for example to query the target again')
    .option('--yes <hash>', 'approve without a question, in a script: the hash that run printed after the rehearsal')
    .option('--json', 'print the report as JSON')
    .addHelpText(
      'after',
      `
Converts all records exactly as they will be sent, shows the result, and asks for the name of the project: nothing is sent
before you approve it. The approval covers exactly what was rehearsed: changed files, mapping, target or limits need
another. Ctrl-C pauses without losing progress. To watch it from another terminal: pennon import status. Without a
terminal, run ends after the rehearsal and prints the command that approves it.

  $ pennon import run history
  $ pennon import rejects history --group
  $ pennon import run history --yes 0123456789ab`,
    )
    .action(createLazyAction(async () => (await import('./run/run.ts')).runImport))
}

function addGoCommand(command: Command): void {
  addPlanOptions(command.command('go <files...>'))
    .description('import a few files in one go, in a terminal: plan, rehearse, approve, send, verify and publish')
    .option('--folder <folder>', 'folder of the import (default: import-DATE-SOURCE)')
    .option('--overlap-ok', 'send even if the project has live events on the same days')
    .addHelpText(
      'after',
      `
Asks before it sends the events and before it publishes them. Enter stops there, and the printed command continues.

  $ pennon import go export/ --source mixpanel`,
    )
    .action(createLazyAction(async () => (await import('./go.ts')).importFiles))
}
