// `pennon import report FOLDER`: what the rehearsal found, and once it is sent what became of it, for a terminal, as JSON, or as Markdown.

import { readFileSync } from 'node:fs'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { type Ending, readEnding } from '#importer/send/service-job.ts'
import { reportNames } from '#importer/stages/rehearse.ts'
import { aboutLines, reportSections, type Section } from '#importer/stages/report/report-sections.ts'
import { type Sample, sampleSchema, samplesFile } from '#importer/stages/report/samples.ts'
import { finalSections, sentSoFarSection } from '#importer/verify/final-pages.ts'
import { finalReportNames, readFinalReport } from '#importer/verify/final-report.ts'
import { sentSoFar } from '#importer/verify/sent-so-far.ts'
import { endWithOutput } from '../client/end-with-output.ts'
import { printable } from '../client/printable.ts'
import { tableLines } from '../client/table.ts'
import { type Terminal, terminalOf } from '../client/terminal.ts'
import { refuse } from '../refuse.ts'
import { readReport } from './job/job-stages.ts'
import { nextStep, standingOf } from './job/next-step.ts'
import { type Job, openJob, orStop } from './job/open-job.ts'
import { askService, type ServiceAnswer } from './service/ask-service.ts'
import { printLines, printText } from './words/print.ts'
import { nextLine, quoted } from './words/step-words.ts'

/** As commander gives them. */
export interface ReportOptions {
  readonly json?: boolean
  readonly markdown?: boolean
  readonly samples?: boolean
  /** What samples to show: the name of an event, `reject:REASON` or `skip:REASON`. */
  readonly of?: string
  readonly day?: string
}

export async function showReport(path: string, options: ReportOptions): Promise<void> {
  endWithOutput()
  const job = openJob(path)
  await orStop(job.folder, () => tellReport(job, path, options))
}

async function tellReport(job: Job, path: string, options: ReportOptions): Promise<void> {
  const { json = false, markdown = false, samples = false } = options
  const { folder } = job
  const report = readReport(folder)
  if (report === null) refuse(`nothing is rehearsed yet: pennon import run ${quoted(path)}`)
  if (samples) {
    showSamples(folder, options)
    return
  }
  const final = readFinalReport(folder)
  const names = final === null ? reportNames : finalReportNames
  if (json || markdown) {
    printText(textOf(folder, json ? names.json : names.md))
    return
  }
  const terminal = terminalOf(process.stdout)
  const service = await askService(job)
  const ending = endingOf(job, service)
  const sent = sentSoFar(folder)
  const isBehind = final === null || (final.isAll === false && sent?.events !== final.balance.sent)
  const sections = [
    ...(isBehind ? sentSoFarSection(sent, report, ending) : []),
    ...(final === null ? reportSections(report) : finalSections(final, ending)),
  ]
  const about = [...aboutLines(report).map(printable), '']
  const lines = [...about, ...sections.flatMap(section => sectionLines(section, terminal))]
  const next = nextLine(nextStep(path, await standingOf(job), service))
  process.stdout.write(`${lines.join('\n')}\nAs a page: ${printable(folder.file(names.html))}\n${printable(next)}\n`)
}

/** The service knows also what somebody else did with the job. */
function endingOf({ folder }: Job, service: ServiceAnswer): Ending | null {
  if (service === null || 'unknownBecause' in service) return readEnding(folder)
  const { id, state, publishedAt, discardedAt } = service
  const ended = (how: Ending['how'], at: string | null): Ending => ({
    ...{ serviceJobId: id, how, isDone: true },
    ...(at !== null && { at }),
  })
  if (state === 'published') return ended('publish', publishedAt)
  return state === 'discarded' ? ended('discard', discardedAt) : null
}

/** A file that belongs to a report that is there. @throws JobStopped when it is gone. */
function textOf(folder: JobFolder, name: string): string {
  try {
    return readFileSync(folder.file(name), 'utf8')
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? folder.damaged(name) : error
  }
}

const namesShown = 20

/** @param names of which there are samples. */
function noSamples(
  { of, day }: { of?: string | undefined; day?: string | undefined },
  names: readonly string[],
): string {
  const asked = `${of === undefined ? '' : ` of ${of}`}${day === undefined ? '' : ` of the day ${day}`}`
  const others =
    names.length === 0
      ? ''
      : ` There are some of: ${names.slice(0, namesShown).join(', ')}${names.length > namesShown ? ', …' : ''}.`
  return `There is no sample${asked}.${others}`
}

/** Source records beside what becomes of them. */
function showSamples(folder: JobFolder, { of, day, json = false }: ReportOptions): void {
  let count = 0
  const names = new Set<string>()
  for (const text of textOf(folder, samplesFile).split('\n').slice(0, -1)) {
    const sample = folder.parseLine(samplesFile, text, sampleSchema)
    names.add(sample.of)
    if ((of !== undefined && sample.of !== of) || (day !== undefined && sample.day !== day)) continue
    count++
    printLines(json ? [text] : [...sampleLines(sample), ''])
  }
  if (count > 0) return
  // Whoever reads JSON reads lines, of which there are none.
  const stream = json ? process.stderr : process.stdout
  stream.write(`${printable(noSamples({ of, day }, [...names]))}\n`)
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
