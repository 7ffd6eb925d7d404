import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { encodeRecording } from '#core/log/recording-codec.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { aCapturedEvent, aCapturedRecording } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'

type World = ReturnType<typeof aWorld>

async function appendRecordings(world: World, ...recordings: readonly ReturnType<typeof aCapturedRecording>[]) {
  for (const recording of recordings) await world.log.append('live', encodeRecording(recording))
}

const outcomesOf = (world: World) =>
  world.state.outcomes
    .map(({ lane, outcome, reason, count }) => `${lane} ${outcome} ${reason} ${count}`)
    .sort((a, b) => a.localeCompare(b))

describe('processing recordings', () => {
  it('stores them along with the events of their chunk, counts them in their own lane, and creates no persons', async t => {
    const world = aWorld()
    await appendRecordings(world, aCapturedRecording(1))
    await world.append([aCapturedEvent(1)])
    await appendRecordings(world, aCapturedRecording(2, { distinctId: 'nobody else' }))
    world.start(t)
    await eventually(() => world.isProcessed())
    const stored = [...world.events.recordings.values()]
    assert.deepEqual(
      stored.map(({ uuid }) => uuid.slice(-1)),
      ['1', '2'],
    )
    assert.deepEqual([...stored[0]!.items], [...aCapturedRecording(1).items])
    assert.equal(world.events.rows.size, 1)
    assert.equal(world.person('nobody else'), undefined)
    assert.deepEqual(outcomesOf(world), ['main stored  1', 'replay stored  2'])
    const { values } = await world.metrics.eventsProcessed.get()
    assert.equal(values.find(({ labels }) => labels.lane === 'replay' && labels.outcome === 'stored')?.value, 2)
  })

  it('stores each recording once even if the worker dies after the rows were written', async t => {
    const world = aWorld()
    await appendRecordings(world, aCapturedRecording(1), aCapturedRecording(2))
    await world.startAndKill(t, 'insert')
    world.start(t)
    await eventually(() => world.isProcessed())
    assert.equal(world.events.recordings.size, 2)
    assert.deepEqual(outcomesOf(world), ['replay stored  2'])
  })

  it('drops recordings of a project that no longer exists', async t => {
    const world = aWorld()
    await appendRecordings(world, aCapturedRecording(1, { projectId: 9 }), aCapturedRecording(2))
    world.start(t)
    await eventually(() => world.isProcessed())
    assert.equal(world.events.recordings.size, 1)
    assert.deepEqual(outcomesOf(world), ['replay dropped unknown_project 1', 'replay stored  1'])
  })

  it('stores recordings that the event store refuses as rejects, and counts them', async t => {
    const world = aWorld()
    world.events.refusesRecording = ({ uuid }) => uuid.endsWith('2')
    await appendRecordings(world, aCapturedRecording(1), aCapturedRecording(2))
    world.start(t)
    await eventually(() => world.isProcessed())
    assert.deepEqual(outcomesOf(world), ['replay rejected row_refused 1', 'replay stored  1'])
    const [reject] = world.events.rejected.values()
    assert.deepEqual([reject?.lane, reject?.reason, reject?.distinctId], ['replay', 'row_refused', 'ada'])
    assert.equal(JSON.parse(reject!.body).session_id, 'session-1')
  })

  it('reads at most as many recordings at once as fit into a chunk, and an oversized recording on its own', async t => {
    const world = aWorld()
    const large = new Uint8Array(3_000)
    await appendRecordings(
      world,
      ...[1, 2, 3, 4, 5].map(n => aCapturedRecording(n, { items: n === 3 ? new Uint8Array(9_000) : large })),
    )
    const chunkSizes: number[] = []
    const { insert } = world.events
    world.events.insert = rows => {
      chunkSizes.push(rows.recordings.length)
      return insert.call(world.events, rows)
    }
    world.start(t, { limits: { bytesMax: 7_000 } })
    await eventually(() => world.isProcessed())
    assert.deepEqual(chunkSizes, [2, 1, 2])
  })
})
