// Stage 4: reads everything that would be sent, and sends nothing. Its report is what a person approves. A
// stopped rehearsal starts again from the beginning, since it keeps no state. Source: docs/wire/import.md §2.7.

import { DistinctCount, ReusedIds } from '#importer/stages/report/distinct-count.ts'
import { compareTexts, EventCounts } from '#importer/stages/report/event-counts.ts'
import {
  type Balance,
  type ImportReport,
  isReportBalanced,
  reportNames,
  type TargetAnswer,
} from '#importer/stages/report/import-report.ts'
import { listPlanChoices } from '#importer/stages/report/plan-choices.ts'
import {
  listDamagedFiles,
  OtherSourceDetector,
  ReasonCounts,
  RejectedRecordEstimate,
} from '#importer/stages/report/rejects.ts'
import { writeReport } from '#importer/stages/report/report-html.ts'
import { Samples, samplesFile } from '#importer/stages/report/samples.ts'
import { createTargetWarnings, type TargetFactsQuery } from '#importer/stages/report/target-facts.ts'
import {
  createCountWarnings,
  createNoteWarnings,
  WarningCollector,
  warnOfUnseenNames,
} from '#importer/stages/report/warnings.ts'
import { hashManifest } from '../job/approval.ts'
import { throwIfPaused } from '../job/job-paused.ts'
import { countBlankLines, countRecordsRead, type Manifest } from '../job/manifest.ts'
import { hashConversionSettings } from '../job/plan.ts'
import { isGeneratedPart, type StagedOutcome } from '../job/staged-part.ts'
import { envelopeBytesMax } from '../records/convert-record.ts'
import { findMergedDistinctId } from '../records/generated-events.ts'
import type { ImportSource } from '../records/import-source.ts'
import type { ImportedEvent, RecordRejectReason, SkipReason } from '../records/imported-event.ts'
import { isTimeRecent, utcDay } from '../records/source-time.ts'
import { ExpectedCollector, storeExpectations } from './expected/expected.ts'
import type { StageContext } from './job-conversion.ts'
import { openStagedJob } from './part-lines.ts'
import { createRejectLine, RejectFile } from './reject-files.ts'
import { explainSkip, findRejectFix } from './reject-fixes.ts'
import { shownSourceMax } from './staged-line.ts'

const exactIdsMax = 200_000
/** The size of request bodies is estimated from one event in this many. */
const measuredEvery = 32
const eventsPerSecond = 1_000

export interface RehearseOptions extends StageContext {
  readonly manifest: Manifest
  readonly monotonicNowMs: () => number
  /** The clock for the report; if absent, the report has no time of the rehearsal. */
  readonly nowMs?: () => number
  /** The other sources, to detect that rejected records belong to one of them. */
  readonly otherSources?: readonly ImportSource[]
  /** Asks the target which events it already has; if absent, the report says that the target was not asked. */
  readonly askTarget?: (asked: TargetFactsQuery) => Promise<TargetAnswer>
}

export async function rehearseImport(options: RehearseOptions): Promise<ImportReport> {
  const { folder, manifest, progress, signal, monotonicNowMs, waitForSpace } = options
  const startMs = monotonicNowMs()
  progress.begin('rehearse', { records: countRecordsRead(manifest) })
  progress.add({ records: countBlankLines(manifest), isEarlier: true })
  // Wait for disk space before removing earlier files, as otherwise their space would be filled again at once.
  await waitForSpace()
  folder.remove('rejects', 'rehearsal', ...Object.values(reportNames))
  const counts = new RehearsalCounts(options)
  const expected = await countStagedRecords(options, counts)
  progress.day(null)
  const reused = await counts.reused.count(signal)
  folder.write(samplesFile, counts.samples.all.map(sample => `${JSON.stringify(sample)}\n`).join(''))
  const seconds = (monotonicNowMs() - startMs) / 1_000
  const report = counts.report(seconds, reused, await askAboutCounts(options, counts))
  storeExpectations(folder, { sent: report.balance.toSend, refused: 0 }, expected.end())
  writeReport(folder, report, counts.samples.all)
  return report
}

/** Closes the staged records before the target is asked, since their database may hold 64 MiB in its cache. */
async function countStagedRecords(options: RehearseOptions, counts: RehearsalCounts): Promise<ExpectedCollector> {
  const { folder, manifest, progress, signal, waitForSpace } = options
  using staged = openStagedJob(folder, manifest)
  const expected = new ExpectedCollector(staged.personOf)
  for (const part of staged.parts) {
    const isGenerated = isGeneratedPart(part)
    if (!isGenerated) progress.day(part.id.split('/')[0]!)
    await waitForSpace()
    expected.beginPart(part)
    const rejects = new RejectFile(folder, part.id)
    for await (const outcome of staged.readPart(part)) {
      throwIfPaused(signal)
      const { result } = outcome
      const events = result.kind === 'events' ? result.events : []
      for (const event of events) expected.add(event)
      if (isGenerated) {
        for (const event of events) counts.generated(event)
        continue
      }
      progress.add({ records: 1, rejects: result.kind === 'rejected' ? 1 : 0 })
      counts.outcome(part.id, outcome)
      if (result.kind === 'rejected') rejects.add(createRejectLine(part.id, manifest.source, outcome, result))
    }
    rejects.end()
  }
  return expected
}

async function askAboutCounts(
  { askTarget, progress }: RehearseOptions,
  counts: RehearsalCounts,
): Promise<TargetAnswer> {
  if (askTarget === undefined) return { notAsked: 'this rehearsal had no target to ask.' }
  progress.waiting('the events that the target has for the same days')
  try {
    return await askTarget(counts.asked())
  } finally {
    progress.waiting(null)
  }
}

class RehearsalCounts {
  readonly samples = new Samples()
  readonly reused: ReusedIds
  readonly #options: RehearseOptions
  readonly #nowMs: number
  readonly #events = new EventCounts()
  readonly #rejects = new ReasonCounts()
  readonly #skips = new ReasonCounts()
  readonly #ids = new DistinctCount(exactIdsMax)
  readonly #groups = new DistinctCount(exactIdsMax)
  /** Counts ids whose person is merged into the person of another id. */
  readonly #joined = new DistinctCount(exactIdsMax)
  readonly #suspicions = new WarningCollector()
  readonly #otherSource: OtherSourceDetector
  readonly #tables: ReadonlyMap<string, string | null>
  readonly #notes = new Map<string, number>()
  readonly #dropped = new Map<string, number>()
  readonly #recentDays = new Set<string>()
  readonly #held = new RejectedRecordEstimate()
  readonly #records = { all: 0, givingEvents: 0, givingOnlyGenerated: 0, collapsed: 0 }
  readonly #ofEvents = { generated: 0, ofGroups: 0, recent: 0, measured: 0, measuredBytes: 0 }

  constructor(options: RehearseOptions) {
    this.#options = options
    this.#nowMs = Date.parse(options.plan.createdAt)
    this.reused = new ReusedIds(options.folder)
    this.#otherSource = new OtherSourceDetector(options.otherSources ?? [], this.#nowMs)
    this.#tables = new Map(options.manifest.objects.map(({ object, table }) => [object, table]))
    for (const { object, blank } of options.manifest.objects)
      if (blank !== undefined) this.#skips.add('blank_line', null, { object, line: blank.firstLine }, blank.count)
  }

  generated(event: ImportedEvent): void {
    this.#ofEvents.generated++
    this.#event(event, true)
  }

  outcome(part: string, outcome: StagedOutcome): void {
    const { raw, result } = outcome
    this.#records.all++
    this.samples.offer(part, outcome)
    if (result.kind === 'rejected') this.#held.addReject(measureUnreadable(outcome, result.reason))
    else this.#held.addRead(outcome.textBytes)
    switch (result.kind) {
      case 'collapsed':
        this.#records.collapsed++
        return
      case 'skipped':
        this.#skips.add(result.reason, null, raw)
        return
      case 'rejected': {
        const { reason, field, detail } = result
        this.#rejects.add(reason, field, raw, 1, findRejectFix(reason, this.#options.plan.source, detail))
        this.#otherSource.add(outcome, this.#tables.get(raw.object) ?? null)
        return
      }
      case 'events':
        this.#records.givingEvents++
        if (result.events.length === 0) this.#records.givingOnlyGenerated++
        for (const note of result.notes) countText(this.#notes, note)
        for (const field of result.dropped) countText(this.#dropped, field)
        for (const event of result.events) {
          this.#event(event)
          this.reused.add(event.uuid)
          this.#suspicions.add(raw.object, event)
        }
        return
      default:
        result satisfies never
    }
  }

  asked(): TargetFactsQuery {
    return {
      names: this.#events.names().map(({ event }) => event),
      days: this.#events.days().map(({ day }) => day),
    }
  }

  /** @param reused how many events have a source id that another event has too. */
  report(seconds: number, reused: number, targetAnswer: TargetAnswer): ImportReport {
    const { folder, plan, manifest, nowMs } = this.#options
    const stats = manifest.scan
    const { limits, target } = plan
    const balance = this.#balance()
    const { recent, measured, measuredBytes } = this.#ofEvents
    const held = this.#held.records()
    const { others } = this.#events
    const counted = {
      events: this.#events.names(),
      ...(others > 0 && { eventsOfOtherNames: others }),
      days: this.#events.days(),
      rejects: this.#rejects.reasons(reason => findRejectFix(reason as RecordRejectReason, plan.source)),
      skips: this.#skips.reasons(reason => explainSkip(reason as SkipReason, plan.source)),
    }
    const distinctIds = this.#ids.estimate()
    const merges = this.#joined.estimate().count
    const identity = { links: merges, sharedDevices: stats.sharedDevices, devices: stats.devices }
    return {
      v: 1,
      jobId: plan.jobId,
      folder: folder.path,
      plannedAt: plan.createdAt,
      ...(nowMs !== undefined && { rehearsedAt: new Date(nowMs()).toISOString() }),
      source: plan.source,
      config: plan.config,
      sourceTimezone: manifest.sourceTimezone,
      target: target && { address: target.address, projectId: target.projectId, projectName: target.projectName },
      choices: listPlanChoices(plan, targetAnswer),
      hashes: { manifest: hashManifest(manifest), mapping: hashConversionSettings(plan) },
      targetAnswer,
      range: this.#events.range(),
      balance,
      ...counted,
      damagedFiles: listDamagedFiles(manifest),
      looksLike: this.#otherSource.likely(),
      ...(held > balance.rejected && { heldByRejects: held }),
      rejectShare: balance.read === 0 ? 0 : held / (balance.read - balance.rejected + held),
      maxRejectShare: limits.maxRejectShare,
      distinctIds,
      identity,
      groups: { events: this.#ofEvents.ofGroups, types: this.#suspicions.groupTypes() },
      dropped: sortCounts(this.#dropped).map(([field, count]) => ({ field, count })),
      notes: sortCounts(this.#notes).map(([note, count]) => ({ note, count })),
      warnings: [
        ...createTargetWarnings(targetAnswer, { days: counted.days, acceptsOld: limits.acceptsOld === true }),
        ...createCountWarnings({ ...counted, manifest, reused, identity }),
        ...this.#suspicions.warnings(limits.groupTypesMax),
        ...createNoteWarnings(this.#notes, balance.givingEvents),
        ...warnOfUnseenNames(stats.unseenNames),
      ],
      predicted: {
        events: balance.toSend,
        persons: Math.max(0, distinctIds.count - merges),
        groups: this.#groups.estimate().count,
        merges,
        bytes: Math.round((measuredBytes / Math.max(1, measured)) * balance.toSend),
        seconds: Math.ceil(balance.toSend / eventsPerSecond),
        charged: 0,
        recent: { events: recent, days: [...this.#recentDays].toSorted(compareTexts) },
      },
      seconds,
      recordsPerSecond: Math.round(balance.read / Math.max(seconds, 0.001)),
      sent: null,
    }
  }

  #event(event: ImportedEvent, isGenerated = false): void {
    this.#events.add(event, isGenerated)
    this.#ids.add(event.distinctId)
    const { $group_type, $group_key } = event.properties
    if (event.event === '$groupidentify' && typeof $group_type === 'string') {
      this.#ofEvents.ofGroups++
      this.#groups.add(JSON.stringify([$group_type, $group_key]))
    }
    const joined = findMergedDistinctId(event)
    if (joined !== null) {
      this.#ids.add(joined)
      this.#joined.add(joined)
    }
    if (isTimeRecent(event.timeUs, this.#nowMs)) {
      this.#ofEvents.recent++
      this.#recentDays.add(utcDay(event.timeUs))
    }
    if (this.#events.total % measuredEvery === 1) {
      this.#ofEvents.measured++
      this.#ofEvents.measuredBytes += Buffer.byteLength(JSON.stringify(event.properties)) + envelopeBytesMax
    }
  }

  #balance(): Balance {
    const blankLines = countBlankLines(this.#options.manifest)
    const { all, givingEvents, givingOnlyGenerated, collapsed } = this.#records
    const { generated } = this.#ofEvents
    const toSend = this.#events.total
    const balance = {
      ...{ read: all + blankLines, blankLines, givingEvents, ...(givingOnlyGenerated > 0 && { givingOnlyGenerated }) },
      ...{ skipped: this.#skips.total, rejected: this.#rejects.total, collapsed },
      ...{ fromRecords: toSend - generated, generated, toSend },
    }
    const isWhole = all === this.#options.manifest.totals.records
    return { ...balance, isBalanced: isWhole && isReportBalanced(balance) }
  }
}

/** @returns how many bytes of the file may contain several records; null if the reject is certainly a single record. */
function measureUnreadable({ source }: StagedOutcome, reason: RecordRejectReason): number | null {
  const { unreadableBytes, row, text } = source()
  // An unclosed quote may join thousands of rows into one, even with the right number of cells.
  if (unreadableBytes === null) return row !== undefined && text.length >= shownSourceMax ? text.length : null
  // If a record is too large, only its beginning is known.
  const isWholeLine = reason !== 'record_too_large' && !/[\r\n]/.test(text)
  return isWholeLine || endsAreSure.has(reason) ? null : unreadableBytes
}

/** Reject reasons that concern only the content of a record, so that its boundaries are certain. */
const endsAreSure: ReadonlySet<RecordRejectReason> = new Set(['encoding_invalid_utf8', 'json_not_object'])

/** Limits how many different texts are counted, since fields and details of notes may have any number of names. */
const countedTextsMax = 10_000

function countText(counts: Map<string, number>, text: string): void {
  const known = counts.get(text)
  if (known !== undefined || counts.size < countedTextsMax) counts.set(text, (known ?? 0) + 1)
  else counts.set(otherTexts, (counts.get(otherTexts) ?? 0) + 1)
}

const otherTexts = '(others)'

/** Sorted by count, most frequent first. */
function sortCounts(counts: ReadonlyMap<string, number>): [string, number][] {
  return [...counts].toSorted(([a, countOfA], [b, countOfB]) => countOfB - countOfA || compareTexts(a, b))
}
