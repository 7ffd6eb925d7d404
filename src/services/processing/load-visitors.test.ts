import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { aCapturedEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'

const hash = 'DhKalSaWowNbjg/pDrlg9A'
const salt = Buffer.from('AQIDBAUGBwgJCgsMDQ4PEA==', 'base64')

function anEvent(n: number, day: string, name = '$pageview') {
  const isSentinel = name !== '$identify'
  return aCapturedEvent(n, {
    name,
    distinctId: isSentinel ? `cookieless_${hash}` : 'ada@example.com',
    visitor: { stateful: { hash, day, isSentinel }, location: null },
  })
}

function visit(day: string) {
  return [anEvent(1, day), anEvent(2, day, '$identify'), anEvent(3, day)]
}

describe('a chunk with cookieless visitors', () => {
  it('merges a visitor with the person that the visitor identifies as, but does not merge later visitors', async t => {
    const world = aWorld()
    await world.process(t, visit('2026-11-01'), { saltOf: () => salt })
    const ids = [...world.events.rows.values()].map(({ distinctId }) => distinctId)
    assert.deepEqual(ids, [`cookieless_${hash}`, 'ada@example.com', 'cookieless_rY7x6ZnJjtPfO94RTQlcUA'])
    assert.equal(world.person(ids[0]!)?.uuid, world.person('ada@example.com')!.uuid)
    assert.equal(world.person('ada@example.com')!.isIdentified, true)
    assert.notEqual(world.person(ids[2]!)!.uuid, world.person('ada@example.com')!.uuid)
  })

  it('assigns rerouted events to the visitor as it is currently known, and does not change the visitor', async t => {
    const world = aWorld()
    await world.process(t, visit('2026-11-01'), { saltOf: () => salt })
    const before = structuredClone([...world.state.identifies, ...world.state.sessions])
    const late = [4, 5].map(n => anEvent(n, '2026-11-01', n === 4 ? '$identify' : '$pageview'))
    await world.append(
      late.map(event => ({ ...event, lane: 'historical', historicalMigration: true, importJobId: 1 }) as const),
      'import',
    )
    await eventually(() => world.isProcessed('historical'))
    const row = [...world.events.rows.values()].find(({ uuid }) => uuid === late[0]!.uuid)!
    assert.equal(JSON.parse(row.propertiesJson).$anon_distinct_id, 'cookieless_rY7x6ZnJjtPfO94RTQlcUA')
    assert.deepEqual([...world.state.identifies, ...world.state.sessions], before)
  })

  it('waits while the salts are unavailable', async t => {
    const world = aWorld()
    await world.append(visit('2026-11-01'))
    let asked = 0
    const { processor } = world.start(t, {
      saltOf: async () => {
        if (++asked < 3) throw new PortError('cookieless-salts', 'unavailable')
        return salt
      },
    })
    await eventually(() => processor.state() === 'waiting_for_state')
    assert.equal(world.events.rows.size, 0)
    await eventually(() => world.isProcessed())
    assert.deepEqual([asked, world.events.rows.size], [3, 3])
  })

  it('requests no salt for a day that has closed, and still stores its events', async t => {
    const world = aWorld()
    await world.append(visit('2026-10-20'))
    let asked = 0
    world.start(t, {
      saltOf: () => {
        asked++
        return salt
      },
    })
    await eventually(() => world.isProcessed())
    assert.deepEqual([asked, world.events.rows.size], [0, 3])
  })
})
