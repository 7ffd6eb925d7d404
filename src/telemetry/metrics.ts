// Every counter and gauge that `/metrics` shows. Labels are codes from closed lists, never client text.

import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { SeriesCounter, SeriesHistogram } from './series.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** One Prometheus text of the numbers of several processes. */
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

/** @param options `process` adds Node's own figures under this name, so that those of a worker and a front stay apart. */
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
    /** The collector runs before the numbers are read: for gauges that are looked up rather than counted. */
    onCollect: (collector: () => void) => void collectors.push(collector),
    /** Has to come first: gauges are read in this order, and this one runs the collectors that set the others. */
    processes: new Gauge({
      name: 'pennon_processes',
      help: 'Processes of the instance that live and report, by kind; 0 is one that is down.',
      labelNames: ['process'],
      registers,
      collect: () => {
        for (const collect of collectors) collect()
      },
    }),
    buildInfo: new Gauge({
      name: 'pennon_build_info',
      help: 'Always 1; the labels say which version of Pennon runs, and on which Node.',
      labelNames: ['version', 'node'],
      aggregator: 'max',
      registers,
    }),
    requests: new SeriesCounter({
      name: 'pennon_requests_total',
      help: 'Answered requests by route group and status.',
      labelNames: ['route', 'status'],
      registers,
    }),
    requestSeconds: new SeriesHistogram({
      name: 'pennon_request_seconds',
      help: 'Time from the first byte to the answer, by route group.',
      labelNames: ['route'],
      buckets: requestSecondsBuckets,
      registers,
    }),
    eventsAccepted: new Counter({
      name: 'pennon_events_accepted_total',
      help: 'Events acknowledged into the log.',
      labelNames: ['lane'],
      registers,
    }),
    hotKeyEvents: new Counter({
      name: 'pennon_hot_key_events_total',
      help: 'Accepted events that do without a person, since their distinct id sends too many.',
      registers,
    }),
    eventsRefused: new Counter({
      name: 'pennon_events_refused_total',
      help: 'Events refused at the edge, by reason code.',
      labelNames: ['reason'],
      registers,
    }),
    otlpItems: new Counter({
      name: 'pennon_otlp_items_total',
      help: 'OpenTelemetry log records, data points and spans, none of which are stored, by signal.',
      labelNames: ['signal'],
      registers,
    }),
    eventsProcessed: new Counter({
      name: 'pennon_events_processed_total',
      help: 'What became of accepted events.',
      labelNames: ['lane', 'outcome', 'reason'],
      registers,
    }),
    flagEvaluations: new SeriesCounter({
      name: 'pennon_flag_requests_total',
      help: 'Evaluation requests by result.',
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
      help: 'Log-ins whose flags were not kept because too many waited, by what they waited for.',
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
      help: 'Change streams that were closed because their client took nothing.',
      registers,
    }),
    liveViews: new Gauge({
      name: 'pennon_live_views',
      help: 'Open live views of events.',
      registers,
    }),
    liveViewsDropped: new Counter({
      name: 'pennon_live_views_dropped_total',
      help: 'Live views that were closed because their client took nothing.',
      registers,
    }),
    requestBodyBytes: new Gauge({
      name: 'pennon_request_body_bytes',
      help: 'Bytes of the bodies of requests that are not answered yet.',
      registers,
    }),
    requestBodiesEnded: new Counter({
      name: 'pennon_request_bodies_ended_total',
      help: 'Bodies that were ended as they came in: stalled, or too slow while others needed the budget.',
      labelNames: ['why'],
      registers,
    }),
    answerBytes: new Gauge({
      name: 'pennon_answer_bytes',
      help: 'Bytes of answers that wait for their readers to take them.',
      registers,
    }),
    answersEnded: new Counter({
      name: 'pennon_answers_ended_total',
      help: 'Answers that were broken off: stalled, since their reader took nothing, or too slow while others needed the budget.',
      labelNames: ['why'],
      registers,
    }),
    connections: new Gauge({
      name: 'pennon_connections',
      help: 'Open connections of clients.',
      registers,
    }),
    connectionsEnded: new Counter({
      name: 'pennon_connections_ended_total',
      help: 'Connections that were ended at the bound (idle ones, some of the address that has most, new ones of it), or for too many requests at once.',
      labelNames: ['why'],
      registers,
    }),
    logQueueRecords: new Gauge({
      name: 'pennon_log_queue_records',
      help: 'Records waiting for the log to commit.',
      labelNames: ['stream'],
      registers,
    }),
    logLagRecords: new Gauge({
      name: 'pennon_log_lag_records',
      help: 'Records in the log that are not processed yet.',
      labelNames: ['stream'],
      registers,
    }),
    logLagSeconds: new Gauge({
      name: 'pennon_log_lag_seconds',
      help: 'Age of the oldest record that is not processed yet.',
      labelNames: ['stream'],
      registers,
    }),
    logBytes: new Gauge({
      name: 'pennon_log_bytes',
      help: 'Bytes of the log on the disk, all of its streams together.',
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
      help: 'Free bytes of the disk that the log lies on.',
      aggregator: 'max',
      registers,
    }),
    dependencyFailures: new Counter({
      name: 'pennon_dependency_failures_total',
      help: 'Failures of a store, by port and code.',
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
    help: 'Start of the process, in seconds since 1970; of several fronts the latest.',
    labelNames: ['process'],
    aggregator: 'max',
    registers: [registry],
  })
  started.set({ process }, Math.round(performance.timeOrigin) / 1000)
}
