// `pennon import report FOLDER`: prints the result of the rehearsal, or the final report once everything is sent, as text
// or JSON.

import { readFileSync } from 'node:fs'
import { firstFew, formatCount } from '#core/format-count.ts'
import { printable } from '#core/printable.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { type Ending, readEnding } from '#importer/send/service-job.ts'
import type { RehearsalReport } from '#importer/stages/report/rehearsal-report.ts'
import { reportNames } from '#importer/stages/report/report-files.ts'
import { createReportSections, describeJob, type Section } from '#importer/stages/report/report-sections.ts'
import { readSamples, type Sample } from '#importer/stages/report/samples.ts'
import { createFinalSections, createSentSoFarSection } from '#importer/verify/final-pages.ts'
import { finalReportNames, readFinalReport } from '#importer/verify/final-report.ts'
import { readSentSoFar } from '#importer/verify/sent-so-far.ts'
import { endWithOutput } from '../client/end-with-output.ts'
import { tableLines } from '../client/table.ts'
import { type Terminal, terminalOf } from '../client/terminal.ts'
import { refuse } from '../refuse.ts'
import { readReport } from './job/job-stages.ts'
import { findNextStep, readStanding } from './job/next-step.ts'
import { type Job, openJob, runOrRefuse } from './job/open-job.ts'
import { nextLine, quotePath } from './messages/next-line.ts'
import { printLines, printText } from './messages/print.ts'
import { askService, type ServiceAnswer } from './service/ask-service.ts'

/** As commander gives them. */
export interface ReportOptions {
  readonly json?: boolean
  readonly samples?: boolean
  /** Which samples to show: the name of an event, `reject:REASON` or `skip:REASON`. */
  readonly of?: string
  readonly day?: string
}

export async function showReport(path: string, options: ReportOptions): Promise<void> {
  endWithOutput()
  const job = openJob(path)
  await runOrRefuse(job.folder, () => printReport(job, path, options))
}

async function printReport(job: Job, path: string, options: ReportOptions): Promise<void> {
  const { json = false, samples = false } = options
  const { folder } = job
  const report = readReport(folder)
  if (report === null) refuse(`nothing has been rehearsed yet: pennon import run ${quotePath(path)}`)
  if (samples) {
    showSamples(folder, report, options)
    return
  }
  const final = readFinalReport(folder)
  const names = final === null ? reportNames : finalReportNames
  if (json) {
    printText(readReportText(folder, names.json))
    return
  }
  const terminal = terminalOf(process.stdout)
  const service = await askService(job)
  const ending = findEnding(job, service)
  const sent = readSentSoFar(folder)
  const isBehind = final === null || (!final.isAll && sent?.events !== final.balance.sent)
  const sections = [
    ...(isBehind ? createSentSoFarSection(sent, report, ending) : []),
    ...(final === null ? createReportSections(report) : createFinalSections(final, ending)),
  ]
  const about = [...describeJob(report).map(printable), '']
  const lines = [...about, ...sections.flatMap(section => sectionLines(section, terminal))]
  const next = nextLine(findNextStep(path, await readStanding(job), service))
  process.stdout.write(
    `${lines.join('\n')}\nAs a web page: ${printable(folder.file(names.html))}\n${printable(next)}\n`,
  )
}

/** The service's answer comes first: the job may have been published or discarded from elsewhere. */
function findEnding({ folder }: Job, service: ServiceAnswer): Ending | null {
  if (service === null || 'unknownBecause' in service) return readEnding(folder)
  const { id, state, publishedAt, discardedAt } = service
  const toEnding = (how: Ending['how'], at: string | null): Ending => ({
    ...{ serviceJobId: id, how, isDone: true },
    ...(at !== null && { at }),
  })
  if (state === 'published') return toEnding('publish', publishedAt)
  return state === 'discarded' ? toEnding('discard', discardedAt) : null
}

/** Reads a file of an existing report. @throws JobStopped if it is missing. */
function readReportText(folder: JobFolder, name: string): string {
  try {
    return readFileSync(folder.file(name), 'utf8')
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? folder.damaged(name) : error
  }
}

/** @returns a message with the days or events that do have samples. */
export function describeNoSamples({ of, day }: Asked, samples: readonly Sample[], { days }: RehearsalReport): string {
  const asked = `${of === undefined ? '' : ` of ${of}`}${day === undefined ? '' : ` of the day ${day}`}`
  const count = days.find(each => each.day === day)?.count ?? 0
  const kept = count === 0 ? '' : ` The day has ${formatCount(count, 'event')}, but only a few records are sampled.`
  return `There are no samples${asked}.${kept}${describeOtherSamples({ of, day }, samples)}`
}

interface Asked {
  readonly of?: string | undefined
  readonly day?: string | undefined
}

function describeOtherSamples({ of, day }: Asked, samples: readonly Sample[]): string {
  const ofName = samples.filter(each => of === undefined || each.of === of)
  const days = joinList(ofName.flatMap(each => each.day ?? []).toSorted())
  if (day !== undefined && days !== '')
    return ` There are samples${of === undefined ? '' : ` of ${of}`} of the days: ${days}.`
  const names = joinList(samples.map(each => each.of))
  return names === '' ? '' : ` There are samples of: ${names}.`
}

function joinList(texts: readonly string[]): string {
  return firstFew([...new Set(texts)]).join(', ')
}

/** Prints source records and what becomes of them. */
function showSamples(folder: JobFolder, report: RehearsalReport, { of, day, json = false }: ReportOptions): void {
  const samples = readSamples(folder)
  const shown = samples.filter(
    sample => (of === undefined || sample.of === of) && (day === undefined || sample.day === day),
  )
  for (const sample of shown) printLines(json ? [JSON.stringify(sample)] : [...sampleLines(sample), ''])
  if (shown.length > 0) return
  // With --json, stdout must stay empty: it holds only lines of JSON.
  const stream = json ? process.stderr : process.stdout
  stream.write(`${printable(describeNoSamples({ of, day }, samples, report))}\n`)
}

function sampleLines({ of, object, line, source, events, field, detail }: Sample): string[] {
  const reason = [of, ...(field == null ? [] : [field]), ...(detail === undefined ? [] : [detail])].join(', ')
  const after = events === undefined ? [reason] : events.map(event => JSON.stringify(event))
  return [`${of}: ${object}, line ${line}`, source, ...after.map(each => `  → ${each}`)]
}

function sectionLines({ title, lines, tables }: Section, terminal: Terminal): string[] {
  return [
    terminal.paint('bold', title),
    ...lines.map(printable),
    ...tables.flatMap(({ caption, columns, rows }) => {
      const shown = columns.map(({ title: heading, isNumber }, index) => ({
        title: heading,
        value: (row: readonly string[]) => row[index]!,
        ...(isNumber ? { align: 'right' as const } : { widthMin: 12 }),
      }))
      return ['', printable(caption), ...tableLines(shown, rows, terminal)]
    }),
    '',
  ]
}
