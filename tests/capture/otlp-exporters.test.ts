import assert from 'node:assert/strict'
import { before, beforeEach, describe, it, type TestContext } from 'node:test'
import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-http'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter as JsonTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { LoggerProvider, SimpleLogRecordProcessor } from '@opentelemetry/sdk-logs'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { startRecordingProxy } from '../sdk/recording-proxy.ts'
import { fieldsOf } from '../support/fields-of.ts'
import { otlpKey, startOtlpServer } from './otlp-server.ts'

// OpenTelemetry's own exporters, unmodified: each sends once, fails at nothing, and logs the one sentence that it is
// told. Source: docs/wire/ingestion.md 12; docs/wire/clients.md 2.

const sentence = (items: string) => `Pennon does not store ${items}; events and flags are not affected.`
const headers = { authorization: `Bearer ${otlpKey}` }
/** What the exporters log. */
let told: unknown[][] = []

before(() => {
  const note = (...message: unknown[]) => void told.push(message)
  const logger: DiagLogger = { error: note, warn: note, info() {}, debug() {}, verbose() {} }
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
})
beforeEach(() => {
  told = []
})

async function startServer(t: TestContext) {
  const { url, warnings } = await startOtlpServer(t)
  const proxy = await startRecordingProxy(url)
  t.after(() => proxy.close())
  const statuses = () => fieldsOf(proxy.exchanges, 'path', 'status')
  return { url: proxy.url, warnings, statuses }
}

describe("OpenTelemetry's exporters", () => {
  it('of logs, in JSON, send once and log the warning', async t => {
    const { url, warnings, statuses } = await startServer(t)
    const exporter = new OTLPLogExporter({ url: `${url}/i/v1/logs`, headers })
    const provider = new LoggerProvider({ processors: [new SimpleLogRecordProcessor({ exporter })] })
    provider.getLogger('shop').emit({ body: 'sold out', severityText: 'WARN' })
    await provider.shutdown()
    assert.deepEqual(statuses(), [['/i/v1/logs', 200]])
    assertPartialSuccess({ rejectedLogRecords: '1', errorMessage: sentence('logs') })
    assert.equal(warnings.length, 1)
  })

  it('of metrics, in protobuf and gzip, count the data points of all kinds', async t => {
    const { url, warnings, statuses } = await startServer(t)
    const exporter = new OTLPMetricExporter({ url: `${url}/v1/metrics`, headers, compression: 'gzip' as never })
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
    const provider = new MeterProvider({ readers: [reader] })
    const meter = provider.getMeter('shop')
    meter.createCounter('sales').add(2, { size: 'small' })
    meter.createHistogram('price').record(9.5)
    await provider.shutdown()
    assert.deepEqual(statuses(), [['/v1/metrics', 200]])
    assertPartialSuccess({ rejectedDataPoints: 2, errorMessage: sentence('metrics') })
    assert.deepEqual(fieldsOf(warnings, 'signal', 'count'), [['metrics', 2]])
  })

  for (const [form, Exporter] of [
    ['JSON', JsonTraceExporter],
    ['protobuf', ProtobufTraceExporter],
  ] as const) {
    for (const path of ['/i/v1/traces', '/i/v0/ai/otel/v1/traces']) {
      it(`of spans, in ${form}, to ${path} send once and log the warning`, async t => {
        const { url, statuses } = await startServer(t)
        const exporter = new Exporter({ url: url + path, headers })
        const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
        provider.getTracer('shop').startSpan('checkout').end()
        await provider.shutdown()
        assert.deepEqual(statuses(), [[path, 200]])
        const ofAi = 'Pennon does not store OpenTelemetry data yet; send AI events to /i/v0/ai/batch/.'
        assertPartialSuccess({
          rejectedSpans: form === 'JSON' ? '1' : 1,
          errorMessage: path.includes('/ai/') ? ofAi : sentence('spans'),
        })
      })
    }
  }
})

function assertPartialSuccess(partialSuccess: object): void {
  assert.equal(told.length, 1, JSON.stringify(told))
  assert.deepEqual(JSON.parse(String(told[0]!.at(-1))), partialSuccess)
}
