// Finds damage in the log of a data folder by opening every file, without changing any. A segment that ends before the
// marked end of its stream counts as damaged, since a start would set it aside.

import { join } from 'node:path'
import { embeddedStreamNames } from '#adapters/sqlite-log/embedded-streams.ts'
import { LogIdentityError, readLogIdentity } from '#adapters/sqlite-log/log-identity.ts'
import { openReadableSegment, toSegmentReadError } from '#adapters/sqlite-log/readable-segment.ts'
import { createTruncatedSegmentError, listSegments, type SegmentName } from '#adapters/sqlite-log/segment-file.ts'
import { readStreamMark } from '#adapters/sqlite-log/stream-mark.ts'
import type { Config } from '#config.ts'
import { PortError } from '#ports/port-error.ts'
import { getLogFolder } from './log.ts'

export type LogDamage =
  /** `message` is a line for people about the file that holds the log's id. */
  | { readonly kind: 'identity'; readonly message: string }
  /** A segment that another process found damaged and set aside. */
  | { readonly kind: 'set_aside'; readonly path: string }
  | { readonly kind: 'segment'; readonly path: string; readonly cause: PortError }

/** @throws any error that is not damage. */
export function findLogDamage(config: Config): readonly LogDamage[] {
  const folder = getLogFolder(config)
  return [
    ...findIdentityDamage(folder),
    ...embeddedStreamNames.flatMap(stream => findStreamDamage(join(folder, stream))),
  ]
}

function findStreamDamage(streamFolder: string): LogDamage[] {
  // The mark is read before the segments are listed, so that the segments reach it.
  const markedOffset = readStreamMark(streamFolder)
  const segments = listSegments(streamFolder)
  const newest = segments.at(-1)
  return segments.flatMap(segment => findSegmentDamage(segment, segment === newest ? markedOffset : 0))
}

function findIdentityDamage(folder: string): LogDamage[] {
  try {
    readLogIdentity(folder)
    return []
  } catch (cause) {
    if (!(cause instanceof LogIdentityError)) throw cause
    return [{ kind: 'identity', message: cause.message }]
  }
}

/** @param markedOffset the segment must reach this offset. */
function findSegmentDamage(segment: SegmentName, markedOffset: number): LogDamage[] {
  const { path, form } = segment
  if (form === 'damaged') return [{ kind: 'set_aside', path }]
  try {
    const opened = openReadableSegment(segment, 'look')
    try {
      const endOffset = opened.endOffset()
      if (endOffset < markedOffset) throw createTruncatedSegmentError(endOffset, markedOffset)
    } finally {
      opened.close()
    }
    return []
  } catch (cause) {
    const failure = toSegmentReadError(cause, path)
    if (!(failure instanceof PortError)) throw failure
    // Other failures are not damage: a segment that disappeared was processed, and a busy segment is readable.
    return failure.code === 'corrupt' ? [{ kind: 'segment', path, cause: failure }] : []
  }
}
