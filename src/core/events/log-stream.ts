// The two kinds of traffic that a log separates, and the place of a record in it. Only a log's adapter knows its streams: a
// front gives the kind of traffic that it appends, and the log's reader lists the streams that carry it.

import type { Lane, LogRecord } from './captured-event.ts'

/** Imports must never delay live events, so a log separates the two. */
export type Traffic = 'live' | 'import'

/** Every lane but `historical` is live. */
export function findTrafficOfLane(lane: Lane): Traffic {
  return lane === 'historical' ? 'import' : 'live'
}

/** The lane under which to count an unreadable record. */
export function defaultLaneOf(traffic: Traffic): Lane {
  return traffic === 'import' ? 'historical' : 'main'
}

/** The name of one ordered sequence of records, such as `main`, `historical`, `main/3`. Only the log interprets it. */
export type LogStream = string

/** The name under which the position of a stream's second cursor, for deferred projects, is stored. */
export function formatDeferredCursorName(stream: LogStream): string {
  return `${stream}.deferred`
}

export interface StreamInfo {
  readonly stream: LogStream
  readonly traffic: Traffic
}

/** The place of a record in a log. */
export interface RecordPlace {
  readonly stream: LogStream
  readonly offset: number
}

/** A record and its place in its stream. Offsets ascend, but need not be contiguous. */
export interface RecordAt {
  readonly offset: number
  readonly record: LogRecord
}
