// Session recordings: one row per accepted request to `/s/`, with its snapshots unchanged but packed. The worker writes
// them with its other rows (`event-writer.ts`).

import type { StoredRecording } from '#core/events/stored-event.ts'

/** How many days a recording's items are stored, and how many days its row, which shows that there were items. */
export const recordingRetentionDays = { items: 3, row: 90 } as const

/** @throws PortError from every method, like `EventQueries`. */
export interface RecordingStore {
  /**
   * One page by time, newest first, without the items. Of rows with the same project, session and uuid, only the row stored
   * last is listed.
   */
  listRecordings(
    query: RecordingQuery,
    signal?: AbortSignal,
  ): Promise<{ recordings: readonly RecordingView[]; next: RecordingCursor | null }>
  /** One recording with its packed items; `items` is null once they have expired. */
  findRecording(
    projectId: number,
    uuid: string,
    signal?: AbortSignal,
  ): Promise<{ recording: RecordingView; items: Uint8Array | null } | null>
}

export type RecordingView = Omit<StoredRecording, 'items'>

/** The place of one recording in the order of a list. */
export interface RecordingCursor {
  readonly timestampMs: number
  readonly uuid: string
}

export interface RecordingQuery {
  readonly projectId: number
  readonly sessionId?: string
  readonly distinctId?: string
  /** Exclusive bounds of the recording's time, epoch ms. */
  readonly afterMs?: number
  readonly beforeMs?: number
  readonly after?: RecordingCursor
  /** 1–1,000. */
  readonly limit: number
}
