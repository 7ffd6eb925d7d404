import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { RateControl } from './rate-control.ts'

function prepare(rate?: number) {
  const clock = { ms: 1_000_000 }
  const control = new RateControl({ nowMs: () => clock.ms, ...(rate === undefined ? {} : { rate }) })
  /** Waits for the tokens of a batch like the sender does. */
  const send = (events: number): void => {
    for (let waitMs = control.take(events); waitMs > 0; waitMs = control.take(events)) clock.ms += waitMs
  }
  /** Gets this many answers, one a second. */
  const accept = (count: number, answerMs = 20): void => {
    for (let answer = 0; answer < count; answer++) {
      clock.ms += 1_000
      control.accepted(answerMs)
    }
  }
  return { clock, control, send, accept }
}

describe('the rate of sending', () => {
  it('is 1,000 events per second by default', () => assert.equal(prepare().control.rate, 1_000))

  it('never exceeds the limit, whatever the sizes of batches and jumps of the clock', () =>
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: -5_000, max: 20_000 })), {
          minLength: 20,
        }),
        fc.integer({ min: 100, max: 10_000 }),
        (batches, rate) => {
          const { clock, send } = prepare(rate)
          const startMs = clock.ms
          let forwardMs = 0
          let sent = 0
          for (const [events, idleMs] of batches) {
            const beforeMs = clock.ms
            send(events)
            forwardMs += clock.ms - beforeMs + Math.max(0, idleMs)
            clock.ms += idleMs
            sent += events
          }
          // A burst of one second and the last batch may exceed it.
          assert.ok(sent <= (forwardMs / 1_000) * rate + rate + 5_000 + 1, `${sent} in ${clock.ms - startMs}`)
        },
      ),
    ))

  it('grows by a tenth with each clean minute, up to what the service allows', () => {
    const { control, accept } = prepare(1_000)
    accept(60)
    assert.equal(Math.round(control.rate), 1_100)
    accept(60)
    assert.equal(Math.round(control.rate), 1_210)
    control.limitTo(1_250)
    accept(300)
    assert.equal(control.rate, 1_250)
    control.limitTo(400)
    assert.equal(control.rate, 400)
    accept(300)
    control.limitTo(5_000)
    assert.equal(control.rate, 1_250, 'a temporary limit does not lower the rate for later')
  })

  it('halves when the service has a problem, only once for batches that were sent together', () => {
    const { clock, control } = prepare(1_000)
    for (let batch = 0; batch < 4; batch++) control.refused()
    assert.equal(control.rate, 500)
    clock.ms += 10_000
    control.refused()
    assert.equal(control.rate, 250)
    for (let time = 0; time < 20; time++) {
      clock.ms += 10_000
      control.refused()
    }
    assert.equal(control.rate, 50)
  })

  it('halves when answers take twice as long as before, unless they are still quick', () => {
    const { control, accept } = prepare(1_000)
    accept(20, 10)
    accept(20, 300)
    assert.equal(control.rate, 1_000)
    accept(20, 3_000)
    assert.ok(control.rate < 1_000 && control.rate >= 125, String(control.rate))
    accept(60, 3_000)
    assert.ok(control.rate >= 750, 'answers that stay slow become the reference')
  })

  it('returns quickly to its rate before a problem, and stays below that rate if it has become too high', () => {
    const { clock, control, accept } = prepare(8_000)
    for (let time = 0; time < 3; time++) {
      control.refused()
      clock.ms += 5_000
    }
    assert.equal(control.rate, 1_000)
    accept(30)
    assert.equal(control.rate, 8_000)
    accept(29)
    assert.equal(control.rate, 8_000)
    control.refused()
    assert.equal(control.rate, 4_000)
    accept(5)
    assert.equal(control.rate, 6_000)
    control.refused()
    accept(30)
    assert.equal(control.rate, 6_000)
    accept(60)
    assert.equal(Math.round(control.rate), 6_600)
  })

  it('returns just as quickly to the previous rate when the service sets a low limit', () => {
    const { control, accept } = prepare(20_000)
    control.limitTo(500)
    for (let time = 0; time < 2; time++) {
      control.refused()
      accept(6)
    }
    control.limitTo(100_000)
    accept(60)
    assert.equal(control.rate, 15_000)
  })
})
