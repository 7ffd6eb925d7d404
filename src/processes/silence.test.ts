import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventually } from '../../tests/support/eventually.ts'
import { watchSilence } from './silence.ts'

describe('watchSilence', () => {
  it('tells of every silence, and of none while something is heard', async t => {
    let silenceCount = 0
    const watch = watchSilence(60, () => {
      silenceCount++
    })
    t.after(() => watch.stop())
    const speaking = setInterval(() => watch.heard(), 5)
    await new Promise(resolve => setTimeout(resolve, 150))
    assert.equal(silenceCount, 0)
    clearInterval(speaking)
    await eventually(() => silenceCount === 1)
    watch.heard()
    await eventually(() => silenceCount === 2)
  })
})
