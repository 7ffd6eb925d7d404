import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { JsonObject } from '#core/json.ts'
import { noIngestionSettings } from '#core/project.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { anEvent, anImportedEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'

const dayMs = 86_400_000
const noon = 1_790_000_000_000 - (1_790_000_000_000 % dayMs) + dayMs / 2

function called(properties: JsonObject = {}, over: Partial<CapturedEvent> = {}, distinctId = 'ada'): CapturedEvent {
  const all = { $feature_flag: 'beta', $feature_flag_response: true, ...properties }
  return anEvent('$feature_flag_called', distinctId, all, { timestampMs: noon, capturedAtMs: noon, ...over })
}

function deduplicatingWorld() {
  const world = aWorld()
  const [project] = world.state.projects.values()
  const ingestion = { ...noIngestionSettings, deduplicatesFlagCalls: true }
  world.state.projects.set(1, { ...project!, ingestion })
  return {
    ...world,
    async send(t: TestContext, ...events: readonly CapturedEvent[]) {
      const { stop, ended } = await world.process(t, events)
      stop()
      await ended
    },
    stored: () => [...world.events.rows.values()].map(({ uuid }) => uuid),
    deduplicated: () => [...world.events.deduplicated.keys()],
  }
}

describe('a project that deduplicates its flag calls', () => {
  it('stores the first call of a kind and UTC day, within and across chunks, and counts repeats', async t => {
    const world = deduplicatingWorld()
    const first = called()
    const [second, third] = [called({ other: 1 }), called({ $groups: 'no groups' })]
    await world.send(t, first, second)
    await world.send(t, third)
    assert.deepEqual([world.stored(), world.deduplicated()], [[first.uuid], [second.uuid, third.uuid]])
    assert.deepEqual(world.outcomeTotals(), { stored: 1, dropped: 2, rejected: 0 })
    assert.deepEqual(world.events.deduplicated.get(second.uuid), {
      projectId: 1,
      uuid: second.uuid,
      distinctId: 'ada',
      timestampMs: noon,
      chargedAtMs: noon,
      flag: 'beta',
      response: 'true',
    })
  })

  it('counts repeated calls with an invalid flag key under no flag, like stored calls', async t => {
    const world = deduplicatingWorld()
    const $feature_flag = 'é'.repeat(501)
    const repeat = called({ $feature_flag })
    await world.send(t, called({ $feature_flag }), repeat)
    assert.equal(world.events.deduplicated.get(repeat.uuid)?.flag, '')
  })

  it('distinguishes kinds of calls by id, flag, response, rule, variant, experiment, groups and day', async t => {
    const world = deduplicatingWorld()
    const kinds = [
      called(),
      called({}, {}, 'bob'),
      called({ $feature_flag: 'other' }),
      called({ $feature_flag_response: false }),
      called({ $feature_flag_response: null }),
      called({ $feature_flag_response: 'true' }),
      called({ $feature_flag_response: 'true', $feature_flag_has_experiment: true }),
      called({ $feature_flag_has_experiment: true }),
      called({ $feature_flag_rule_id: 'rule 1' }),
      called({ $feature_flag_rule_id: 'rule 2' }),
      called({ $feature_flag_rule_id: 'rule 2', $feature_flag_variant_key: 'control' }),
      called({ $feature_flag_rule_id: 'rule 2', $feature_flag_variant_key: 'test' }),
      called({ $groups: { a: 1, b: 2 } }),
      called({ $groups: { a: 1, b: 3 } }),
      called({}, { timestampMs: noon + dayMs }),
    ]
    const alike = [
      called({ $feature_flag_has_experiment: false, $feature_flag_reason_code: 'targeting_match' }),
      called({ $groups: { b: 2, a: 1 } }),
      anEvent(
        '$feature_flag_called',
        'ada',
        '{"$feature_flag":"beta","$feature_flag_response":true,"$groups":{"a":1.0,"b":2e0}}',
        { timestampMs: noon },
      ),
      called({}, { timestampMs: noon + dayMs / 3 }),
    ]
    await world.send(t, ...kinds)
    await world.send(t, ...alike, ...kinds)
    assert.deepEqual(world.stored().toSorted(), kinds.map(({ uuid }) => uuid).toSorted())
    assert.deepEqual(world.deduplicated().toSorted(), alike.map(({ uuid }) => uuid).toSorted())
  })

  it('recognizes a call that is sent again', async t => {
    const world = deduplicatingWorld()
    const [first, second] = [called(), called()]
    await world.send(t, first, second, first)
    await world.send(t, second, first, { ...second, capturedAtMs: noon + 3 * dayMs })
    assert.deepEqual([world.stored(), world.deduplicated()], [[first.uuid], [second.uuid]])
    assert.equal(world.events.deduplicated.get(second.uuid)?.chargedAtMs, noon, 'charged on its first day')
  })

  it('stores the same calls if the worker dies after inserting the rows', async t => {
    const world = deduplicatingWorld()
    const events = [called(), called(), called({ $feature_flag_response: false })]
    await world.append(events)
    let isKilled = false
    world.start(t, {
      faultPoint: async name => {
        if (name !== 'insert') return
        isKilled = true
        await new Promise(() => {})
      },
    })
    await eventually(() => isKilled)
    await world.send(t)
    assert.deepEqual([world.stored(), world.deduplicated()], [[events[0]!.uuid, events[2]!.uuid], [events[1]!.uuid]])
    assert.deepEqual(world.outcomeTotals(), { stored: 2, dropped: 1, rejected: 0 })
  })

  it('does not deduplicate imports, other events or calls without a flag, and changes no person for a repeat', async t => {
    const world = deduplicatingWorld()
    const odd = [
      called({ $feature_flag: 5 }),
      called({ $feature_flag: 5 }),
      anEvent('e', 'ada', { $feature_flag: 'beta' }),
    ]
    const imports = [1, 2].map(() => anImportedEvent('$feature_flag_called', 'ada', noon, { $feature_flag: 'beta' }))
    await world.send(t, ...odd, called(), called({ $set: { a: 1 } }))
    await world.append(imports, 'import')
    world.start(t)
    await eventually(() => world.isProcessed('historical'))
    assert.equal(world.stored().length, 6)
    assert.equal(world.person('ada')?.properties.a, undefined)
  })

  it('omits repeats because of its setting; a project without that setting stores every call', async t => {
    const world = aWorld()
    await world.process(t, [called(), called()])
    assert.deepEqual([world.events.rows.size, world.events.deduplicated.size], [2, 0])
  })
})
