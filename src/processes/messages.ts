// What the processes of one instance tell each other over IPC.

import type { LogLane } from '#core/events/captured-event.ts'
import type { MetricsSnapshot } from '#telemetry/process-numbers.ts'

/**
 * `ok`, or why events are not being processed: first what the worker says, then what only its supervisor knows, last what a
 * front sees for itself. Each has its row in docs/operating/monitoring.md.
 */
export const processingStates = [
  'ok',
  'starting',
  'waiting_for_log',
  'waiting_for_state',
  'waiting_for_event_store',
  'restoring_events',
  'stopped',
  'restarting',
  'not_answering',
  'state_files_removed',
] as const
export type ProcessingState = (typeof processingStates)[number]

export type FromWorker =
  | { readonly type: 'processing'; readonly state: ProcessingState }
  /** Everything of the lane that was appended before is processed; told while there is work. */
  | { readonly type: 'processed'; readonly lane: LogLane; readonly appendedBeforeMs: number }
  | { readonly type: 'metrics'; readonly metrics: MetricsSnapshot }

export type ToWorker =
  | { readonly type: 'shutdown' }
  | { readonly type: 'nudge'; readonly lane: LogLane }
  /** Tests only: moves an injected clock. */
  | { readonly type: 'clock'; readonly nowMs: number }

export type FromFront =
  | { readonly type: 'listening'; readonly url: string; readonly adminUrl: string | null }
  | { readonly type: 'listen_failed'; readonly message: string }
  | { readonly type: 'alive' }
  | { readonly type: 'nudge'; readonly lane: LogLane }
  | { readonly type: 'metrics'; readonly metrics: MetricsSnapshot }
  /** With its own, which are shown beside those that it gets: they may not be forgotten when it ends. */
  | { readonly type: 'metrics_wanted'; readonly requestId: number; readonly metrics: MetricsSnapshot }

export type ToFront =
  | { readonly type: 'shutdown' }
  | { readonly type: 'processing'; readonly state: ProcessingState }
  | { readonly type: 'event_store'; readonly isAway: boolean }
  | { readonly type: 'processed'; readonly lane: LogLane; readonly appendedBeforeMs: number }
  | { readonly type: 'metrics_given'; readonly requestId: number; readonly metrics: readonly MetricsSnapshot[] }
