// What the stages of a job share: their options, and the conversion of a record by its source and the rules of the job.

import { formatCount } from '#core/format-count.ts'
import type { JobFolder } from '../job/job-folder.ts'
import type { ImportPlan } from '../job/plan.ts'
import type { StageProgress } from '../job/progress.ts'
import type { WaitForSpace } from '../read/disk-space.ts'
import { convertRecord } from '../records/convert-record.ts'
import type { ImportSource, RecordConverter } from '../records/import-source.ts'
import { type Conversion, type ConvertedRecord, RecordReject, type RejectedRecord } from '../records/imported-event.ts'
import { removeIdentityLinks } from '../records/service-drops.ts'
import { usPerMs } from '../records/source-time.ts'
import type { UnseenNames } from '../records/unseen-names.ts'
import type { RecordContent } from './staged-line.ts'

/** What every stage of a job needs. */
export interface StageContext {
  readonly folder: JobFolder
  readonly plan: ImportPlan
  readonly progress: StageProgress
  readonly signal: AbortSignal
  readonly waitForSpace: WaitForSpace
}

const usPerDay = 86_400_000 * usPerMs

export interface JobConversion {
  readonly converter: RecordConverter
  convert(content: RecordContent, ordinal: number, table: string | null): Conversion
}

/** @param findFact looks up a fact in the ledger, which is empty before the scan. @throws ImportConfigError */
export function createJobConverter(
  plan: ImportPlan,
  source: ImportSource,
  findFact: (kind: string, key: string) => string | null,
  unseenNames?: UnseenNames,
): JobConversion {
  const nowMs = Date.parse(plan.createdAt)
  const { holdLiveWindow } = plan.limits
  const converter = source.prepare(plan.config, { nowMs, holdLiveWindow, findFact, unseenNames })
  return {
    converter,
    convert: ({ parsed, text }, ordinal, table) => {
      if (!('value' in parsed)) return parsed
      const outcome = convertRecord(converter, { value: parsed.value, table, ordinal }, text.length)
      if (!('events' in outcome)) return outcome
      return (
        rejectBeyondRetention(outcome, plan, nowMs) ??
        (plan.limits.isPersonless ? convertWithoutPersons(outcome) : outcome)
      )
    },
  }
}

function convertWithoutPersons(record: ConvertedRecord): Conversion {
  try {
    return removeIdentityLinks(record)
  } catch (error) {
    if (!(error instanceof RecordReject)) throw error
    return error.outcome()
  }
}

/** Rejects a record if the target would at once delete one of its events. @returns null if it would keep all events. */
function rejectBeyondRetention(
  { events }: ConvertedRecord,
  { limits }: ImportPlan,
  nowMs: number,
): RejectedRecord | null {
  const { retentionDays } = limits
  if (retentionDays === null) return null
  const earliestUs = nowMs * usPerMs - retentionDays * usPerDay
  if (events.every(({ timeUs }) => timeUs >= earliestUs)) return null
  return new RecordReject(
    'older_than_retention',
    'timestamp',
    `the target keeps ${formatCount(retentionDays, 'day')}`,
  ).outcome()
}
