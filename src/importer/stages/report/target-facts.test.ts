import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { TargetFacts } from './import-report.ts'
import { createTargetWarnings, describeTarget } from './target-facts.ts'

const empty: TargetFacts = {
  askedAt: '2026-01-15T00:00:00.000Z',
  timezone: 'Europe/Berlin',
  dropsLiveOlderThanSeconds: 864_000,
  hasEvents: true,
  overlap: [],
  pendingJobs: [],
  newNames: [],
}
const all = { days: [], acceptsOld: true }
const oldDays = [
  { day: '2026-01-03', count: 1_200 },
  { day: '2026-01-04', count: 34 },
  { day: '2026-01-05', count: 9 },
]
const day = (text: string, live: number, imported: number) => ({ day: text, live, imported, jobs: ['4'] })

describe('the summary of the events that a target already has', () => {
  it('gives no warning if the target contains nothing of the import', () => {
    assert.deepEqual(createTargetWarnings(empty, all), [])
    assert.match(describeTarget(empty, true)[0]!, /zone is Europe\/Berlin/)
  })

  it('warns that an import without --accept-old would be refused, with the number of events that are too old', () => {
    const [warning] = createTargetWarnings(empty, { days: oldDays, acceptsOld: false })
    assert.equal(warning!.code, 'drops_old_events')
    assert.match(warning!.text, /older than 10 days .*will refuse the import\. At least 1,234 events are older\.$/)
    assert.match(createTargetWarnings(empty, { days: [], acceptsOld: false })[0]!.text, /will refuse the import\.$/)
    for (const seconds of [null, 0])
      assert.deepEqual(
        createTargetWarnings({ ...empty, dropsLiveOlderThanSeconds: seconds }, { ...all, acceptsOld: false }),
        [],
      )
  })

  it('does not mention event names if the import has no events', () => {
    assert.deepEqual(describeTarget(empty, true).slice(1), [
      'It has no events on the days of this import.',
      'It has all event names of this import.',
    ])
    assert.deepEqual(describeTarget(empty, false).slice(1), [])
  })

  it('warns separately of live events and of earlier imports, with their days', () => {
    const overlap = [day('2024-02-28', 3, 0), day('2024-02-29', 2, 5), day('2024-03-01', 1, 0), day('2024-03-05', 1, 0)]
    const warnings = createTargetWarnings({ ...empty, overlap }, all)
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['overlap_live', 'overlap_import'],
    )
    assert.match(warnings[0]!.text, /already has 7 live events on 4 days of this import \(2024-02-28 to 2024-03-05\)\./)
    assert.match(
      warnings[1]!.text,
      /already has 5 imported events on 1 day of this import \(2024-02-29\), from the import job 4\./,
    )
  })

  it('warns of new event names unless the whole project is new', () => {
    const newNames = ['Paid', '$set', 'Left', '$identify', '$groupidentify']
    assert.deepEqual(
      createTargetWarnings({ ...empty, newNames }, all).map(({ text }) => text),
      ['The project has no events yet with these names: "Paid", "Left". They are new, or have other names there.'],
    )
    // Imports generate these from unnamed rows, and their names are the same in every project.
    assert.deepEqual(createTargetWarnings({ ...empty, newNames: ['$set', '$create_alias'] }, all), [])
    assert.deepEqual(createTargetWarnings({ ...empty, newNames, hasEvents: false }, all), [])
  })

  it('gives the reason if the target was not queried', () => {
    assert.deepEqual(createTargetWarnings({ notAsked: 'no key' }, all), [])
    assert.deepEqual(describeTarget({ notAsked: 'no key' }, true), [
      'The target was not queried for events that it already has: no key',
    ])
  })
})
