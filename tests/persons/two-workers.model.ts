// Two chunk loops on one state, each with a separate connection. Their events link, merge and describe the same few
// distinct ids, and some are sent more than once. Whichever loop overtakes the other, the state must end as if the
// chunks had been committed one after the other, and every event must belong to the person that has its distinct id in
// that state.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import { processOneChunk } from '#services/processing/process-one-chunk.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { MemoryEventStore } from '../support/memory/memory-event-store.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { loadWhole, type OpenState, type StateHarness } from '../support/state.ts'
import { anEvent, noSalts, recordsAt } from '../support/values.ts'
import { PersonModel } from './person-model.ts'
import { modelEvent } from './person-streams.ts'

const chunksPerLoop = 3
/** Rounds that run concurrently. */
const atOnce = 50
const projectId = 1

/** Each round uses distinct ids, since many rounds run concurrently in one state. */
function idsOf(round: number): string[] {
  return ['a', 'b', 'c', 'd', 'e'].map(name => `${round}-${name}`)
}

/**
 * Links, which can be repeated without effect, and writes that always change something: a write that changes nothing is
 * not stored, so two workers could apply it in either order.
 * @param links what the round has sent so far; some of it is repeated.
 */
function someChunk(ids: readonly string[], random: () => number, links: CapturedEvent[]): CapturedEvent[] {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const at = () => ({ timestampMs: 1_790_000_000_000 + Math.floor(random() * 100) * 1_000 })
  const link = () => {
    const other = pick(ids)
    const event = pick([
      () => anEvent('$identify', pick(ids), { $anon_distinct_id: other }, at()),
      () => anEvent('$create_alias', pick(ids), { alias: other }, at()),
      () => anEvent('$merge_dangerously', pick(ids), { alias: other }, at()),
      () => anEvent('e', pick(ids), { $process_person_profile: false }, at()),
    ])()
    links.push(event)
    return event
  }
  return Array.from({ length: 1 + Math.floor(random() * 4) }, () => {
    if (links.length > 0 && random() < 0.2) return pick(links)
    const set = { $set: { [pick(['p', 'q'])]: random() } }
    const once = { $set_once: { [`once ${random()}`]: 1 } }
    return pick([
      link,
      link,
      link,
      () => anEvent('e', pick(ids), set, at()),
      () => anEvent('e', pick(ids), once, at()),
      () => anEvent('$identify', pick(ids), { $anon_distinct_id: pick(ids), ...set, ...once }, at()),
    ])()
  })
}

interface Round {
  readonly round: number
  readonly random: () => number
  readonly events: MemoryEventStore
  /** In order of commit. */
  readonly committed: (readonly CapturedEvent[])[]
  conflictCount: number
  readonly signal: AbortSignal
}

/** Yields to others, sometimes for several steps. */
async function stepAside({ random }: Round): Promise<void> {
  for (let turns = Math.floor(random() * 6); turns > 0; turns--) await turn()
}

async function runLoop(
  round: Round,
  stream: 'main' | 'historical',
  state: ChunkStore,
  chunks: readonly (readonly CapturedEvent[])[],
): Promise<void> {
  for (const [index, captured] of chunks.entries()) {
    const records = recordsAt(
      captured.map(event => ({ kind: 'event', event })),
      index * 100,
    )
    const traffic = stream === 'main' ? 'live' : 'import'
    const end = await processOneChunk(
      { stream, traffic, nextOffset: index * 100 + records.length, records, missing: null },
      {
        state: {
          ...state,
          // The rounds share the streams, so no round knows a stream's position.
          commitChunk: async (changes, { fromOffset: _, ...position }) => {
            const result = await state.commitChunk(changes, position)
            if (result === 'committed') round.committed.push(captured)
            else round.conflictCount++
            return result
          },
        },
        events: round.events,
        geoip: null,
        saltOf: noSalts,
        clock: fixedClock(0),
        metrics: createMetrics(),
        logger: createSilentLogger(),
        cursor: stream,
        ownerId: stream,
        logId: 'log',
        random: () => 0,
        signal: round.signal,
        rowCountMax: 2_000,
        textBytesMax: 2 ** 26,
        slowStoreMs: 60_000,
        conflictTryCount: 50,
        enterState: () => {},
        mayHaveBeenTried: () => false,
        position: () => 0,
        onCommitted: () => {},
        faultPoint: () => stepAside(round),
      },
    )
    assert.equal(end, 'committed')
  }
}

async function check({ round, events, committed }: Round, state: ChunkStore): Promise<void> {
  const distinctIds = idsOf(round).map(distinctId => ({ projectId, distinctId }))
  const loaded = await loadWhole(state, { distinctIds, groups: [], projectIds: [projectId] })
  const model = new PersonModel()
  for (const event of committed.flat()) model.apply(modelEvent(event))
  const leadsTo = new Map(loaded.mappings.map(({ distinctId, personUuid }) => [distinctId, personUuid]))
  assert.deepEqual(leadsTo, new Map([...model.ids].map(([id, { person }]) => [id, person.uuid])), 'distinct ids')
  assert.deepEqual(
    new Map(loaded.persons.map(({ uuid, properties, isIdentified }) => [uuid, { properties, isIdentified }])),
    new Map(
      [...model.persons()].map(({ uuid, properties, isIdentified }) => [
        uuid,
        { properties: properties.shown(), isIdentified },
      ]),
    ),
    'persons',
  )
  const overrideOf = new Map([...events.overrides.values()].map(row => [row.distinctId, row]))
  for (const { distinctId, version } of loaded.mappings)
    assert.ok((overrideOf.get(distinctId)?.version ?? 0) <= version, 'no override is ahead of the state')
  assert.equal(events.rows.size, new Set(committed.flat().map(({ uuid }) => uuid)).size)
  for (const row of events.rows.values())
    assert.equal(
      overrideOf.get(row.distinctId)?.personId ?? row.personId,
      model.personIdOf(row.distinctId),
      `the person of the events of ${row.distinctId} are`,
    )
}

/** @throws Error naming the round. @returns how many commits another commit had overtaken. */
export async function runMergeRounds(
  harness: StateHarness,
  options: {
    readonly roundCount: number
    readonly seed: number
    readonly signal: AbortSignal
    log?(line: string): void
  },
): Promise<{ conflictCount: number; eventCount: number }> {
  const { roundCount, seed, signal } = options
  const lanes = [
    { lane: 'main', state: harness.chunkStore },
    { lane: 'historical', state: harness.openAnotherChunkStore() },
  ] as const
  for (const { lane, state } of lanes) await state.claimPosition(lane, lane)
  const sum = { conflictCount: 0, eventCount: 0 }
  for (let first = 0; first < roundCount; first += atOnce) {
    const rounds = Array.from({ length: Math.min(atOnce, roundCount - first) }, (_, index): Round => {
      const round = first + index
      return {
        round,
        random: seededRandom(seed + round),
        events: new MemoryEventStore(),
        committed: [],
        conflictCount: 0,
        signal,
      }
    })
    await Promise.all(
      rounds.map(async round => {
        const links: CapturedEvent[] = []
        const loops = lanes.map(({ lane, state }) => {
          const chunks = Array.from({ length: chunksPerLoop }, () => someChunk(idsOf(round.round), round.random, links))
          return runLoop(round, lane, state, chunks)
        })
        try {
          await Promise.all(loops)
          await check(round, harness.chunkStore)
        } catch (cause) {
          throw new Error(`round ${round.round} of SEED=${seed}`, { cause })
        }
        sum.conflictCount += round.conflictCount
        sum.eventCount += round.committed.flat().length
      }),
    )
    options.log?.(`${first + rounds.length} rounds, ${sum.eventCount} events, ${sum.conflictCount} commits overtaken`)
  }
  const outcomes = await harness.outcomesOf(projectId)
  assert.equal(
    outcomes.reduce((total, { count }) => total + count, 0),
    sum.eventCount,
    'accepted = stored + dropped + rejected',
  )
  return sum
}

/** Registers the test of one adapter. */
export function twoWorkersTest(adapter: string, open: OpenState, roundCount = 50): void {
  test(`two workers on ${adapter} that merge the same ids at the same time leave one valid state`, async (t: TestContext) => {
    const seed = testSeed()
    t.diagnostic(`SEED=${seed}`)
    const stopping = new AbortController()
    t.after(() => stopping.abort())
    const { conflictCount } = await runMergeRounds(await open(t), { roundCount, seed, signal: stopping.signal })
    assert.ok(conflictCount > 0)
  })
}
