import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { ImportJobState } from '#core/imports/import-job.ts'
import type { RowRange } from '#core/processing/row-ranges.ts'
import { createEventStoreRestorer, type EventStoreRestorerOptions } from './restore-event-store.ts'

const rangeOf = (table: string, partition: string): RowRange => ({
  ...{ table, tableId: 't', partition, from: 1, to: 9, oldestMs: 1_000, newestMs: 2_000 },
})

/** The keeper of an event store that has lost all of these ranges. */
function keeperWithout(held: readonly RowRange[], stateOf: Readonly<Record<number, ImportJobState>>) {
  return createEventStoreRestorer({
    marks: {
      findEventStoreMark: async () => ({ id: 'm', positions: {}, held, missing: [] }),
      findImportJob: async (id: number) => (stateOf[id] === undefined ? null : { state: stateOf[id], step: null }),
      listEmptiedRanges: async () => [],
    },
    events: { findRowRanges: async () => ({ isMarked: true, ranges: [] }) },
  } as unknown as EventStoreRestorerOptions)
}

it('missing rows of an import job that was discarded or no longer exists are not reported', async () => {
  const held = ['0-202611', '5-202611', '6-202611', '7-202611'].map(partition => rangeOf('events', partition))
  const lost = await keeperWithout(held, { 5: 'published', 6: 'discarded' }).findLostSpans()
  assert.deepEqual(lost, held.slice(0, 2))
})

it('erasures unknown to the state are looked for only if rows were written since the store was last checked', async () => {
  const held = [
    { ...rangeOf('events', '0-202611'), from: 1, to: 4 },
    { ...rangeOf('events', '0-202611'), from: 5, to: 9 },
  ]
  const raisedTo = async (ranges: readonly RowRange[]) => {
    const raised: object[] = []
    const keeper = createEventStoreRestorer({
      marks: {
        findEventStoreMark: async () => ({ id: 'm', positions: {}, held, missing: [] }),
        raiseErasureCounts: async (counts: object) => void raised.push(counts),
      },
      events: {
        findRowRanges: async () => ({ isMarked: true, ranges }),
        findErasureCounts: async () => [{ projectId: 1, count: 25 }],
      },
      log: { listStreams: async () => [] },
    } as unknown as EventStoreRestorerOptions)
    await keeper.checkAtStart(new AbortController().signal)
    return raised
  }
  assert.deepEqual(await raisedTo([rangeOf('events', '0-202611')]), [])
  const later = [...held, { ...rangeOf('events', '0-202611'), from: 10, to: 10 }]
  assert.deepEqual(await raisedTo(later), [[{ projectId: 1, count: 25 }]])
})
