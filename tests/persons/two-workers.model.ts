// Two chunk loops on one state, each with a connection of its own, whose events link, merge and describe the same few
// distinct ids, some of them sent more than once. Wherever one overtakes the other, the state ends as if the chunks had
// been committed one after the other, in one order or another, and every event leads to the person that its distinct id has in that state.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { CapturedEvent, LogLane } from '#core/events/captured-event.ts'
import type { ChunkStore, LoadedChunk } from '#ports/chunk-store.ts'
import { processOneChunk } from '#services/process-one-chunk.ts'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { anEvent } from '../support/apply-events.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { loadWhole } from '../support/load-chunk.ts'
import { MemoryEventStore } from '../support/memory-event-store.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import type { OpenState, StateHarness } from '../support/state-harness.ts'
import { PersonModel } from './person-model.ts'
import { modelEvent } from './person-streams.ts'

const chunksPerLoop = 3
/** Rounds under way at once. */
const atOnce = 50
const projectId = 1

/** The ids of a round are its own: many rounds run at once in one state. */
function idsOf(round: number): string[] {
  return ['a', 'b', 'c', 'd', 'e'].map(name => `${round}-${name}`)
}

/** @param sent what the round has sent so far: some of it comes again. */
function someChunk(ids: readonly string[], random: () => number, sent: CapturedEvent[]): CapturedEvent[] {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  return Array.from({ length: 1 + Math.floor(random() * 4) }, () => {
    if (sent.length > 0 && random() < 0.15) return pick(sent)
    // Never the same value twice: a $set that changes nothing writes nothing, and could be told of in either order.
    const key = pick(['p', 'q'])
    const set = { $set: { [key]: random() } }
    const at = { timestampMs: 1_790_000_000_000 + Math.floor(random() * 100) * 1_000 }
    const other = pick(ids)
    const event = pick([
      () => anEvent('e', pick(ids), set, at),
      () => anEvent('e', pick(ids), { $set_once: { [key]: random() }, $unset: [pick(['p', 'q'])] }, at),
      () => anEvent('e', pick(ids), { $process_person_profile: false }, at),
      () => anEvent('$identify', pick(ids), { $anon_distinct_id: other, ...set }, at),
      () => anEvent('$identify', pick(ids), { $anon_distinct_id: other }, at),
      () => anEvent('$create_alias', pick(ids), { alias: other }, at),
      () => anEvent('$merge_dangerously', pick(ids), { alias: other, $unset: [key] }, at),
    ])()
    sent.push(event)
    return event
  })
}

interface Committed {
  readonly lane: LogLane
  readonly events: readonly CapturedEvent[]
}

interface Round {
  readonly round: number
  readonly random: () => number
  readonly events: MemoryEventStore
  /** In the order of their commits. */
  readonly committed: Committed[]
  conflictCount: number
  readonly signal: AbortSignal
}

/** Lets the others go first, now and then by some steps. */
async function stepAside({ random }: Round): Promise<void> {
  for (let turns = Math.floor(random() * 6); turns > 0; turns--) await turn()
}

async function runLoop(
  of: Round,
  lane: LogLane,
  state: ChunkStore,
  chunks: readonly (readonly CapturedEvent[])[],
): Promise<void> {
  for (const [index, captured] of chunks.entries()) {
    const records = captured.map(event => ({ kind: 'event' as const, event }))
    const end = await processOneChunk(
      { lane, firstOffset: index * 100, nextOffset: index * 100 + records.length, records },
      {
        state: {
          ...state,
          // The rounds share the lanes, so none of them knows where one stands.
          commitChunk: async (changes, { fromOffset: _, ...position }) => {
            const result = await state.commitChunk(changes, position)
            if (result === 'committed') of.committed.push({ lane, events: captured })
            else of.conflictCount++
            return result
          },
        },
        events: of.events,
        geoip: null,
        clock: fixedClock(0),
        metrics: createMetrics(),
        logger: silentLogger(),
        ownerId: lane,
        random: () => 0,
        signal: of.signal,
        rowCountMax: 2_000,
        textBytesMax: 2 ** 26,
        slowStoreMs: 60_000,
        enterState: () => {},
        mayHaveBeenTried: () => false,
        position: () => 0,
        onCommitted: () => {},
        faultPoint: () => stepAside(of),
      },
    )
    assert.equal(end, 'committed')
  }
}

/**
 * The order of the commits, and every other one in which each worker's chunks stay in their order: an event that changes
 * nothing writes nothing, so its chunk may have been computed before a commit that came first.
 */
function ordersOf(committed: readonly Committed[]): CapturedEvent[][] {
  const weave = (a: readonly Committed[], b: readonly Committed[]): (readonly Committed[])[] => {
    if (a.length === 0 || b.length === 0) return [[...a, ...b]]
    const [fromA, fromB] = [weave(a.slice(1), b), weave(a, b.slice(1))]
    return [...fromA.map(rest => [a[0]!, ...rest]), ...fromB.map(rest => [b[0]!, ...rest])]
  }
  const of = Map.groupBy(committed, ({ lane }) => lane)
  return [committed, ...weave(of.get('main') ?? [], of.get('historical') ?? [])].map(order =>
    order.flatMap(({ events }) => events),
  )
}

async function check(of: Round, state: ChunkStore): Promise<void> {
  const distinctIds = idsOf(of.round).map(distinctId => ({ projectId, distinctId }))
  const loaded = await loadWhole(state, { distinctIds, groups: [], projectIds: [projectId] })
  const failures: unknown[] = []
  for (const order of ordersOf(of.committed))
    try {
      checkAgainst(order, of, loaded)
      return
    } catch (cause) {
      failures.push(cause)
    }
  throw failures[0]
}

function checkAgainst(order: readonly CapturedEvent[], { events }: Round, loaded: LoadedChunk): void {
  const model = new PersonModel()
  for (const event of order) model.apply(modelEvent(event))
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
  assert.equal(events.rows.size, new Set(order.map(({ uuid }) => uuid)).size)
  for (const row of events.rows.values())
    assert.equal(
      overrideOf.get(row.distinctId)?.personId ?? row.personId,
      model.personIdOf(row.distinctId),
      `whose the events of ${row.distinctId} are`,
    )
}

/** @throws Error naming the round. @returns how many commits another one had overtaken. */
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
        const sent: CapturedEvent[] = []
        const loops = lanes.map(({ lane, state }) => {
          const chunks = Array.from({ length: chunksPerLoop }, () => someChunk(idsOf(round.round), round.random, sent))
          return runLoop(round, lane, state, chunks)
        })
        try {
          await Promise.all(loops)
          await check(round, harness.chunkStore)
        } catch (cause) {
          throw new Error(`round ${round.round} of SEED=${seed}`, { cause })
        }
        sum.conflictCount += round.conflictCount
        sum.eventCount += round.committed.flatMap(({ events }) => events).length
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
  test(`two workers on ${adapter} that merge the same ids at once leave one valid state`, async (t: TestContext) => {
    const seed = testSeed()
    t.diagnostic(`SEED=${seed}`)
    const stopping = new AbortController()
    t.after(() => stopping.abort())
    const { conflictCount } = await runMergeRounds(await open(t), { roundCount, seed, signal: stopping.signal })
    assert.ok(conflictCount > 0)
  })
}
