// The times of a visit's actions. Matomo writes these times shifted into the zone of the site, as if its local time were
// UTC, while the times of the visit are true. So each visit reveals its own UTC offset: one before or after a clock change,
// or two if the clock changed during the visit. Source: docs/wire/import.md §1.6.

import { getOwnValue, type JsonObject, type JsonValue } from '#core/json.ts'
import { maxOf, minOf } from '#core/min-max.ts'
import { toIdText } from '#importer/records/distinct-ids.ts'
import { RecordReject } from '#importer/records/imported-event.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'
import {
  checkTimeInWindow,
  readTime,
  type TimeWindow,
  usPerSecond,
  wallClockToUtc,
} from '#importer/records/source-time.ts'
import { findTimesAcrossClockChange } from './matomo-clock-changes.ts'
import type { MatomoAction } from './matomo-properties.ts'

/** The offsets of all zones are multiples of a quarter of an hour. */
const shiftStepUs = 900 * usPerSecond

/**
 * @param all all actions of the visit, including goals: the first of them shows when the visit started.
 * @param wanted the actions whose times are needed.
 * @param zone of the site, for visits without a true time.
 * @returns the true times of the wanted actions, in microseconds since 1970.
 * @throws RecordReject for a time that is missing, unreadable or implausible.
 */
export function findMatomoTimes(
  visit: JsonObject,
  all: readonly MatomoAction[],
  wanted: readonly MatomoAction[],
  zone: string | null,
  window: TimeWindow,
): ReadonlyMap<MatomoAction, number> {
  for (const action of wanted) checkWrittenTime(action)
  const timed = sortByPosition(all).flatMap(action => {
    const writtenUs = readSeconds(getOwnValue(action.value, 'timestamp'))
    return writtenUs === null ? [] : { action, writtenUs }
  })
  const trueUs = findTrueTimes(
    timed.map(({ writtenUs }) => writtenUs),
    visit,
    zone,
  )
  const times = new Map(timed.map(({ action }, index) => [action, trueUs[index]!]))
  return new Map(
    wanted.map(action => {
      const timeUs = times.get(action)!
      checkTimeInWindow(timeUs, window, findTimeField(action))
      return [action, timeUs]
    }),
  )
}

/**
 * Sorts actions in the order in which they happened: Matomo lists them by local time, but newer versions also number
 * them.
 */
function sortByPosition(actions: readonly MatomoAction[]): readonly MatomoAction[] {
  const positions = new Map(actions.map(action => [action, readPosition(action)]))
  if ([...positions.values()].includes(null)) return actions
  return actions.toSorted((a, b) => positions.get(a)! - positions.get(b)!)
}

function readPosition({ value }: MatomoAction): number | null {
  const position = Number(toIdText(getOwnValue(value, 'interactionPosition')) ?? Number.NaN)
  return Number.isSafeInteger(position) ? position : null
}

/** @returns microseconds since 1970; null when the visit has no start time. */
export function readMatomoStart(visit: JsonObject): number | null {
  return readSeconds(getOwnValue(visit, 'firstActionTimestamp'))
}

/** @throws RecordReject */
function checkWrittenTime(action: MatomoAction): void {
  const value = getOwnValue(action.value, 'timestamp')
  if (value === undefined || isEmptyValue(value)) throw new RecordReject('timestamp_missing', findTimeField(action))
  if (readSeconds(value) === null) throw new RecordReject('timestamp_invalid', findTimeField(action))
}

/**
 * Matches the first action with the start of the visit, or, if only the end of the visit is known, the last action with
 * the end.
 */
function findTrueTimes(written: readonly number[], visit: JsonObject, zone: string | null): readonly number[] {
  const firstUs = readMatomoStart(visit)
  const lastUs =
    readSeconds(getOwnValue(visit, 'lastActionTimestamp')) ?? readSeconds(getOwnValue(visit, 'serverTimestamp'))
  if (firstUs !== null) {
    const across = lastUs === null ? null : findTimesAcrossClockChange(written, { firstUs, lastUs }, zone)
    return across ?? subtractShift(written, minOf(written) - firstUs)
  }
  if (lastUs !== null) return subtractShift(written, maxOf(written) - lastUs)
  if (zone !== null) return written.map(writtenUs => wallClockToUtc(writtenUs, zone))
  throw new RecordReject('timestamp_zone_unknown', 'firstActionTimestamp')
}

function subtractShift(written: readonly number[], differenceUs: number): readonly number[] {
  const shiftUs = Math.round(differenceUs / shiftStepUs) * shiftStepUs
  return written.map(writtenUs => writtenUs - shiftUs)
}

function readSeconds(value: JsonValue | undefined): number | null {
  // Only numbers: a date text would name its own zone, which Matomo never writes here.
  if (value === undefined || (typeof value === 'string' && !/^\d+(?:\.\d+)?$/.test(value.trim()))) return null
  return readTime(value, { zone: null, unit: 's' }, 'timestamp')
}

function findTimeField({ path }: MatomoAction): string {
  return `${path}.timestamp`
}
