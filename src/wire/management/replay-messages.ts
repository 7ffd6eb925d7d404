// Replays as the private API shows them. Items are spliced in as they were sent.

import Type, { type Static } from 'typebox'
import type { StoredReplay } from '#core/events/stored-event.ts'
import { instant, instantSchema, nullable, uuidSchema } from './shapes.ts'

export const replayMessageSchema = Type.Object({
  id: uuidSchema,
  session_id: Type.String(),
  window_id: Type.String(),
  distinct_id: Type.String(),
  snapshot_source: Type.Union([Type.Literal('web'), Type.Literal('mobile')]),
  lib: Type.String({ description: 'The library that recorded.' }),
  items: Type.Integer({ description: 'How many snapshots the request held.' }),
  bytes: Type.Integer({ description: 'Of their JSON text.' }),
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
  snapshot_items: nullable(Type.Array(Type.Unknown(), { description: 'As sent; null once they are gone.' })),
})

export function encodeReplayMessage(replay: Omit<StoredReplay, 'items'>): ReplayMessageJson {
  return {
    id: replay.uuid,
    session_id: replay.sessionId,
    window_id: replay.windowId,
    distinct_id: replay.distinctId,
    snapshot_source: replay.snapshotSource,
    lib: replay.lib,
    items: replay.itemCount,
    bytes: replay.itemsBytes,
    timestamp: instant(replay.timestampMs),
    received_at: instant(replay.receivedAtMs),
  }
}

/**
 * JSON text of one, in UTF-8: megabytes of it never become a text of ours.
 * @param items JSON text of a list; null when they are gone.
 */
export function encodeReplayMessageWithItems(replay: Omit<StoredReplay, 'items'>, items: Uint8Array | null): Buffer {
  const head = JSON.stringify(encodeReplayMessage(replay)).slice(0, -1)
  return Buffer.concat([Buffer.from(`${head},"snapshot_items":`), items ?? Buffer.from('null'), Buffer.from('}')])
}
