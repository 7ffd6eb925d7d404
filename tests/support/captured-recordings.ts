import { packItems } from '#core/capture/packed-items.ts'
import type { CapturedRecording } from '#core/events/captured-event.ts'

/** A recording as the edge accepts it. Its uuid derives from `n`, so that tests can tell recordings apart. */
export function aCapturedRecording(n: number, over: Partial<CapturedRecording> = {}): CapturedRecording {
  const json = Buffer.from(`[{"type":2,"data":{"n":${n}.0},"timestamp":1}]`)
  return {
    projectId: 1,
    token: 'phc_test_token',
    receivedAtMs: 1_790_000_000_000 + n,
    capturedAtMs: 1_790_000_000_001 + n,
    timestampMs: 1_789_999_999_000 + n,
    uuid: `0199a000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`,
    sessionId: 'session-1',
    windowId: 'window-1',
    distinctId: 'ada',
    snapshotSource: 'web',
    lib: 'web',
    itemCount: 1,
    itemsBytes: json.length,
    items: packItems(json),
    ...over,
  }
}
