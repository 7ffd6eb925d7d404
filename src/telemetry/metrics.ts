// Every counter and gauge that `/metrics` shows. Labels are codes from closed lists, never client text.

import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { SeriesCounter, SeriesHistogram } from './series.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** @returns one Prometheus text with the sums of several processes. */
export function aggregateMetrics(snapshots: readonly (readonly object[])[]): Promise<string> {
  return AggregatorRegistry.aggregate(snapshots as object[][]).metrics()
}

/**
 * How often the event loop's monitor wakes the process. With a shorter interval, the monitor would cost an idle instance
 * more than everything else. The `nodejs_eventloop_lag_…` figures include it: an event loop that is never blocked shows 0.2
 * s.
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

/** @param options `process` adds Node's metrics with this label, which distinguishes worker and fronts. */
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
    registerStartTime(registry, options.process)
  }
  const counter = <Label extends string>(name: string, help: string, ...labelNames: readonly Label[]) =>
    new Counter({ name, help, labelNames, registers })
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: readonly Label[]) =>
    new Gauge({ name, help, labelNames, registers })
  return {
    registry,
    /** The collector runs before metrics are read, for gauges that are measured rather than counted. */
    onCollect: (collector: () => void) => void collectors.push(collector),
    /**
     * This gauge must be the first: gauges are read in this order, and reading it runs the collectors that set the other
     * gauges.
     */
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
    eventsAccepted: counter(
      'pennon_events_accepted_total',
      'Events acknowledged after being written to the log.',
      'lane',
    ),
    hotKeyEvents: counter(
      'pennon_hot_key_events_total',
      'Accepted events processed without a person because their distinct id sends too many.',
    ),
    eventsRefused: counter('pennon_events_refused_total', 'Events refused before the log, by reason code.', 'reason'),
    otlpItems: counter(
      'pennon_otlp_items_total',
      'OpenTelemetry log records, data points and spans received and discarded, by signal.',
      'signal',
    ),
    eventsProcessed: counter(
      'pennon_events_processed_total',
      'Outcomes of accepted events.',
      'lane',
      'outcome',
      'reason',
    ),
    flagEvaluations: new SeriesCounter({
      name: 'pennon_flag_requests_total',
      help: 'Flag evaluation requests by result.',
      labelNames: ['result'],
      registers,
    }),
    flagsUnknown: counter('pennon_flags_unknown_total', 'Flags that could not be computed, by reason.', 'reason'),
    loginsDropped: counter(
      'pennon_logins_dropped_total',
      'Log-ins whose flags were not saved because too many were queued, by reason.',
      'why',
    ),
    changeStreams: gauge('pennon_change_streams', 'Open change streams.'),
    changeStreamsDropped: counter(
      'pennon_change_streams_dropped_total',
      'Change streams closed because the client stopped reading.',
    ),
    liveViews: gauge('pennon_live_views', 'Open live views of events.'),
    liveViewsDropped: counter(
      'pennon_live_views_dropped_total',
      'Live views closed because the client stopped reading.',
    ),
    requestBodyBytes: gauge('pennon_request_body_bytes', 'Bytes of request bodies that are not answered yet.'),
    requestBodiesEnded: counter(
      'pennon_request_bodies_ended_total',
      'Request bodies aborted: stalled, or too slow while the memory budget was exhausted.',
      'why',
    ),
    answerBytes: gauge('pennon_answer_bytes', 'Bytes of responses waiting for clients to read them.'),
    answersEnded: counter(
      'pennon_answers_ended_total',
      'Responses aborted: the client stopped reading, or was too slow while the memory budget was exhausted.',
      'why',
    ),
    connections: gauge('pennon_connections', 'Open client connections.'),
    connectionsEnded: counter(
      'pennon_connections_ended_total',
      'Connections closed at the connection limit (idle ones, then those of the address with the most), or for too many concurrent requests.',
      'why',
    ),
    logQueueRecords: gauge('pennon_log_queue_records', 'Records waiting to be committed to the log.', 'stream'),
    logLagRecords: gauge('pennon_log_lag_records', 'Unprocessed records in the log.', 'stream'),
    logLagSeconds: gauge('pennon_log_lag_seconds', 'Age of the oldest unprocessed record.', 'stream'),
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
    dependencyFailures: counter('pennon_dependency_failures_total', 'Store failures by port and code.', 'port', 'code'),
    childRestarts: counter('pennon_child_restarts_total', 'Restarts of supervised processes.', 'process'),
  }
}

/** Replaces prom-client's own gauge, which is left out of sums over processes. */
function registerStartTime(registry: Registry, process: string): void {
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
