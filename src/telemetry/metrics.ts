// Every counter and gauge that `/metrics` shows. Labels are codes from closed lists, never client text.

import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { SeriesCounter, SeriesHistogram } from './series.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** @returns one Prometheus text with the sums of several processes. */
export function aggregateMetrics(snapshots: readonly (readonly object[])[]): Promise<string> {
  return AggregatorRegistry.aggregate(snapshots as object[][]).metrics()
}

/**
 * How often the event loop's monitor wakes the process: a finer one would cost an idle instance more than everything
 * else. The `nodejs_eventloop_lag_…` figures include it: an event loop that is never blocked shows 0.2 s.
 */
export const loopPrecisionMs = 200

/**
 * Upper bounds. Flags are answered in tenths of a millisecond, captures in the time of a disk sync, imports of 20 MiB
 * in seconds.
 */
const requestSecondsBuckets = [
  ...[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
]

/** @param options `process` adds Node's metrics with this label, which keeps worker and fronts apart. */
export function createMetrics(options: { process?: 'serve' | 'front' | 'work' } = {}) {
  const registry = new Registry()
  const registers = [registry]
  const collectors: (() => void)[] = []
  if (options.process !== undefined) {
    collectDefaultMetrics({
      register: registry,
      eventLoopMonitoringPrecision: loopPrecisionMs,
      labels: { process: options.process },
    })
    showStart(registry, options.process)
  }
  return {
    registry,
    /** The collector runs before metrics are read: for gauges that are measured rather than counted. */
    onCollect: (collector: () => void) => void collectors.push(collector),
    /** Must be first: gauges are read in this order, and this one runs the collectors that set the others. */
    processes: new Gauge({
      name: 'pennon_processes',
      help: 'Running processes of the instance, by kind; 0 if a process is down.',
      labelNames: ['process'],
      registers,
      collect: () => {
        for (const collect of collectors) collect()
      },
    }),
    buildInfo: new Gauge({
      name: 'pennon_build_info',
      help: 'Always 1; labels contain the versions of Pennon and Node.',
      labelNames: ['version', 'node'],
      aggregator: 'max',
      registers,
    }),
    requests: new SeriesCounter({
      name: 'pennon_requests_total',
      help: 'HTTP responses by route group and status.',
      labelNames: ['route', 'status'],
      registers,
    }),
    requestSeconds: new SeriesHistogram({
      name: 'pennon_request_seconds',
      help: 'Time from the first request byte to the response, by route group.',
      labelNames: ['route'],
      buckets: requestSecondsBuckets,
      registers,
    }),
    eventsAccepted: new Counter({
      name: 'pennon_events_accepted_total',
      help: 'Events acknowledged after being written to the log.',
      labelNames: ['lane'],
      registers,
    }),
    hotKeyEvents: new Counter({
      name: 'pennon_hot_key_events_total',
      help: 'Accepted events processed without a person because their distinct id sends too many.',
      registers,
    }),
    eventsRefused: new Counter({
      name: 'pennon_events_refused_total',
      help: 'Events refused before the log, by reason code.',
      labelNames: ['reason'],
      registers,
    }),
    otlpItems: new Counter({
      name: 'pennon_otlp_items_total',
      help: 'OpenTelemetry log records, data points and spans received and discarded, by signal.',
      labelNames: ['signal'],
      registers,
    }),
    eventsProcessed: new Counter({
      name: 'pennon_events_processed_total',
      help: 'Outcomes of accepted events.',
      labelNames: ['lane', 'outcome', 'reason'],
      registers,
    }),
    flagEvaluations: new SeriesCounter({
      name: 'pennon_flag_requests_total',
      help: 'Flag evaluation requests by result.',
      labelNames: ['result'],
      registers,
    }),
    flagsUnknown: new Counter({
      name: 'pennon_flags_unknown_total',
      help: 'Flags that could not be computed, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    loginsDropped: new Counter({
      name: 'pennon_logins_dropped_total',
      help: 'Log-ins whose flags were not saved because too many were queued, by reason.',
      labelNames: ['why'],
      registers,
    }),
    changeStreams: new Gauge({
      name: 'pennon_change_streams',
      help: 'Open change streams.',
      registers,
    }),
    changeStreamsDropped: new Counter({
      name: 'pennon_change_streams_dropped_total',
      help: 'Change streams closed because the client stopped reading.',
      registers,
    }),
    liveViews: new Gauge({
      name: 'pennon_live_views',
      help: 'Open live views of events.',
      registers,
    }),
    liveViewsDropped: new Counter({
      name: 'pennon_live_views_dropped_total',
      help: 'Live views closed because the client stopped reading.',
      registers,
    }),
    requestBodyBytes: new Gauge({
      name: 'pennon_request_body_bytes',
      help: 'Bytes of request bodies that are not answered yet.',
      registers,
    }),
    requestBodiesEnded: new Counter({
      name: 'pennon_request_bodies_ended_total',
      help: 'Request bodies aborted: stalled, or too slow while the memory budget was exhausted.',
      labelNames: ['why'],
      registers,
    }),
    answerBytes: new Gauge({
      name: 'pennon_answer_bytes',
      help: 'Bytes of responses waiting for clients to read them.',
      registers,
    }),
    answersEnded: new Counter({
      name: 'pennon_answers_ended_total',
      help: 'Responses aborted: the client stopped reading, or was too slow while the memory budget was exhausted.',
      labelNames: ['why'],
      registers,
    }),
    connections: new Gauge({
      name: 'pennon_connections',
      help: 'Open client connections.',
      registers,
    }),
    connectionsEnded: new Counter({
      name: 'pennon_connections_ended_total',
      help: 'Connections closed at the connection limit (idle ones, then those of the address with the most), or for too many concurrent requests.',
      labelNames: ['why'],
      registers,
    }),
    logQueueRecords: new Gauge({
      name: 'pennon_log_queue_records',
      help: 'Records waiting to be committed to the log.',
      labelNames: ['stream'],
      registers,
    }),
    logLagRecords: new Gauge({
      name: 'pennon_log_lag_records',
      help: 'Unprocessed records in the log.',
      labelNames: ['stream'],
      registers,
    }),
    logLagSeconds: new Gauge({
      name: 'pennon_log_lag_seconds',
      help: 'Age of the oldest unprocessed record.',
      labelNames: ['stream'],
      registers,
    }),
    logBytes: new Gauge({
      name: 'pennon_log_bytes',
      help: 'Bytes of the log on disk, for all streams.',
      aggregator: 'max',
      registers,
    }),
    logBytesMax: new Gauge({
      name: 'pennon_log_limit_bytes',
      help: 'PENNON_LOG_MAX_BYTES.',
      aggregator: 'max',
      registers,
    }),
    diskFreeBytes: new Gauge({
      name: 'pennon_disk_free_bytes',
      help: 'Free bytes on the disk of the log.',
      aggregator: 'max',
      registers,
    }),
    dependencyFailures: new Counter({
      name: 'pennon_dependency_failures_total',
      help: 'Store failures by port and code.',
      labelNames: ['port', 'code'],
      registers,
    }),
    childRestarts: new Counter({
      name: 'pennon_child_restarts_total',
      help: 'Restarts of supervised processes.',
      labelNames: ['process'],
      registers,
    }),
  }
}

/** Replaces prom-client's own gauge, which is left out of sums over processes. */
function showStart(registry: Registry, process: string): void {
  const name = 'process_start_time_seconds'
  registry.removeSingleMetric(name)
  const started = new Gauge({
    name,
    help: 'Start time of the process in seconds since 1970; the latest start if there are several fronts.',
    labelNames: ['process'],
    aggregator: 'max',
    registers: [registry],
  })
  started.set({ process }, Math.round(performance.timeOrigin) / 1000)
}
