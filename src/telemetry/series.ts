// Counters and histograms whose series are looked up once: prom-client checks and joins the labels at every observation,
// which takes a twentieth of a request of 25 µs. The text of a scrape is the same.

import type { Metric, MetricObject, Registry } from 'prom-client'

interface Configuration<Label extends string> {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly Label[]
  readonly registers: readonly Registry[]
}

type Labels<Label extends string> = Readonly<Record<Label, string | number>>

/** What counters and histograms have in common: series by their labels, and the interface that a registry expects. */
abstract class SeriesMetric<Label extends string, Series> {
  readonly name: string
  readonly #help: string
  readonly #labelNames: readonly Label[]
  readonly #type: string
  readonly #series = new Map<string, { readonly labels: Labels<Label>; readonly series: Series }>()

  constructor(type: string, { name, help, labelNames, registers }: Configuration<Label>) {
    this.name = name
    this.#help = help
    this.#labelNames = labelNames
    this.#type = type
    // A registry uses only a metric's name and `get`.
    for (const registry of registers) registry.registerMetric(this as unknown as Metric)
  }

  /** The result can be stored for frequent use. The series is shown, at 0, from this call on, so `rate()` sees its first step. */
  labels(labels: Labels<Label>): Series {
    const key = this.#labelNames.map(name => labels[name]).join('\n')
    const known = this.#series.get(key)
    if (known !== undefined) return known.series
    const series = this.newSeries()
    this.#series.set(key, { labels, series })
    return series
  }

  async get(): Promise<MetricObject> {
    const values = Array.from(this.#series.values(), ({ labels, series }) => this.valuesOf(labels, series))
    const { name } = this
    return {
      name,
      help: this.#help,
      type: this.#type,
      aggregator: 'sum',
      values: values.flat(),
    } as unknown as MetricObject
  }

  protected abstract newSeries(): Series
  /** The series' values in prom-client's format. */
  protected abstract valuesOf(labels: Labels<Label>, series: Series): readonly object[]
}

export class SeriesCounter<Label extends string> extends SeriesMetric<Label, CounterSeries> {
  constructor(configuration: Configuration<Label>) {
    super('counter', configuration)
  }

  inc(labels: Labels<Label>): void {
    this.labels(labels).inc()
  }

  protected newSeries(): CounterSeries {
    return new CounterSeries()
  }

  protected valuesOf(labels: Labels<Label>, { count }: CounterSeries): readonly object[] {
    return [{ labels, value: count }]
  }
}

class CounterSeries {
  count = 0

  inc(): void {
    this.count++
  }
}

export class SeriesHistogram<Label extends string> extends SeriesMetric<Label, HistogramSeries> {
  readonly #bounds: readonly number[]

  /** @param configuration `buckets`: upper bounds, ascending. */
  constructor(configuration: Configuration<Label> & { readonly buckets: readonly number[] }) {
    super('histogram', configuration)
    this.#bounds = configuration.buckets
  }

  protected newSeries(): HistogramSeries {
    return new HistogramSeries(this.#bounds)
  }

  protected valuesOf(labels: Labels<Label>, { counts, sum, count }: HistogramSeries): readonly object[] {
    let below = 0
    const buckets = [...this.#bounds, '+Inf'].map((le, index) => {
      below += counts[index]!
      return { labels: { le, ...labels }, value: below, metricName: `${this.name}_bucket` }
    })
    return [
      ...buckets,
      { labels, value: sum, metricName: `${this.name}_sum` },
      { labels, value: count, metricName: `${this.name}_count` },
    ]
  }
}

class HistogramSeries {
  /** Counts by bucket; the last bucket is for values above all bounds. */
  readonly counts: Float64Array
  sum = 0
  count = 0
  readonly #bounds: readonly number[]

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++
    this.counts[bucket]!++
    this.sum += value
    this.count++
  }
}
