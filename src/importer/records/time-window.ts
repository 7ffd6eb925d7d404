// Which times a record may have. Source: docs/wire/import.md §1.0 (range).

import { RecordReject } from './imported-event.ts'
import { usPerMs } from './source-time.ts'

const earliestUs = Date.UTC(1971, 0, 1) * usPerMs
const aheadMsMax = 3_600_000
/** Events younger than this are sent and counted as `recent`, or held back if the job is so configured. */
export const liveWindowMs = 48 * 3_600_000

export interface TimeWindow {
  readonly nowMs: number
  /** Refuse events of the live window instead of sending them as `recent`. */
  readonly holdLiveWindow: boolean
}

/** @throws RecordReject */
export function checkTime(timeUs: number, window: TimeWindow, field: string): void {
  if (timeUs < earliestUs) throw new RecordReject('timestamp_out_of_range', field)
  if (timeUs > (window.nowMs + aheadMsMax) * usPerMs) throw new RecordReject('timestamp_future', field)
  if (window.holdLiveWindow && isRecent(timeUs, window.nowMs)) throw new RecordReject('within_live_window', field)
}

export function isRecent(timeUs: number, nowMs: number): boolean {
  return timeUs > (nowMs - liveWindowMs) * usPerMs
}
