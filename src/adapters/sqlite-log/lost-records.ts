// What is missing from a log, a line of JSON each, in a file beside its lanes: for people, who remove it when they have seen
// to it. Written by the one process that processes the log, read by whoever is asked whether all is well.

import { appendFileSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { LogLoss } from '#ports/event-log.ts'
import { syncFile } from './segment-file.ts'

/** In `<PENNON_DATA>/log`. */
export const lostRecordsFile = 'lost-records.jsonl'

/** Each once, in one write: thousands may be lost at the same place. @throws system errors. */
export function keepLostRecords(folder: string, losses: readonly LogLoss[]): void {
  const kept = new Set(readLostRecords(folder).map(placeOf))
  const lines = losses.filter(loss => !kept.has(placeOf(loss))).map(loss => `${JSON.stringify(loss)}\n`)
  if (lines.length === 0) return
  const path = join(folder, lostRecordsFile)
  appendFileSync(path, lines.join(''), { mode: 0o600 })
  syncFile(path)
}

function placeOf({ lane, fromOffset, toOffset }: LogLoss): string {
  return `${lane} ${fromOffset} ${toOffset}`
}

/** Lines that are cut short, or that we did not write, are skipped. @throws system errors. */
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
    return [] // a crash cut the line short; what it told of is noticed again
  }
}
