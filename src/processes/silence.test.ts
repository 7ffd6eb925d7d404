import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { watchForSilence } from './silence.ts'

describe('watchForSilence', () => {
  it('reports each silence once, and none while messages arrive', t => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    let silenceCount = 0
    const watch = watchForSilence(60, () => {
      silenceCount++
    })
    t.after(() => watch.stop())
    for (let heard = 0; heard < 10; heard++) {
      t.mock.timers.tick(59)
      assert.equal(silenceCount, 0)
      watch.heard()
    }
    t.mock.timers.tick(75)
    assert.equal(silenceCount, 1)
    t.mock.timers.tick(600)
    assert.equal(silenceCount, 1, 'once for each')
    watch.heard()
    t.mock.timers.tick(75)
    assert.equal(silenceCount, 2)
  })
})
