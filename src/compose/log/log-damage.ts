// What is damaged in the log of a data folder: every file of it is opened, and nothing is changed. A start would set aside a
// segment that ends before the mark of its stream, so that is damage as well.

import { join } from 'node:path'
import { embeddedStreamNames } from '#adapters/sqlite-log/embedded-streams.ts'
import { LogIdentityError, readLogIdentity } from '#adapters/sqlite-log/log-identity.ts'
import { openReadable, readError } from '#adapters/sqlite-log/readable-segment.ts'
import { lacksItsEnd, listSegments, type SegmentName } from '#adapters/sqlite-log/segment-file.ts'
import { readStreamMark } from '#adapters/sqlite-log/stream-mark.ts'
import type { Config } from '#config.ts'
import { PortError } from '#ports/port-error.ts'
import { logFolder } from './log.ts'

export type LogDamage =
  /** `message` is a line for people about the file of the log's id. */
  | { readonly kind: 'identity'; readonly message: string }
  /** A segment that another process found damaged before. */
  | { readonly kind: 'set_aside'; readonly path: string }
  | { readonly kind: 'segment'; readonly path: string; readonly cause: PortError }

/** @throws any error that is not damage. */
export function findLogDamage(config: Config): readonly LogDamage[] {
  const folder = logFolder(config)
  return [...damageOfIdentity(folder), ...embeddedStreamNames.flatMap(stream => damageOfStream(join(folder, stream)))]
}

function damageOfStream(streamFolder: string): LogDamage[] {
  // Before the segments are listed, so that they have what it promises.
  const markedOffset = readStreamMark(streamFolder)
  const segments = listSegments(streamFolder)
  const newest = segments.at(-1)
  return segments.flatMap(segment => damageOfSegment(segment, segment === newest ? markedOffset : 0))
}

function damageOfIdentity(folder: string): LogDamage[] {
  try {
    readLogIdentity(folder)
    return []
  } catch (cause) {
    if (!(cause instanceof LogIdentityError)) throw cause
    return [{ kind: 'identity', message: cause.message }]
  }
}

/** @param markedOffset it has to have what lies before this offset. */
function damageOfSegment(segment: SegmentName, markedOffset: number): LogDamage[] {
  const { path, form } = segment
  if (form === 'damaged') return [{ kind: 'set_aside', path }]
  try {
    const opened = openReadable(segment, 'look')
    try {
      const endOffset = opened.endOffset()
      if (endOffset < markedOffset) throw lacksItsEnd(endOffset, markedOffset)
    } finally {
      opened.close()
    }
    return []
  } catch (cause) {
    const failure = readError(cause, path)
    if (!(failure instanceof PortError)) throw failure
    // Only damage counts: a segment that disappears meanwhile was processed, and a busy one can be read.
    return failure.code === 'corrupt' ? [{ kind: 'segment', path, cause: failure }] : []
  }
}
