// The lines of a part in `job.db`: a record's place in the raw files, what it was converted to, and its source, which only
// rejects and samples need. A reader can begin at any line. Source: docs/wire/import.md §2.1, §2.4.

import { parseJson } from '#core/json.ts'
import { isYieldDue, yieldToEventLoop } from '#importer/read/event-loop.ts'
import { JobDatabase } from '../job/job-database.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { JobLedger } from '../job/ledger.ts'
import { countBlankLines, type Manifest } from '../job/manifest.ts'
import { sha256Hex } from '../job/sha256.ts'
import type { StagedJob, StagedOutcome, StagedPart, StagedResult } from '../job/staged-part.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { decodeRecordPlace, decodeRecordSource } from './staged-line.ts'
import { firstPosition, type StagedRecord } from './staged-records.ts'

const [lineFeed, tab] = [0x0a, 0x09]
const nothing = Buffer.alloc(0)
const generatedObject = 'generated'
/** The JSON that surrounds the stored text of a CSV row. */
const extraFrame = '{"s":""}'
/** Generated events have no place in the raw files. */
const noPlace = '[]'

/** The lines of a part that is being written, in one buffer that grows. */
export class PartLines {
  /** The day of the part's events, or `groups` or `links`. */
  readonly day: string
  #bytes = Buffer.allocUnsafe(1 << 20)
  #length = 0
  count = 0
  firstUs: number | null = null
  /** The position of the last line that was added. */
  last = firstPosition

  constructor(day: string) {
    this.day = day
  }

  get bytesCount(): number {
    return this.#length
  }

  add({ id, timeUs, place, extra, json }: StagedRecord, result: StagedResult): void {
    this.firstUs ??= timeUs
    this.last = { timeUs, id }
    const text = `${place}\t${JSON.stringify(result)}\t${extra}\t`
    this.#reserve(3 * text.length + json.length + 1)
    this.#length += this.#bytes.write(text, this.#length)
    this.#length += json.copy(this.#bytes, this.#length)
    this.#bytes[this.#length++] = lineFeed
    this.count++
  }

  addGenerated(event: ImportedEvent): void {
    const record = { id: 0, timeUs: event.timeUs, place: noPlace, extra: '', json: nothing }
    this.add(record, { kind: 'events', events: [event], notes: [], dropped: [] })
  }

  /** The bytes of all lines so far; valid until the next line is added. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #reserve(bytes: number): void {
    const wanted = this.#length + bytes
    if (wanted <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(wanted, 2 * this.#bytes.length))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
  }
}

export function openStagedJob(folder: JobFolder, manifest: Manifest) {
  const database = new JobDatabase(folder)
  const ledger = new JobLedger(database)
  const job: StagedJob = {
    parts: manifest.parts,
    blankLines: countBlankLines(manifest),
    readPart: (part, afterLine) => readPartLines(database, manifest, part, afterLine),
  }
  /** @returns the user that a device is linked to, or the id itself. Ids with the same result belong to one person. */
  const personOf = (distinctId: string) => ledger.userOf(distinctId) ?? distinctId
  return { ...job, personOf, [Symbol.dispose]: () => database.close() }
}

/** @throws JobStopped if the part is missing or its bytes changed. */
async function* readPartLines(
  database: JobDatabase,
  { objects }: Manifest,
  part: StagedPart,
  afterLine = 0,
): AsyncGenerator<StagedOutcome> {
  const bytes = database.readLines(part)
  for (let [at, number] = [0, 1]; at < bytes.length; number++) {
    const end = bytes.indexOf(lineFeed, at)
    if (number > afterLine) {
      yield decodePartLine(bytes.subarray(at, end), number, objects)
      if (isYieldDue()) await yieldToEventLoop()
    }
    at = end + 1
  }
}

function decodePartLine(line: Buffer, number: number, objects: Manifest['objects']): StagedOutcome {
  const placeEnd = line.indexOf(tab)
  const resultEnd = line.indexOf(tab, placeEnd + 1)
  const result = parseJson(line.toString('utf8', placeEnd + 1, resultEnd)) as unknown as StagedResult
  if (placeEnd === noPlace.length) return createGeneratedOutcome(number, result)
  const { object, line: rawLine, byte, ordinal } = decodeRecordPlace(line.toString('latin1', 0, placeEnd))
  const extraEnd = line.indexOf(tab, resultEnd + 1)
  const { object: name, columns } = objects[object]!
  return {
    line: number,
    raw: { object: name, line: rawLine, byte },
    ordinal,
    textBytes: extraEnd - resultEnd > 1 ? extraEnd - resultEnd - extraFrame.length : line.length - extraEnd,
    result,
    source: () =>
      decodeRecordSource(line.toString('utf8', resultEnd + 1, extraEnd), line.toString('utf8', extraEnd + 1), columns),
  }
}

function createGeneratedOutcome(line: number, result: StagedResult): StagedOutcome {
  const [event] = result.kind === 'events' ? result.events : []
  const text = JSON.stringify(event)
  return {
    line,
    raw: { object: generatedObject, line, byte: 0 },
    textBytes: text.length,
    result,
    source: () => ({ text, sha256: sha256Hex(text), unreadableBytes: null }),
  }
}
