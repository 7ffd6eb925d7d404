import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { seededRandom, testSeed } from '../../../tests/support/seeded-random.ts'
import { HotKeys } from './hot-keys.ts'

const second = (n: number) => 1_790_000_000_000 + n * 1000

describe('hot keys', () => {
  it('are those that send more than the limit in the last 60 s, separately for each project', () => {
    const keys = new HotKeys({ eventsPerMinute: 3 })
    const answers = [0, 10, 20, 30, 59].map(n => keys.isHot(1, 'ada', second(n)))
    assert.deepEqual(answers, [false, false, false, true, true])
    assert.equal(keys.isHot(2, 'ada', second(59)), false)
    assert.equal(keys.isHot(1, 'bob', second(59)), false)
    assert.equal(keys.isHot(1, 'ada', second(85)), false, 'the events at 30, 59 and 85 count')
    assert.equal(keys.isHot(1, 'ada', second(86)), true)
    assert.equal(keys.isHot(1, 'ada', second(500)), false)
  })

  it('are the same as those found by a full list of times, with random input', t => {
    const seed = testSeed()
    t.diagnostic(`SEED=${seed}`)
    const random = seededRandom(seed)
    const keys = new HotKeys({ eventsPerMinute: 20 })
    const times: number[] = []
    for (let now = 0, n = 0; n < 5_000; n++) {
      now += Math.floor(random() ** 4 * 40)
      times.push(now)
      const count = times.filter(time => time > now - 60).length
      assert.equal(keys.isHot(1, 'ada', second(now) + Math.floor(random() * 1000)), count > 20)
    }
  })

  it('are still found after the clock was set back', () => {
    const keys = new HotKeys({ eventsPerMinute: 2 })
    for (const [n, isHot] of [
      [100, false],
      [50, false],
      [10, true],
    ] as const)
      assert.equal(keys.isHot(1, 'ada', second(n)), isHot)
  })

  it('use bounded memory however many ids there are, and keep the busiest ids', () => {
    const keys = new HotKeys({ eventsPerMinute: 1_000, keyCountMax: 100 })
    let hotCount = 0
    for (let n = 0; n < 200_000; n++) {
      if (keys.isHot(1, `id ${n}`, second(0))) hotCount++
      if (n % 10 === 0 && keys.isHot(1, 'ada', second(0))) hotCount++
      assert.ok(keys.keyCount <= 100)
    }
    assert.ok(hotCount > 18_500 && hotCount <= 19_000, `${hotCount} of 19,000`)
  })

  it('never include a quiet id', () => {
    const keys = new HotKeys({ eventsPerMinute: 5, keyCountMax: 10 })
    for (let n = 0; n < 10_000; n++) assert.equal(keys.isHot(1, `id ${n % 2_000}`, second(n % 3_000)), false)
  })
})
