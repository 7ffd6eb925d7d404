import { packItems } from '#core/capture/packed-items.ts'
import type { CapturedReplay } from '#core/events/captured-event.ts'

/** As the edge accepts one; `n` makes its uuid, so that tests can tell replays apart. */
export function aCapturedReplay(n: number, over: Partial<CapturedReplay> = {}): CapturedReplay {
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
