import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { JobLedger } from '../job/ledger.ts'
import { estimateHeldLength, Repeats } from './repeats.ts'

const keptMax = 2
const users = ['a', 'b', 'c', 'd', 'e']

/** Whether each record repeats an earlier one. */
function seen(repeats: Repeats, timeUs: number, ids: readonly string[]): boolean[] {
  return ids.map(id => {
    const event = { uuid: id, event: '$set', distinctId: id, timeUs, properties: {} }
    return repeats.find('mixpanel', { timeUs, events: [event], value: {}, textLength: 0 }) !== null
  })
}

function ledgerOf(t: TestContext): JobLedger {
  const ledger = new JobLedger(join(tempDir(t), 'ledger.db'))
  t.after(() => ledger.close())
  return ledger
}

describe('repeated records', () => {
  const record = (id: string, price: number, textLength = 0) => ({
    timeUs: 1,
    events: [{ uuid: id, event: 'paid', distinctId: 'ada', timeUs: 1, properties: { price, currency: 'EUR' } }],
    value: {},
    textLength,
  })
  const hugeText = 1e9
  const places = {
    memory: { max: 1_000, length: 0 },
    'memory, as names': { max: 1_000, length: hugeText },
    disk: { max: 1, length: 0 },
  }
  for (const [place, { max, length }] of Object.entries(places))
    it(`are distinguished by whether their content differs, with contents kept in ${place}`, t => {
      const ledger = ledgerOf(t)
      const repeats = new Repeats(ledger, max)
      const found = [1, 2, 1, 2, 3].map(price => repeats.find('segment', record('m', price, length)))
      assert.deepEqual(found, [null, 'o', 'i', 'i', 'o'])
      for (const id of ['p', 'q']) repeats.find('segment', record(id, 1, length))
      const resumed = new Repeats(ledger, max)
      resumed.restore(repeats.state())
      assert.deepEqual(
        [1, 2].map(price => resumed.find('segment', record('q', price))),
        ['i', 'o'],
      )
    })

  it('take memory by their events too, of which a short row of sums may yield thousands', () => {
    const { events, textLength } = record('m', 1, 40)
    const held = (count: number) => estimateHeldLength({ events: Array(count).fill(events[0]), textLength })
    assert.deepEqual([held(1), held(10_000)], [340, 3_000_040])
  })

  it('are found within one timestamp group, even if it does not fit into memory', t => {
    const repeats = new Repeats(ledgerOf(t), keptMax)
    assert.deepEqual(seen(repeats, 1, [...users, ...users]), [...users.map(() => false), ...users.map(() => true)])
    assert.deepEqual(seen(repeats, 2, [...users, 'c']), [...users.map(() => false), true])
  })

  it('are found by a scan that continues from the state of a stopped one', t => {
    const ledger = ledgerOf(t)
    ledger.begin()
    const first = new Repeats(ledger, keptMax)
    seen(first, 1, ['a', 'b', 'c'])
    const state = first.state()
    assert.equal(state.seen.length, keptMax, 'names on disk are not also in the state')
    ledger.commit()
    ledger.begin()
    seen(first, 1, ['d'])
    ledger.rollback()
    const second = new Repeats(ledger, keptMax)
    second.restore(state)
    assert.deepEqual(seen(second, 1, users), [true, true, true, false, false])
    assert.deepEqual(
      seen(second, 2, users),
      users.map(() => false),
    )
  })
})
