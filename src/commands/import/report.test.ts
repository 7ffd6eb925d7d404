import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Rehearsal } from '#importer/stages/report/import-report.ts'
import type { Sample } from '#importer/stages/report/samples.ts'
import { describeNoSamples } from './report.ts'

const sample = (of: string, day: string | null): Sample => ({ of, day, object: 'raw', line: 1, source: '{}' })
const samples = [sample('Paid', '2024-05-02'), sample('Paid', '2024-05-01'), sample('Left', '2024-05-01')]
const report = { days: [{ day: '2024-06-01', count: 1_200, events: {} }] } as unknown as Rehearsal

it('a request for missing samples gets the days and names that have some', () => {
  assert.equal(
    describeNoSamples({ day: '2024-06-01' }, samples, report),
    'There are no samples of the day 2024-06-01. The day has 1,200 events, but only a few records are sampled. There are samples of: 2024-05-01, 2024-05-02.',
  )
  assert.equal(
    describeNoSamples({ of: 'Left', day: '2024-05-02' }, samples, report),
    'There are no samples of Left of the day 2024-05-02. There are samples of: 2024-05-01.',
  )
  assert.equal(
    describeNoSamples({ of: 'Lft' }, samples, report),
    'There are no samples of Lft. There are samples of: Paid, Left.',
  )
})
