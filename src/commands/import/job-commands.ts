// The options and help of the commands about a job: plan, run, status, list, report, rejects, approve, retry, publish,
// discard.

import { type Command, Option } from 'commander'
import { inDocs } from '#distribution.ts'
import type { ClientOptions } from '../client/run-client.ts'
import type { ApproveOptions } from './approve.ts'
import type { EndOptions } from './end-job.ts'
import type { GivenPlanOptions } from './plan/ask-plan.ts'
import type { RejectsOptions } from './rejects.ts'
import type { ReportOptions } from './report.ts'
import type { RetryOptions } from './retry.ts'
import type { RunOptions } from './run/run.ts'
import type { StatusOptions } from './status.ts'

export function addJobCommands(command: Command): void {
  addPlan(command)
  addRun(command)
  command
    .command('status <folder>')
    .description('where an import stands, also while it runs in another terminal')
    .option('--json', 'print it as JSON')
    .addHelpText(
      'after',
      `
With PENNON_PERSONAL_KEY it also asks the service for the state of the job. The last line is what to type next.

  $ pennon import status history
  $ pennon import status history --json | jq -r .next.command
  $ watch pennon import status history`,
    )
    .action(async (folder: string, options: StatusOptions) => (await import('./status.ts')).showStatus(folder, options))
  command
    .command('list')
    .description('the import jobs of a project, as its instance knows them, and which days they cover')
    .option('--host <address>', 'of the instance; by PENNON, or HOST and PORT, unless given')
    .option('--project <id>', 'id of the project', '@current')
    .option('--json', 'print what the private API answers, and the days, as JSON')
    .addHelpText(
      'after',
      `
Needs PENNON_PERSONAL_KEY, with the scope import_job:read. Days that two jobs cover are no harm: an event that is the same
in both counts once. A job of somebody else is published and discarded from the folder that it was planned in.

  $ pennon import list
  $ pennon import list --host https://pennon.example --json | jq '.covered[] | select(.ids == [])'`,
    )
    .action(async (options: ClientOptions) => (await import('./service/list-jobs.ts')).listJobs(options))
  command
    .command('report <folder>')
    .description('what the rehearsal found, or the final report once everything is sent')
    .option('--json', 'print it as JSON')
    .option('--markdown', 'print it as Markdown')
    .option('--samples', 'show records beside the events that they make, or the reason why not')
    .option('--of <event>', 'samples of this event only, or of reject:REASON or skip:REASON')
    .option('--day <day>', 'samples of this day only')
    .addHelpText(
      'after',
      `
Once everything is sent, it is the final report, with what is stored beside what was sent. As a page it is in
rehearsal/report.html or final/report.html of the folder. Next: pennon import approve, or publish.

  $ pennon import report history
  $ pennon import report history --samples --of Ordered
  $ pennon import report history --samples --of reject:timestamp_invalid
  $ pennon import report history --markdown > report.md`,
    )
    .action(async (folder: string, options: ReportOptions) => (await import('./report.ts')).showReport(folder, options))
  command
    .command('rejects <folder>')
    .description('the records that cannot be sent, each with its line and its reason')
    .option('--group', 'by reason: how many, three of them, and what to do')
    .option('--reason <reason>', 'only of this reason')
    .option('--json', 'print whole rejects as JSON')
    .addHelpText(
      'after',
      `
Lines are those of your files. Next: mend the mapping or the files and plan again before sending, or repair the records and
send them afterwards with pennon import retry.

  $ pennon import rejects history --group
  $ pennon import rejects history --reason distinct_id_missing --json > to-repair.jsonl`,
    )
    .action(async (folder: string, options: RejectsOptions) =>
      (await import('./rejects.ts')).showRejects(folder, options),
    )
  command
    .command('approve <folder>')
    .description('sign off what the rehearsal found, so that it can be sent')
    .option('--project <name>', 'the name of the target project instead of typing it; its address without a name')
    .addHelpText(
      'after',
      `
What is approved is what was rehearsed: other bytes, another mapping, target or limit need another approval. A terminal asks
for the name of the project. Next: pennon import run, which sends it.

  $ pennon import approve history
  $ pennon import approve history --project 'Default project'`,
    )
    .action(async (folder: string, options: ApproveOptions) =>
      (await import('./approve.ts')).approveImport(folder, options),
    )
  addEnds(command)
}

function addEnds(command: Command): void {
  command
    .command('retry <folder>')
    .description('send records that were rejected and are repaired now, as part of the same import')
    .requiredOption(
      '--rejects <file>',
      'lines of rejects/ with a repaired source, or repaired records as JSON, one a line',
    )
    .addHelpText(
      'after',
      `
Repaired records get the ids that they would have had, so repeating it adds nothing. Next: pennon import run, which compares
what is stored with what was sent.

  $ pennon import rejects history --reason distinct_id_missing --json > repaired.jsonl
  $ pennon import retry history --rejects repaired.jsonl`,
    )
    .action(async (folder: string, options: RetryOptions) => (await import('./retry.ts')).retryRejects(folder, options))
  command
    .command('publish <folder>')
    .description('make what was sent part of the project; it can be undone for 30 days')
    .option('--project <name>', 'the name of the target project instead of typing it; its address without a name')
    .option('--unverified', 'although what is stored was not found to be what was sent')
    .addHelpText(
      'after',
      `
The service links persons, joins properties and moves the events; Ctrl-C only ends the waiting. A terminal asks for the name of
the project. Next: nothing; within 30 days pennon import discard takes it back.

  $ pennon import publish history
  $ pennon import publish history --project 'Default project'`,
    )
    .action(async (folder: string, options: EndOptions) =>
      (await import('./end-job.ts')).endImport(folder, 'publish', options),
    )
  command
    .command('discard <folder>')
    .description('take back all that was sent, before or up to 30 days after publishing')
    .option('--project <name>', 'the name of the target project instead of typing it; its address without a name')
    .addHelpText(
      'after',
      `
What the import wrote goes back to what was there before. What somebody else has written or built on since stays, and is
listed with its reason and count${inDocs('import.md')}.

  $ pennon import discard history
  $ pennon import discard history --project 'Default project'`,
    )
    .action(async (folder: string, options: EndOptions) =>
      (await import('./end-job.ts')).endImport(folder, 'discard', options),
    )
}

function addPlan(command: Command): void {
  command
    .command('plan <folder> [files...]')
    .description('begin an import in a folder of its own: which files, of which product, to which project')
    .option(
      '--source <name>',
      'the product that the files are from (convert --help lists them); what was fetched says it, and a terminal is asked',
    )
    .option('--config <file>', 'JSON with what the source needs to know')
    .option('--mapping <file>', 'JSON that says where the parts of an event stand, for the source generic')
    .option('--source-timezone <zone>', 'zone of times that name none, such as Europe/Berlin')
    .option(
      '--profile-timestamp <time>',
      'when rows of Mixpanel profiles were exported; the end of what was fetched, or the last event, unless given',
    )
    .addOption(
      new Option('--format <format>', 'how texts are written; found from each file unless given').choices([
        'json',
        'csv',
      ]),
    )
    .option('--host <address>', 'of the target; by PENNON, or HOST and PORT, unless given')
    .option('--api-host <address>', 'of its private API, where that has a port of its own (PENNON_ADMIN_PORT)')
    .option('--project-key <key>', 'the public key of the target project; PENNON_PROJECT_KEY unless given')
    .option('--max-reject-share <share>', 'pause when more records than this are rejected, and more than 5', '1%')
    .option('--allow-damaged-files', 'import files that are cut off or damaged as far as they can be read')
    .option('--hold-live-window', 'leave out events of the last 48 hours instead of sending them')
    .option('--retention-days <days>', 'what the target keeps; older events are rejected')
    .option('--keep-identical', 'lines that are the same and have no id are events of their own')
    .option('--promote-groups', 'take the property groups for $groups')
    .option('--allow-dangerous-merge', 'join known users where the source says that they are one')
    .option(
      '--keep-person-data',
      'keep $set, $set_once and $unset of PostHog events, also for a project with live events',
    )
    .option('--strip-person-data', 'leave them out, also for a project without live events')
    .addOption(
      new Option('--person-properties <how>', 'whether values of the import replace those of live events')
        .choices(['keep', 'overwrite'])
        .default('keep'),
    )
    .option('--first-touch-backdate', 'let first values ($set_once) replace those of later live events')
    .option('--geoip-from-record', 'let the service look up the address that each event was recorded with')
    .option('--count-in-experiments', 'count flag calls of the import in the exposures of flags')
    .option('--accept-old', 'import into a project that drops old events when they come live')
    .option('--json', 'print the plan as JSON')
    .addHelpText(
      'after',
      `
FILES are files and folders: JSONL, JSON, CSV, Parquet or Avro, also packed with gzip, zip or zstd. Without any, those that
pennon import fetch put into the folder. The target is only asked whether it knows the keys; nothing is sent. A terminal is
asked for what is missing. Next: pennon import run.

  $ pennon import plan history export/ --source mixpanel --project-key phc_…
  $ pennon import plan orders orders.csv --source generic --mapping mapping.json --source-timezone Europe/Berlin`,
    )
    .action(async (folder: string, files: readonly string[], options: GivenPlanOptions) =>
      (await import('./plan/plan.ts')).planImport(folder, files, options),
    )
}

function addRun(command: Command): void {
  command
    .command('run <folder>')
    .description(
      'stage, scan and rehearse an import, and once approved send and verify it; it goes on where it stopped',
    )
    .option('--source-timezone <zone>', 'the zone of the times, when the scan finds that they are no UTC')
    .option('--max-reject-share <share>', 'pause when more records than this are rejected, and more than 5')
    .option('--allow-damaged-files', 'go on without what is missing of files that are cut off or damaged')
    .option(
      '--rehearsal-project <key>',
      'send some persons to this project for trying, and show what both projects hold',
    )
    .option('--share <share>', 'of the persons, for --rehearsal-project; 1% unless given')
    .option('--rehearsal-project-name <name>', 'of a rehearsal project that has other events, instead of typing it')
    .option(
      '--canary',
      'stop after groups, links and the first 1,000 events of records, for a look at what is stored of them',
    )
    .option('--overlap-ok', 'send although the project has live events of the same days')
    .option('--rate <events>', 'events per second at first; 1,000 unless given')
    .option('--rehearse-again', 'rehearse although nothing changed, such as to ask the target again')
    .option('--json', 'print the report as JSON')
    .addHelpText(
      'after',
      `
All records are converted as they will be sent, and nothing is sent before somebody approves what is found. Ctrl-C pauses;
nothing that is done is lost, wherever it is stopped. Once it is approved, the same command sends it and compares what is
stored. Another terminal asks with pennon import status.

  $ pennon import run history
  $ pennon import report history
  $ pennon import rejects history --group`,
    )
    .action(async (folder: string, options: RunOptions) => (await import('./run/run.ts')).runImport(folder, options))
}
