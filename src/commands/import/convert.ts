// `pennon import convert`: reads records from stdin and prints what becomes of each, without a stage, job, connection or
// clock. What it remembers between records (the ledger) ends with the process. Source: docs/wire/import.md §2.1, §9.

import { pipeline } from 'node:stream/promises'
import { plainCsv } from '#core/csv.ts'
import type { JsonObject } from '#core/json.ts'
import { toPrintable } from '#core/printable.ts'
import { ByteReader } from '#importer/read/byte-reader.ts'
import { detectCsvShape, headerBytesMax } from '#importer/read/csv-shape.ts'
import { type ParsedSourceRecord, parseJsonLine } from '#importer/read/parse-record.ts'
import { recordBytesMax, splitRecords } from '#importer/read/split-records.ts'
import { createRowParser, parseRawRecord } from '#importer/read/text-records.ts'
import { convertRecord } from '#importer/records/convert-record.ts'
import { createRecordEvents } from '#importer/records/generated-events.ts'
import { createInMemoryLedger } from '#importer/records/import-ledger.ts'
import { ImportConfigError, type ImportSource, type RecordConverter } from '#importer/records/import-source.ts'
import { readTime, usPerMs } from '#importer/records/source-time.ts'
import { findSource, sourceNames } from '#importer/sources/sources.ts'
import { toShownEvent } from '#importer/stages/report/samples.ts'
import { exitAfterOutput } from '../client/exit-after-output.ts'
import { refuse } from '../refuse.ts'
import { type PlanOptions, readSourceConfig } from './plan/plan-options.ts'

export interface ConvertOptions extends Pick<PlanOptions, 'source' | 'config' | 'mapping' | 'sourceTimezone'> {
  readonly now: string
  readonly format: 'json' | 'csv'
}

export async function convertRecordsFromStdin(options: ConvertOptions): Promise<void> {
  const source = findSource(options.source)
  if (source === null)
    refuse(`there is no source ${JSON.stringify(options.source)}; --source is one of ${sourceNames.join(', ')}`)
  const convertOne = createConverter(source, options)
  exitAfterOutput()
  await pipeline(
    process.stdin,
    async function* (input: AsyncIterable<Buffer>) {
      let ordinal = 0
      for await (const record of parseRecords(input, options.format)) {
        ordinal++
        const answer = 'value' in record ? convertOne(record.value, ordinal) : toAnswer(record)
        yield `${toPrintable(JSON.stringify(answer))}\n`
      }
    },
    process.stdout,
  )
}

/** The line that is printed for a record. */
type Answer =
  | { readonly events: readonly object[] }
  | { readonly rejected: { readonly reason: string; readonly field: string | null } }
  | { readonly skipped: string }

function createConverter(
  source: ImportSource,
  options: ConvertOptions,
): (value: JsonObject, ordinal: number) => Answer {
  const facts = new Map<string, string>()
  const nowUs = readTime(options.now, { zone: 'UTC' }, 'now')
  if (nowUs === null) refuse(`--now must be a time such as 2026-01-15T00:00:00Z, not ${JSON.stringify(options.now)}`)
  const { config, holdLiveWindow } = readSourceConfig(options)
  const findFact = (kind: string, key: string) => facts.get(JSON.stringify([kind, key])) ?? null
  const converter = prepareOrRefuse(() => source.prepare(config, { nowMs: nowUs / usPerMs, holdLiveWindow, findFact }))
  const ledger = createInMemoryLedger()
  return (value, ordinal) => {
    const record = { value, table: null, ordinal }
    for (const { kind, key, value: fact } of converter.factsOf?.(record) ?? [])
      facts.set(JSON.stringify([kind, key]), fact)
    const outcome = convertRecord(converter, record)
    if (!('events' in outcome)) return toAnswer(outcome)
    return { events: createRecordEvents(source.name, outcome, ledger).events.map(toShownEvent) }
  }
}

function prepareOrRefuse(prepare: () => RecordConverter): RecordConverter {
  try {
    return prepare()
  } catch (error) {
    if (error instanceof ImportConfigError) refuse(toPrintable(error.message))
    throw error
  }
}

/** Leaves out the detail of a reject, which the test vectors do not compare. */
function toAnswer(outcome: Exclude<ParsedSourceRecord, { value: JsonObject }>): Answer {
  if ('skipped' in outcome) return outcome
  const { reason, field } = outcome.rejected
  return { rejected: { reason, field } }
}

async function* parseRecords(stdin: AsyncIterable<Buffer>, format: 'json' | 'csv'): AsyncGenerator<ParsedSourceRecord> {
  const input = new ByteReader(stdin)
  if (format === 'json') warnOfWrongFormat(await input.peekLine(headerBytesMax))
  const shape = format === 'csv' ? await detectCsvShape(input) : plainCsv
  const rows = createRowParser(shape)
  for await (const record of splitRecords(input, format, recordBytesMax, shape)) {
    const parsed = format === 'csv' ? rows.parse(record) : parseRawRecord(record)
    if (parsed !== null) yield parsed
  }
}

/**
 * Warns when the input looks like another format: stdin has no file name that shows it, and every line of CSV would be
 * rejected as broken JSON.
 */
function warnOfWrongFormat(beginning: Buffer): void {
  const text = beginning.toString().trim()
  if (text === '' || text.startsWith('{')) return
  process.stderr.write(`pennon: ${describeWrongFormat(beginning, text)}\n`)
}

function describeWrongFormat(beginning: Buffer, text: string): string {
  const outcome = parseJsonLine(beginning)
  if ('rejected' in outcome && outcome.rejected.reason === 'compressed_input')
    return 'the input is compressed. Pass the records as text, for example: gunzip -c FILE | pennon import convert …'
  return text.startsWith('[')
    ? "the input is a JSON list. Pass one record per line, for example with: jq -c '.[]'"
    : 'the first line is not JSON. For CSV with a header line, add: --format csv'
}
