// A refused body as the reject store keeps it: truncated, and with what is needed to replay it.

import type { RejectSource, ReplayableBody } from '../events/captured-event.ts'
import { stripVisitorsFromBody } from './cookieless-body.ts'
import type { RefusedItem } from './incoming-event.ts'

export const rejectBodyBytesMax = 64 * 1024
const idLengthMax = 200

/** Truncates a reject's body to the size that the reject store keeps, never in the middle of a character. */
export function truncateRejectBody(text: string): string {
  if (text.length * 3 <= rejectBodyBytesMax) return text
  const bytes = Buffer.from(text.slice(0, rejectBodyBytesMax), 'utf8')
  let end = Math.min(bytes.length, rejectBodyBytesMax)
  while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

/** Truncates the fields that identify a rejected item, since a client may send texts of any length. */
export function truncateRefusedItem({ uuid, name, distinctId }: RefusedItem): RefusedItem {
  return { uuid, name: name.slice(0, idLengthMax), distinctId: distinctId.slice(0, idLengthMax) }
}

/**
 * Truncates a body and records whether anything was removed. An empty body is marked as not replayable. For a request with
 * cookieless events, neither their visitors nor the sender's address are kept.
 */
export function toStoredRejectBody(sent: string, source: Omit<RejectSource, 'isTruncated'>): ReplayableBody {
  const stripped = stripVisitorsFromBody(sent)
  const whole = stripped ?? sent
  const text = truncateRejectBody(whole)
  const kind = text === '' ? null : source.kind
  return {
    text,
    source: { ...source, kind, ip: stripped === null ? source.ip : '', isTruncated: text.length < whole.length },
  }
}

/** A body that is kept for reading only and is never replayed. */
export function toReadOnlyRejectBody(sent: string): ReplayableBody {
  return toStoredRejectBody(sent, notReadAgain)
}

const notReadAgain = {
  kind: null,
  protocol: 'v0',
  engage: false,
  ip: '',
  sentAtMs: null,
  personProcessingForcedOff: false,
} as const
