// A real instance processes a long backlog: the memory of its processes must not grow with the number of processed
// events. The log is filled before the start, directly through its writer. Memory is measured by the kernel (Linux).

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openSqliteLogWriter } from '#adapters/sqlite-log/sqlite-log-writer.ts'
import { cpuSeconds, residentMiB } from '../../bench/processes.ts'
import { typicalEvents, typicalMix } from '../../bench/typical-events.ts'
import { type Pennon, startPennon } from '../support/pennon.ts'
import { stateWithLog } from '../support/sqlite-log-files.ts'
import { encodedEvents } from '../support/values.ts'
import { numberOf, printedSeed } from './settings.ts'

interface Sample {
  readonly atMs: number
  readonly processedCount: number
  /** Resident memory by process name. */
  readonly rssMiB: Readonly<Record<string, number>>
  readonly cpuSeconds: Readonly<Record<string, number>>
}

const watched = ['work', 'events', 'serve'] as const
const sampleMs = 1_000
/**
 * Limit for the median of the last quarter divided by that of the second; during the first, caches and heaps still
 * grow.
 */
const growthMax = 1.2
/** Time without progress after which processing counts as stuck. */
const stuckMs = 60_000
/** The worker returns memory after a few such periods. */
const quietMs = 15_000

/** @returns whether the memory of every process stayed bounded. */
export async function runBacklog(): Promise<boolean> {
  const [eventCount, visitorCount] = [numberOf('EVENTS', 3_000_000), numberOf('VISITORS', 200_000)]
  const dataFolder = mkdtempSync(join(tmpdir(), 'pennon-backlog-'))
  try {
    await stateWithLog(dataFolder)
    await fill(join(dataFolder, 'log'), eventCount, visitorCount)
    console.log(`${eventCount} events of ${visitorCount} visitors are in the log`)
    const pennon = await startPennon({ dataFolder, waitForProcessing: false })
    try {
      const isFlat = report(await samplesUntilDone(pennon, eventCount))
      await sleep(quietMs)
      console.log(`after ${quietMs / 1_000} quiet seconds: ${JSON.stringify(rssOf(pennon))} MiB`)
      return isFlat
    } finally {
      await pennon.stop()
    }
  } finally {
    rmSync(dataFolder, { recursive: true, force: true })
  }
}

const blockSize = 5_000

async function fill(folder: string, eventCount: number, visitorCount: number): Promise<void> {
  const seed = printedSeed()
  const writer = await openSqliteLogWriter({ folder, nowMs: Date.now, logBytesMax: 2 ** 40 })
  for (let first = 0; first < eventCount; first += blockSize) {
    const count = Math.min(blockSize, eventCount - first)
    const block = typicalEvents({ ...typicalMix, seed: seed + first, count, visitorCount, firstNumber: first })
    await writer.append('live', encodedEvents(block))
  }
  await writer.close()
}

async function samplesUntilDone(pennon: Pennon, eventCount: number): Promise<Sample[]> {
  const samples: Sample[] = []
  let movedAtMs = performance.now()
  for (;;) {
    const { lanes } = await pennon.api<{ lanes: { main: { processed: number } } }>(
      'GET',
      '/api/projects/@current/ingestion_status/',
    )
    const processedCount = lanes.main.processed
    const before = samples.at(-1)?.processedCount ?? 0
    if (processedCount > before) movedAtMs = performance.now()
    if (performance.now() - movedAtMs > stuckMs) throw new Error(`stuck at ${processedCount}: ${pennon.output()}`)
    const rssMiB = rssOf(pennon)
    const cpu = ofEach(pennon, cpuSeconds)
    // Anything before the first chunk belongs to the start.
    if (processedCount > 0) samples.push({ atMs: performance.now(), processedCount, rssMiB, cpuSeconds: cpu })
    if (samples.length % 15 === 0 && samples.length > 0)
      console.log(`${processedCount} processed, ${JSON.stringify(rssMiB)} MiB`)
    if (processedCount >= eventCount) return samples
    await sleep(sampleMs)
  }
}

function report(samples: readonly Sample[]): boolean {
  const first = samples[0]!
  const last = samples.at(-1)!
  const processedCount = last.processedCount - first.processedCount
  const perSecond = (processedCount / (last.atMs - first.atMs)) * 1_000
  console.log(`${Math.round(perSecond)} events/s over ${Math.round((last.atMs - first.atMs) / 1_000)} s`)
  const quarters = [0, 1, 2, 3].map(quarter =>
    samples.slice((samples.length * quarter) / 4, (samples.length * (quarter + 1)) / 4),
  )
  let isFlat = true
  for (const name of watched) {
    const sorted = quarters.map(quarter => quarter.map(sample => sample.rssMiB[name]!).sort((a, b) => a - b))
    const cpuMicros = ((last.cpuSeconds[name]! - first.cpuSeconds[name]!) / processedCount) * 1e6
    console.log(`${name}: ${cpuMicros.toFixed(1)} µs of CPU per event`)
    console.log(`${name}: RSS min/median/max in MiB per quarter: ${sorted.map(describe).join(', ')}`)
    if (median(sorted[3]!) > growthMax * median(sorted[1]!)) {
      console.log(`${name} grew`)
      isFlat = false
    }
  }
  return isFlat
}

function describe(sorted: readonly number[]): string {
  return [sorted[0]!, median(sorted), sorted.at(-1)!].join('/')
}

function median(sorted: readonly number[]): number {
  return sorted[sorted.length >> 1]!
}

function rssOf(pennon: Pennon): Record<string, number> {
  return ofEach(pennon, pid => Math.round(residentMiB(pid)))
}

function ofEach(pennon: Pennon, figureOf: (pid: number) => number): Record<string, number> {
  const pids: Record<string, number> = { ...pennon.childPids(), serve: pennon.pid }
  return Object.fromEntries(watched.map(name => [name, figureOf(pids[name]!)]))
}
