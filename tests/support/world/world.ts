// The surroundings of processing tests: a clock, a log, an event store and metrics in memory, with any state. All of it
// outlives any number of workers. `aWorld` has its state in memory too, `importWorld` in a real database.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { CapturedEvent, CapturedReject, LogRecord } from '#core/events/captured-event.ts'
import type { LogStream, StreamInfo, Traffic } from '#core/events/log-stream.ts'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { GeoipLocation } from '#core/geoip.ts'
import { listChunkSubjects, listImportsWithoutJob, parseChunk } from '#core/processing/parse-chunk.ts'
import { type ProcessedChunk, processChunk } from '#core/processing/process-chunk.ts'
import { rejectRefusedRows } from '#core/processing/refused-rows.ts'
import type { Project } from '#core/project.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import { createImplicitJobFinder } from '#services/imports/implicit-jobs.ts'
import type { FaultPoint } from '#services/processing/chunk-deps.ts'
import { createEventProcessor, type ProcessorOptions } from '#services/processing/process-events.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { eventually } from '../eventually.ts'
import { fixedClock } from '../fixed-clock.ts'
import { memoryChunkStore } from '../memory/memory-chunk-store.ts'
import {
  createMemoryEventLog,
  type MemoryEventLogOptions,
  type MemoryLogStorage,
  memoryLogStorage,
} from '../memory/memory-event-log.ts'
import { keyOf, memoryState } from '../memory/memory-state.ts'
import { loadWhole } from '../state.ts'
import { aProject, encodedEvents, noSalts, recordsAt } from '../values.ts'
import { WatchedEventStore } from '../watched-event-store.ts'

export interface WorldOptions extends Pick<MemoryEventLogOptions, 'gapAfter'> {
  readonly logStorage?: MemoryLogStorage
  /** Locations by address. */
  readonly geoip?: Readonly<Record<string, GeoipLocation>>
  /** Assigns imports without a job to the implicit job of their day; by default they get none. */
  readonly jobs?: Parameters<typeof createImplicitJobFinder>[0]['jobs']
}

/** Each is called once, after that step of the first try. */
export interface ChunkHooks {
  readonly afterLoad?: () => Promise<void>
  readonly afterInsert?: () => Promise<void>
}

const live: StreamInfo = { stream: 'main', traffic: 'live' }
const imports: StreamInfo = { stream: 'historical', traffic: 'import' }

/** The owner of the streams before a worker was started. */
export const ownerId = 'w'
let workerCount = 0

export function worldOn(chunks: ChunkStore, options: WorldOptions = {}) {
  const { logStorage = memoryLogStorage(), gapAfter, geoip = {}, jobs } = options
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const log = createMemoryEventLog({ storage: logStorage, nowMs: clock.nowMs, ...(gapAfter && { gapAfter }) })
  const events = new WatchedEventStore()
  const metrics = createMetrics()
  const findImplicitJobs = jobs && createImplicitJobFinder({ jobs, clock })
  const processed: ProcessedChunk[] = []
  const rows: StoredEvent[] = []
  let offset = 0

  async function applyRecords(hooks: ChunkHooks, { stream, traffic }: StreamInfo, all: readonly LogRecord[]) {
    const records = recordsAt(all, offset)
    const chunk = parseChunk({ stream, traffic, records }, new Map())
    offset += records.length
    clock.advance(1)
    for (let left = hooks; !(await tryChunk(left)); left = {});

    async function tryChunk({ afterLoad, afterInsert }: ChunkHooks): Promise<boolean> {
      const implicitJobs = await findImplicitJobs?.(listImportsWithoutJob(chunk), { isRetry: true, mayCreate: true })
      const implicitJobIds = [...(implicitJobs?.values() ?? [])].flat().map(({ id }) => id)
      const subjects = listChunkSubjects(chunk)
      const importJobIds = [...(subjects.importJobIds ?? []), ...implicitJobIds]
      const loaded = await loadWhole(chunks, { ...subjects, importJobIds })
      await afterLoad?.()
      const lookUpGeoip = (address: string) => geoip[address] ?? null
      const made = processChunk(chunk, loaded, { logId: 'log', lookUpGeoip, ...(implicitJobs && { implicitJobs }) })
      const { refused } = await events.insert(made.rows)
      const { changes } = rejectRefusedRows(made, refused)
      await afterInsert?.()
      const end = await chunks.commitChunk(changes, { stream, ownerId, offset, committedAtMs: clock.nowMs() })
      assert.ok(end === 'committed' || end === 'version_conflict', end)
      if (end === 'version_conflict') return false
      processed.push(made)
      rows.push(...made.rows.events)
      return true
    }
  }

  /** Processes all events of a call as one chunk, without the log. */
  const applyWith = (hooks: ChunkHooks, ...captured: readonly CapturedEvent[]) =>
    applyRecords(
      hooks,
      captured[0]?.lane === 'historical' ? imports : live,
      captured.map(event => ({ kind: 'event', event })),
    )

  return {
    clock,
    log,
    chunks,
    events,
    metrics,
    /** The applied events, chunk by chunk, and their rows. */
    processed,
    rows,
    /** Needed to apply events. */
    claimStreams: async () => {
      for (const { stream } of [live, imports]) await chunks.claimPosition(stream, ownerId)
    },
    applyWith,
    apply: (...captured: readonly CapturedEvent[]) => applyWith({}, ...captured),
    /** Items of an import that were refused on arrival, as one chunk. */
    refuse: (...rejects: readonly CapturedReject[]) =>
      applyRecords(
        {},
        imports,
        rejects.map(reject => ({ kind: 'reject', reject })),
      ),
    append: (captured: readonly CapturedEvent[], traffic: Traffic = 'live') =>
      log.append(traffic, encodedEvents(captured)),
    /** Starts a worker. It ends with the test, or hangs at a fault point as if its process were killed. */
    start(t: TestContext, over: Partial<ProcessorOptions> = {}) {
      workerCount++
      const stopping = new AbortController()
      const processor = createEventProcessor({
        ...{ log, logId: 'log', state: chunks, events, geoip: null, saltOf: noSalts, clock, metrics },
        ...{ logger: createSilentLogger(), ownerId: `worker-${workerCount}`, random: () => 0.5 },
        ...over,
        limits: { restMs: 0, pollMs: 20, ...over.limits },
      })
      const ended = processor.run(stopping.signal)
      t.after(() => stopping.abort())
      return { processor, ended, stop: () => stopping.abort() }
    },
  }
}

export type World = ReturnType<typeof aWorld>

/** A world with one project, whose state is in memory and can be inspected and replaced. */
export function aWorld({ project, ...options }: Omit<WorldOptions, 'jobs'> & { project?: Partial<Project> } = {}) {
  const state = memoryState([aProject({ geoipEnabled: options.geoip !== undefined, ...project })])
  const world = worldOn(memoryChunkStore(state), options)
  const mapping = (distinctId: string) => state.mappings.get(keyOf(1, distinctId))
  async function isProcessed(stream: LogStream = 'main'): Promise<boolean> {
    const { endOffset } = await world.log.readStreamStatus(stream, 0)
    return (state.positions.get(stream)?.offset ?? 0) === endOffset
  }
  return {
    ...world,
    state,
    apply: async (...captured: readonly CapturedEvent[]) => {
      await world.claimStreams()
      await world.apply(...captured)
    },
    person: (distinctId: string) => state.persons.get(keyOf(1, mapping(distinctId)?.personUuid ?? '')),
    mappingVersion: (distinctId: string) => mapping(distinctId)?.version,
    warningTypes: () => state.warnings.map(({ type }) => type),
    isProcessed,
    /** Appends live events, and waits until a worker has processed them. */
    async send(captured: readonly CapturedEvent[]) {
      await world.append(captured)
      await eventually(() => isProcessed())
    },
    /** Appends live events, and has a new worker process them. */
    async process(t: TestContext, captured: readonly CapturedEvent[], over: Partial<ProcessorOptions> = {}) {
      await world.append(captured)
      const worker = world.start(t, over)
      await eventually(() => isProcessed())
      return worker
    },
    /** Starts a worker that goes no further than this step, as if it were killed there. */
    async startAndKill(t: TestContext, after: FaultPoint, over: Partial<ProcessorOptions> = {}) {
      const reached = Promise.withResolvers<void>()
      const faultPoint = (name: FaultPoint) => {
        if (name !== after) return
        reached.resolve()
        return new Promise<void>(() => {})
      }
      const worker = world.start(t, { ...over, faultPoint })
      await reached.promise
      return worker
    },
    /** Accepted = stored + dropped + rejected. */
    outcomeTotals() {
      const totals = { stored: 0, dropped: 0, rejected: 0 }
      for (const { outcome, count } of state.outcomes) totals[outcome] += count
      return totals
    },
  }
}
