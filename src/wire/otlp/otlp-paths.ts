// The paths that take OpenTelemetry data: which signal each takes, how long a body may be, and the sentence that says
// that the data is not stored. Source: docs/wire/ingestion.md 12.

export const otlpSignals = ['logs', 'metrics', 'traces'] as const
export type OtlpSignal = (typeof otlpSignals)[number]

export interface OtlpPath {
  /** Without a slash at its end. */
  readonly path: string
  readonly signal: OtlpSignal
  /** The most bytes of a body, both as sent and decompressed. */
  readonly bytesMax: number
  readonly sentence: string
}

const MiB = 1024 * 1024
const ofAi = {
  bytesMax: 4 * MiB,
  sentence: 'Pennon does not store OpenTelemetry data yet; send AI events to /i/v0/ai/batch/.',
}

export const otlpPaths: readonly OtlpPath[] = [
  ...createPaths('logs', 'logs'),
  ...createPaths('metrics', 'metrics'),
  ...createPaths('traces', 'spans'),
  { path: '/i/v0/ai/otel', signal: 'traces', ...ofAi },
  { path: '/i/v0/ai/otel/v1/traces', signal: 'traces', ...ofAi },
  { path: '/i/v0/ai/otel/v1/logs', signal: 'logs', ...ofAi },
]

/** PostHog's own path, and the path that exporters derive from a base address. */
function createPaths(signal: OtlpSignal, items: string): OtlpPath[] {
  const sentence = `Pennon does not store ${items}; events and flags are not affected.`
  return [`/i/v1/${signal}`, `/v1/${signal}`].map(path => ({ path, signal, bytesMax: 2 * MiB, sentence }))
}
