// Recordings as the private API shows them. Items are spliced in as they were sent.

import Type, { type Static } from 'typebox'
import type { StoredRecording } from '#core/events/stored-event.ts'
import { formatInstant, instantSchema, nullable, uuidSchema } from './shapes.ts'

export const replayMessageSchema = Type.Object({
  id: uuidSchema,
  session_id: Type.String(),
  window_id: Type.String(),
  distinct_id: Type.String(),
  snapshot_source: Type.Union([Type.Literal('web'), Type.Literal('mobile')]),
  lib: Type.String({ description: 'SDK that recorded the session.' }),
  items: Type.Integer({ description: 'Number of snapshots in the request.' }),
  bytes: Type.Integer({ description: 'Size of their JSON text.' }),
  timestamp: instantSchema,
  received_at: instantSchema,
})
export type ReplayMessageJson = Static<typeof replayMessageSchema>

export const replayMessagePageSchema = Type.Object({
  next: nullable(Type.String()),
  results: Type.Array(replayMessageSchema),
})

export const replayMessageWithItemsSchema = Type.Object({
  ...replayMessageSchema.properties,
  snapshot_items: nullable(Type.Array(Type.Unknown(), { description: 'Snapshots as sent; null once deleted.' })),
})

export function encodeReplayMessage(recording: Omit<StoredRecording, 'items'>): ReplayMessageJson {
  return {
    id: recording.uuid,
    session_id: recording.sessionId,
    window_id: recording.windowId,
    distinct_id: recording.distinctId,
    snapshot_source: recording.snapshotSource,
    lib: recording.lib,
    items: recording.itemCount,
    bytes: recording.itemsBytes,
    timestamp: formatInstant(recording.timestampMs),
    received_at: formatInstant(recording.receivedAtMs),
  }
}

/**
 * The JSON of a recording's message in UTF-8; its megabytes never become a string.
 * @param items JSON text of a list; null when the items are deleted.
 */
export function encodeReplayMessageWithItems(
  recording: Omit<StoredRecording, 'items'>,
  items: Uint8Array | null,
): Buffer {
  const head = JSON.stringify(encodeReplayMessage(recording)).slice(0, -1)
  return Buffer.concat([Buffer.from(`${head},"snapshot_items":`), items ?? Buffer.from('null'), Buffer.from('}')])
}
