// The messages that the processes of one instance send each other over IPC.

import type { LogStream, Traffic } from '#core/events/log-stream.ts'
import type { ProcessedUntil } from '#core/events/processed-until.ts'
import type { MetricsSnapshot } from '#telemetry/process-metrics.ts'

/**
 * `ok`, or why events are not being processed: first the states that the worker reports, then the states that only its
 * supervisor knows, last the state that a front detects itself. docs/operating/monitoring.md has a row for each.
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
  /** How far traffic of this kind has been processed; sent while there is work. */
  | { readonly type: 'processed'; readonly traffic: Traffic; readonly until: ProcessedUntil }
  | { readonly type: 'metrics'; readonly metrics: MetricsSnapshot }

export type ToWorker =
  | { readonly type: 'shutdown' }
  | { readonly type: 'wake_up'; readonly stream: LogStream }
  /** Moves the clock of `--test-clock`. */
  | { readonly type: 'test_clock'; readonly nowMs: number }

export type FromFront =
  | { readonly type: 'listening'; readonly url: string; readonly adminUrl: string | null }
  | { readonly type: 'listen_failed'; readonly message: string }
  | { readonly type: 'alive' }
  | { readonly type: 'wake_up'; readonly stream: LogStream }
  | { readonly type: 'metrics'; readonly metrics: MetricsSnapshot }
  /**
   * Includes the front's own metrics, so that they survive the front's end. The front shows its own metrics along with
   * those that it receives.
   */
  | { readonly type: 'metrics_wanted'; readonly requestId: number; readonly metrics: MetricsSnapshot }

export type ToFront =
  | { readonly type: 'shutdown' }
  | { readonly type: 'processing'; readonly state: ProcessingState }
  | { readonly type: 'event_store'; readonly isUnavailable: boolean }
  | { readonly type: 'processed'; readonly traffic: Traffic; readonly until: ProcessedUntil }
  | { readonly type: 'metrics_given'; readonly requestId: number; readonly metrics: readonly MetricsSnapshot[] }
