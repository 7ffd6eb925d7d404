// What is missing from a log, a line of JSON each, in a file beside its lanes: for people, who remove it when they have seen
// to it. Written by the one process that processes the log, read by whoever is asked whether all is well.

import { appendFileSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { LogLoss } from '#ports/event-log.ts'
import { syncFile } from './segment-file.ts'

/** In `<PENNON_DATA>/log`. */
export const lostRecordsFile = 'lost-records.jsonl'

/** @throws system errors. */
export function keepLostRecords(folder: string, loss: LogLoss): void {
  const isKept = readLostRecords(folder).some(
    ({ lane, fromOffset, toOffset }) =>
      lane === loss.lane && fromOffset === loss.fromOffset && toOffset === loss.toOffset,
  )
  if (isKept) return
  const path = join(folder, lostRecordsFile)
  appendFileSync(path, `${JSON.stringify(loss)}\n`, { mode: 0o600 })
  syncFile(path)
}

/** A line that is cut short, or that somebody else wrote, is passed by. @throws system errors. */
export function readLostRecords(folder: string): readonly LogLoss[] {
  const path = join(folder, lostRecordsFile)
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return []
  return readFileSync(path, 'utf8').split('\n').flatMap(parseLoss)
}

function parseLoss(line: string): LogLoss[] {
  try {
    const loss = JSON.parse(line) as LogLoss
    return Number.isSafeInteger(loss.fromOffset) && Number.isSafeInteger(loss.toOffset) ? [loss] : []
  } catch {
    return []
  }
}
