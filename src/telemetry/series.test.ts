import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AggregatorRegistry, Counter, Histogram, Registry } from 'prom-client'
import { SeriesCounter, SeriesHistogram } from './series.ts'

describe('the series of metrics', () => {
  it('equal prom-client’s series, in one process and summed over several', async () => {
    const [ours, theirs] = [new Registry(), new Registry()]
    const timed = { name: 'seconds', help: 'How long.', labelNames: ['route'] as const, buckets: [0.001, 0.01, 1] }
    const counted = { name: 'answers_total', help: 'How many.', labelNames: ['route', 'status'] as const }
    const histogram = new SeriesHistogram({ ...timed, registers: [ours] })
    const counter = new SeriesCounter({ ...counted, registers: [ours] })
    const reference = new Histogram({ ...timed, registers: [theirs] })
    const referenceCounter = new Counter({ ...counted, registers: [theirs] })
    histogram.labels({ route: 'silent' })
    counter.labels({ route: 'silent', status: 200 })
    reference.zero({ route: 'silent' })
    referenceCounter.inc({ route: 'silent', status: 200 }, 0)
    for (let round = 0; round < 2; round++) {
      for (const [route, status, seconds] of [
        ['flags', 200, 0.0005],
        ['flags', 404, 0.001],
        ['flags', 200, 0.5],
        ['capture', 200, 7],
        ['capture', 200, 0],
      ] as const) {
        histogram.labels({ route }).observe(seconds)
        reference.labels({ route }).observe(seconds)
        counter.labels({ route, status }).inc()
        counter.inc({ status, route })
        referenceCounter.inc({ route, status }, 2)
      }
      assert.equal(await ours.metrics(), await theirs.metrics())
    }
    assert.equal(await summed(ours), await summed(theirs))
    assert.match(await summed(ours), /seconds_count\{route="flags"\} 12/)
  })
})

/** The sum of two processes with the same metrics. */
async function summed(registry: Registry): Promise<string> {
  const snapshot = (await registry.getMetricsAsJSON()) as object[]
  return AggregatorRegistry.aggregate([snapshot, JSON.parse(JSON.stringify(snapshot))] as object[][]).metrics()
}
