// Detects that rejected records come from another product than the plan says: a wrong `--source` rejects all of them, each
// for a field that such records never have.

import type { StagedOutcome } from '#importer/job/staged-part.ts'
import { type ParsedRecord, parseJsonLine } from '#importer/read/parse-record.ts'
import { convertRecord } from '#importer/records/convert-record.ts'
import { ImportConfigError, type ImportSource, type RecordConverter } from '#importer/records/import-source.ts'

const triedMax = 100

export class OtherSource {
  readonly #counts: { readonly name: string; readonly converter: RecordConverter; events: number }[]
  #tried = 0

  /** @param sources all except the planned one. @param nowMs when the job was planned. */
  constructor(sources: readonly ImportSource[], nowMs: number) {
    this.#counts = sources.flatMap(({ name, prepare }) => {
      const converter = prepareOrNull(() => prepare({}, { nowMs, holdLiveWindow: false, findFact: () => null }))
      return converter === null ? [] : [{ name, converter, events: 0 }]
    })
  }

  /** Tries to convert a rejected record with each source. @param table of the record. */
  add({ text, row, line }: StagedOutcome, table: string | null): void {
    if (this.#tried >= triedMax) return
    const parsed: ParsedRecord | null = row === undefined ? parseJsonLine(Buffer.from(text)) : parseCells(row)
    if (parsed === null || !('value' in parsed)) return
    this.#tried++
    for (const count of this.#counts) {
      const outcome = convertRecord(count.converter, { value: parsed.value, table, ordinal: line })
      if ('events' in outcome && outcome.events.length > 0) count.events++
    }
  }

  /** @returns the source that converts the most records, if that is more than half and no other converts as many; or null. */
  likely(): string | null {
    const [best, second] = this.#counts.toSorted((a, b) => b.events - a.events)
    if (best === undefined || best.events * 2 <= this.#tried || best.events === second?.events) return null
    return best.name
  }
}

function parseCells({ cells }: NonNullable<StagedOutcome['row']>): ParsedRecord | null {
  return cells === null ? null : { value: cells }
}

/** @returns null for a source that requires a configuration, such as a mapping. */
function prepareOrNull(prepare: () => RecordConverter): RecordConverter | null {
  try {
    return prepare()
  } catch (error) {
    if (error instanceof ImportConfigError) return null
    throw error
  }
}
