import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { JobDatabase } from '../job/job-database.ts'
import { JobFolder } from '../job/job-folder.ts'
import { JobLedger } from '../job/ledger.ts'
import { estimateHeldRecordLength, Repeats } from './repeats.ts'

const keptMax = 2
const users = ['a', 'b', 'c', 'd', 'e']

/** Whether each record repeats an earlier one. */
function seen(repeats: Repeats, timeUs: number, ids: readonly string[]): boolean[] {
  return ids.map(id => {
    const event = { uuid: id, event: '$set', distinctId: id, timeUs, properties: {} }
    return repeats.find('mixpanel', { timeUs, events: [event], value: {}, textLength: 0 }) !== null
  })
}

function databaseOf(t: TestContext): JobDatabase {
  const database = new JobDatabase(new JobFolder(tempDir(t)))
  t.after(() => database.close())
  return database
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
      const ledger = new JobLedger(databaseOf(t))
      const repeats = new Repeats(ledger, max)
      const found = [1, 2, 1, 2, 3].map(price => repeats.find('segment', record('m', price, length)))
      assert.deepEqual(found, [
        null,
        'differs_in_source',
        'duplicate_in_source',
        'duplicate_in_source',
        'differs_in_source',
      ])
      for (const id of ['p', 'q']) repeats.find('segment', record(id, 1, length))
      const resumed = new Repeats(ledger, max)
      resumed.restore(repeats.state())
      assert.deepEqual(
        [1, 2].map(price => resumed.find('segment', record('q', price))),
        ['duplicate_in_source', 'differs_in_source'],
      )
    })

  it('count towards the memory limit with all their events, since a short row of totals may yield thousands', () => {
    const { events, textLength } = record('m', 1, 40)
    const held = (count: number) => estimateHeldRecordLength({ events: Array(count).fill(events[0]), textLength })
    assert.deepEqual([held(1), held(10_000)], [340, 3_000_040])
  })

  it('are found within one timestamp group, even if it does not fit into memory', t => {
    const repeats = new Repeats(new JobLedger(databaseOf(t)), keptMax)
    assert.deepEqual(seen(repeats, 1, [...users, ...users]), [...users.map(() => false), ...users.map(() => true)])
    assert.deepEqual(seen(repeats, 2, [...users, 'c']), [...users.map(() => false), true])
  })

  it('are found by a scan that continues a stopped scan', t => {
    const database = databaseOf(t)
    const ledger = new JobLedger(database)
    database.begin()
    const first = new Repeats(ledger, keptMax)
    seen(first, 1, ['a', 'b', 'c'])
    const state = first.state()
    assert.equal(state.seen.length, keptMax, 'names on disk are not also in the state')
    database.commit()
    database.begin()
    seen(first, 1, ['d'])
    database.sql.exec('ROLLBACK')
    const second = new Repeats(ledger, keptMax)
    second.restore(state)
    assert.deepEqual(seen(second, 1, users), [true, true, true, false, false])
    assert.deepEqual(
      seen(second, 2, users),
      users.map(() => false),
    )
  })
})
