// Switches person processing off for events of distinct ids that send too many. It works on encoded records, because a
// decode thread does not know the project. Imports are neither counted nor changed. Source: docs/wire/ingestion.md 5,
// 9.

import type { HotKeys } from '#core/capture/hot-keys.ts'
import {
  laneAt,
  type OutcomeTable,
  outcomeAt,
  outcomeCodeAt,
  resourceAt,
  rowCountOf,
  setLane,
  setOutcomeCode,
  TableRecords,
} from '#core/capture/outcome-table.ts'
import { okCode, warningCodes } from '#core/capture/outcomes.ts'
import type { Steps } from '#core/maybe-steps.ts'

/** About a millisecond of work. */
const rowsPerStep = 512

/** Runs in steps, since it visits each event. @returns how many events had person processing switched off. */
export function* throttleHotKeys(
  table: OutcomeTable,
  hotKeys: HotKeys,
  projectId: number,
  nowMs: number,
): Steps<number> {
  const records = new TableRecords(table)
  let count = 0
  for (let row = 0; row < rowCountOf(table); row++) {
    if ((row + 1) % rowsPerStep === 0) yield
    if (resourceAt(table, row) === null || !outcomeAt(table, row).isStored) continue
    const record = records.at(row)
    if (!hotKeys.isHot(projectId, record.distinctId, nowMs)) continue
    record.switchPersonsOff()
    if (laneAt(table, row) === 'main') setLane(table, row, 'overflow')
    // An event that already has a warning keeps that warning.
    if (outcomeCodeAt(table, row) === okCode) setOutcomeCode(table, row, warningCodes.person_processing_disabled)
    count++
  }
  return count
}
