// `pennon import report FOLDER`: prints what the rehearsal found and what was sent since, as text or JSON, or samples of
// records with their events.

import { truncateList } from '#core/format-count.ts'
import { toPrintable } from '#core/printable.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { readRehearsal, reportNames, type SentSummary } from '#importer/stages/report/import-report.ts'
import { createReportSections, describeJob, type Section } from '#importer/stages/report/report-sections.ts'
import { readSamples, type Sample } from '#importer/stages/report/samples.ts'
import { readSentSummary } from '#importer/verify/sent-summary.ts'
import { formatTable } from '../client/table.ts'
import { createTerminal, type Terminal } from '../client/terminal.ts'
import { findNextStep, readJobProgress } from './job/next-step.ts'
import { type Job, refuseMissingRehearsal, runReadOnlyOnJob } from './job/open-job.ts'
import { formatNextStep, printLines, printNothingFound, printText } from './messages/print.ts'
import { queryServiceJob, type ServiceAnswer } from './service/query-service-job.ts'

/** As commander gives them. */
interface ReportOptions {
  readonly json?: boolean
  readonly samples?: boolean
  /** Which samples to show: those of an event name, of `reject:REASON` or of `skip:REASON`. */
  readonly of?: string
  readonly day?: string
}

export async function showReport(path: string, options: ReportOptions): Promise<void> {
  await runReadOnlyOnJob(path, job => printReport(job, options))
}

async function printReport(job: Job, options: ReportOptions): Promise<void> {
  const { folder } = job
  const report = readRehearsal(folder)
  if (report === null) refuseMissingRehearsal(job)
  if (options.samples === true) return printSamples(folder, options)
  const service = await queryServiceJob(job)
  const sent = addEnding(readSentSummary(folder, report), service)
  if (options.json === true) return printText(`${JSON.stringify({ ...report, sent }, null, 2)}\n`)
  const terminal = createTerminal(process.stdout)
  const lines = [
    ...describeJob(report).map(toPrintable),
    '',
    ...createReportSections({ ...report, sent }).flatMap(section => formatSection(section, terminal)),
    `As a web page: ${toPrintable(folder.file(reportNames.html))}`,
    toPrintable(formatNextStep(findNextStep(job.path, await readJobProgress(job), service))),
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
}

/** Adds how the job ended. The service's answer takes precedence: the job may have been ended from elsewhere. */
function addEnding(sent: SentSummary | null, service: ServiceAnswer): SentSummary | null {
  if (sent === null || service === null || 'unknownBecause' in service) return sent
  const { state, publishedAt, discardedAt } = service
  const how = state === 'published' ? 'publish' : state === 'discarded' ? 'discard' : null
  const at = how === 'publish' ? publishedAt : discardedAt
  return { ...sent, ending: how && { how, isDone: true, ...(at !== null && { at }) } }
}

/** Prints source records and what becomes of them. */
function printSamples(folder: JobFolder, { of, day, json = false }: ReportOptions): void {
  const samples = readSamples(folder)
  const shown = samples.filter(
    sample => (of === undefined || sample.of === of) && (day === undefined || sample.day === day),
  )
  for (const sample of shown) printLines(json ? [JSON.stringify(sample)] : [...formatSample(sample), ''])
  if (shown.length === 0) printNothingFound(explainMissingSamples({ of, day }, samples), json)
}

interface Asked {
  readonly of?: string | undefined
  readonly day?: string | undefined
}

/** @returns a message with the days or events that do have samples. */
export function explainMissingSamples({ of, day }: Asked, samples: readonly Sample[]): string {
  const ofName = samples.filter(each => of === undefined || each.of === of)
  const others = day === undefined ? samples.map(each => each.of) : ofName.flatMap(each => each.day ?? []).toSorted()
  const asked = `${of === undefined ? '' : ` of ${of}`}${day === undefined ? '' : ` of the day ${day}`}`
  return `There are no samples${asked}: only a few records are sampled. There are samples of: ${truncateList([...new Set(others)]).join(', ')}.`
}

function formatSample({ of, object, line, source, events, field, detail }: Sample): string[] {
  const reason = [of, ...(field == null ? [] : [field]), ...(detail === undefined ? [] : [detail])].join(', ')
  const after = events === undefined ? [reason] : events.map(event => JSON.stringify(event))
  return [`${of}: ${object}, line ${line}`, source, ...after.map(each => `  → ${each}`)]
}

function formatSection({ title, lines, tables }: Section, terminal: Terminal): string[] {
  return [
    terminal.paint('bold', title),
    ...lines.map(toPrintable),
    ...tables.flatMap(({ caption, columns, rows }) => {
      const shown = columns.map(({ title: heading, isNumber }, index) => ({
        title: heading,
        value: (row: readonly string[]) => row[index]!,
        ...(isNumber ? { align: 'right' as const } : { widthMin: 12 }),
      }))
      return ['', toPrintable(caption), ...formatTable(shown, rows, terminal)]
    }),
    '',
  ]
}
