import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { aggregateMetrics } from './metrics.ts'
import { ProcessMetrics } from './process-metrics.ts'

let nowMs: number
let numbers: ProcessMetrics

beforeEach(() => {
  nowMs = 0
  numbers = new ProcessMetrics({ silentAfterMs: 12_000, monotonicNowMs: () => nowMs })
})

/** The report, as it arrives over IPC, of a process that counted `count` events and has a lag of `lag`. */
async function snapshotOf(count: number, lag = 0): Promise<object[]> {
  const registers = [new Registry()]
  const labelNames = ['lane']
  new Counter({ name: 'events_total', help: 'h', labelNames, registers }).inc({ lane: 'main' }, count)
  new Gauge({ name: 'lag', help: 'h', labelNames, registers }).set({ lane: 'main' }, lag)
  const seconds = new Histogram({ name: 'seconds', help: 'h', buckets: [1], registers })
  for (let observed = 0; observed < count; observed++) seconds.observe(0.5)
  return JSON.parse(JSON.stringify(await registers[0]!.getMetricsAsJSON()))
}

/** Values of a scrape, by series. */
async function scraped(except?: string): Promise<Record<string, string>> {
  const lines = (await aggregateMetrics(numbers.all(except))).split('\n')
  return Object.fromEntries(lines.filter(line => /^\w/.test(line)).map(line => line.split(' ') as [string, string]))
}

describe('the metrics of other processes', () => {
  it('keep the counters of an ended process, and add the counters of its successor', async () => {
    numbers.report('work', await snapshotOf(3, 7))
    numbers.report('front 1', await snapshotOf(2))
    assert.equal((await scraped())['events_total{lane="main"}'], '5')
    numbers.ended('work')
    const whileDown = await scraped()
    assert.equal(whileDown['events_total{lane="main"}'], '5')
    assert.equal(whileDown.seconds_count, '5')
    assert.equal(whileDown['seconds_bucket{le="1"}'], '5')
    numbers.report('work', await snapshotOf(1, 4))
    numbers.ended('work')
    numbers.ended('never reported')
    const after = await scraped()
    assert.equal(after['events_total{lane="main"}'], '6')
    assert.equal(after.seconds_sum, '3')
  })

  it('omit the gauges of an ended process, which return when a new process reports', async () => {
    numbers.report('work', await snapshotOf(3, 7))
    assert.equal((await scraped())['lag{lane="main"}'], '7')
    numbers.ended('work')
    assert.equal((await scraped())['lag{lane="main"}'], undefined)
    numbers.report('work', await snapshotOf(0, 4))
    assert.equal((await scraped())['lag{lane="main"}'], '4')
  })

  it('drop the gauges of a silent process while the silence lasts', async () => {
    assert.equal(numbers.isSilent('work'), false)
    numbers.report('work', await snapshotOf(3, 7))
    nowMs = 12_000
    assert.equal((await scraped())['lag{lane="main"}'], '7')
    nowMs = 12_001
    assert.equal(numbers.isSilent('work'), true)
    assert.deepEqual(
      [(await scraped())['lag{lane="main"}'], (await scraped())['events_total{lane="main"}']],
      [undefined, '3'],
    )
    numbers.report('work', await snapshotOf(3, 6))
    assert.equal((await scraped())['lag{lane="main"}'], '6')
  })

  it('leave out the process that answers the request, which has newer values itself', async () => {
    numbers.report('front 1', await snapshotOf(3))
    numbers.report('front 2', await snapshotOf(4))
    assert.equal((await scraped('front 1'))['events_total{lane="main"}'], '4')
  })
})
