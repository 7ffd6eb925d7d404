import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { JsonObject } from '#core/json.ts'
import { noIngestionSettings } from '#core/project.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { keyOf } from '../../../tests/support/memory/memory-state.ts'
import { anEvent, anImportedEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'
import type { FaultPoint } from './chunk-deps.ts'

const noon = 1_790_000_000_000

function called(flag: unknown, timestampMs: number, over: Partial<CapturedEvent> = {}): CapturedEvent {
  const properties = { $feature_flag: flag, $feature_flag_response: true } as JsonObject
  return anEvent('$feature_flag_called', 'ada', properties, { timestampMs, capturedAtMs: noon, ...over })
}

const keyOfCall = (key: string) => JSON.parse(key)[1] as string

describe('called flags', () => {
  it('are stored with the time of their latest live call, which is never in the future', async t => {
    const world = aWorld()
    await world.append([
      called('a', noon - 5),
      called('a', noon - 3),
      called('a', noon - 4),
      called('ahead', noon + 60_000),
      anEvent('$pageview', 'ada', { $feature_flag: 'other' }, { timestampMs: noon, capturedAtMs: noon }),
      called(7, noon),
      called('with\0nul', noon),
      called('x'.repeat(401), noon),
      called('x'.repeat(400), noon),
    ])
    await world.append(
      [
        anImportedEvent('$feature_flag_called', 'ada', noon, { $feature_flag: 'a' }),
        anImportedEvent('$feature_flag_called', 'ada', noon, { $feature_flag: 'imported' }),
      ],
      'import',
    )
    world.start(t)
    await eventually(async () => (await world.isProcessed()) && (await world.isProcessed('historical')))
    assert.deepEqual(Object.fromEntries(Array.from(world.state.lastCalls, ([key, at]) => [keyOfCall(key), at])), {
      a: noon - 3,
      ahead: noon,
      ['x'.repeat(400)]: noon,
    })
  })

  it('are also stored for calls that are deduplicated', async t => {
    const world = aWorld()
    const [project] = world.state.projects.values()
    world.state.projects.set(1, { ...project!, ingestion: { ...noIngestionSettings, deduplicatesFlagCalls: true } })
    await world.process(t, [called('a', noon - 5), called('a', noon - 3)])
    assert.equal(world.events.deduplicated.size, 1)
    assert.equal(world.state.lastCalls.get(keyOf(1, 'a')), noon - 3)
  })

  it('are not stored for calls that are dropped', async t => {
    const world = aWorld()
    await world.process(t, [called('a', noon, { projectId: 99 })])
    assert.equal(world.state.lastCalls.size, 0)
  })

  const steps: FaultPoint[] = ['read', 'load', 'apply', 'insert', 'commit']
  for (const crashAfter of steps)
    it(`have the time of exactly their last call even if the worker dies after ${crashAfter}`, async t => {
      const world = aWorld()
      await world.append([called('a', noon - 5), called('b', noon - 9)])
      const first = await world.startAndKill(t, crashAfter)
      assert.equal(world.state.lastCalls.size, crashAfter === 'commit' ? 2 : 0)
      world.start(t)
      await eventually(() => world.isProcessed())
      assert.deepEqual(
        Array.from(world.state.lastCalls, ([key, at]) => [keyOfCall(key), at]),
        [
          ['a', noon - 5],
          ['b', noon - 9],
        ],
      )
      first.stop()
    })
})
