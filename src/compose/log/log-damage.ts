// What is damaged in the log of a data folder: every file of it is opened, and nothing is changed.

import { join } from 'node:path'
import { embeddedStreamNames } from '#adapters/sqlite-log/embedded-streams.ts'
import { LogIdentityError, readLogIdentity } from '#adapters/sqlite-log/log-identity.ts'
import { openReadable, readError } from '#adapters/sqlite-log/readable-segment.ts'
import { listSegments, type SegmentName } from '#adapters/sqlite-log/segment-file.ts'
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
  const segments = embeddedStreamNames.flatMap(stream => listSegments(join(folder, stream)))
  return [...damageOfIdentity(folder), ...segments.flatMap(damageOfSegment)]
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

function damageOfSegment(segment: SegmentName): LogDamage[] {
  const { path, form } = segment
  if (form === 'damaged') return [{ kind: 'set_aside', path }]
  try {
    const opened = openReadable(segment)
    try {
      opened.endOffset()
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
