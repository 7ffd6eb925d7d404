// What becomes of a staged line in a job: the conversion of its source, and the rules that a job adds to it. Scan,
// rehearsal and send all ask here, so that they cannot differ.

import type { ImportPlan } from '../job/plan.ts'
import { convertRecord } from '../records/convert-record.ts'
import type { ImportSource, RecordConverter } from '../records/import-source.ts'
import { type Conversion, type ConvertedRecord, RecordReject } from '../records/imported-event.ts'
import { usPerMs } from '../records/source-time.ts'
import type { StagedLine } from './staged-line.ts'

/** Larger events are discarded by the receiver without a word. Source: docs/wire/import.md §2.5. */
export const eventBytesMax = 1_000_000
const usPerDay = 86_400_000 * usPerMs

export interface JobConversion {
  readonly converter: RecordConverter
  convert(line: StagedLine, table: string | null): Conversion
}

/** @param findFact what the ledger knows; nothing before the scan. @throws ImportConfigError */
export function jobConversion(
  plan: ImportPlan,
  source: ImportSource,
  findFact: (kind: string, key: string) => string | null,
): JobConversion {
  const nowMs = Date.parse(plan.createdAt)
  const { holdLiveWindow } = plan.limits
  const converter = source.prepare(plan.config, { nowMs, holdLiveWindow, findFact })
  return {
    converter,
    convert: ({ parsed, ordinal, text }, table) => {
      if (!('value' in parsed)) return parsed
      const outcome = convertRecord(converter, { value: parsed.value, table, ordinal })
      if (!('events' in outcome)) return outcome
      try {
        checkForJob(outcome, plan, nowMs, text.length)
      } catch (error) {
        if (!(error instanceof RecordReject)) throw error
        return error.outcome()
      }
      return outcome
    },
  }
}

/** @throws RecordReject */
function checkForJob({ events }: ConvertedRecord, { limits }: ImportPlan, nowMs: number, textLength: number): void {
  for (const event of events) {
    if (limits.retentionDays !== null && event.timeUs < nowMs * usPerMs - limits.retentionDays * usPerDay)
      throw new RecordReject('older_than_retention', 'timestamp', `the target keeps ${limits.retentionDays} days`)
    // What an event says, its record says too, if in fewer words: only long ones need to be measured.
    if (textLength * expansionMax <= eventBytesMax) continue
    const bytes = Buffer.byteLength(JSON.stringify(event.properties))
    if (bytes > eventBytesMax) throw new RecordReject('record_too_large', null, `an event of ${bytes} bytes`)
  }
}

/** A record repeats a value in an event a few times at most; characters have up to three bytes, escapes up to six. */
const expansionMax = 12
