// The answer to an accepted v1 batch: one result per event, under its uuid. Clients send again only events whose result
// is `retry`, so every event has to be listed. Made in steps, since a batch may have tens of thousands of events.

import {
  findLeftOutReason,
  type OutcomeTable,
  outcomeCodeAt,
  rowCountOf,
  TableRecords,
} from '#core/capture/outcome-table.ts'
import { outcomes } from '#core/capture/outcomes.ts'
import { uuidTextLength } from '#core/events/uuid.ts'
import type { Steps } from '#core/maybe-steps.ts'

/** What the answer needs from the final outcome table, read while the table still has its records. */
export interface V1Results {
  /** The canonical uuids of all rows in ASCII, concatenated. */
  readonly uuids: Buffer
  /** Each row's code, an index of `outcomes`. */
  readonly codes: Uint8Array
  /** Whether quotas dropped the whole batch. */
  readonly isOverQuota: boolean
}

export interface V1Answer {
  /** Whether some events may be sent again. */
  readonly mayRetry: boolean
  /** JSON text. */
  readonly body: Buffer
}

const rowsPerStep = 500

export function* readV1Results(table: OutcomeTable): Steps<V1Results> {
  const rowCount = rowCountOf(table)
  const records = new TableRecords(table)
  const uuids = Buffer.allocUnsafe(rowCount * uuidTextLength)
  const codes = new Uint8Array(rowCount)
  for (let row = 0; row < rowCount; row++) {
    records.at(row).copyUuid(uuids, row * uuidTextLength)
    codes[row] = outcomeCodeAt(table, row)
    if ((row + 1) % rowsPerStep === 0) yield
  }
  return { uuids, codes, isOverQuota: findLeftOutReason(table)?.endsWith('_over_quota') === true }
}

/**
 * @param isStored false when the log took nothing: events that should be stored may be sent again; dropped events stay
 * dropped. Source: docs/wire/ingestion.md 4.2, 4.4.
 */
export function* encodeV1Results({ uuids, codes }: V1Results, isStored: boolean): Steps<V1Answer> {
  const pieces: Buffer[] = []
  let text = '{"results":{'
  let mayRetry = false
  for (let row = 0; row < codes.length; row++) {
    const isRetried = !isStored && outcomes[codes[row]!]!.isStored
    mayRetry ||= isRetried
    const uuid = uuids.toString('latin1', row * uuidTextLength, (row + 1) * uuidTextLength)
    text += `${row === 0 ? '' : ','}"${uuid}":${isRetried ? notPersisted : resultTexts[codes[row]!]!}`
    if ((row + 1) % rowsPerStep !== 0) continue
    pieces.push(Buffer.from(text, 'latin1'))
    text = ''
    yield
  }
  pieces.push(Buffer.from(`${text}}}`, 'latin1'))
  return { mayRetry, body: Buffer.concat(pieces) }
}

const notPersisted = '{"result":"retry","details":"not_persisted"}'

/** The text of each code's result. Result texts and uuids are ASCII and contain nothing that JSON would escape. */
const resultTexts = outcomes.map(({ result, reason }) =>
  // A v1 client sees a bad event as dropped. That it is kept as a reject concerns only the project.
  JSON.stringify({ result: result === 'reject' ? 'drop' : result, details: reason ?? undefined }),
)
