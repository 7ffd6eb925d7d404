import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Sample } from '#importer/stages/report/samples.ts'
import { explainMissingSamples } from './report.ts'

const sample = (of: string, day: string): Sample => ({ of, day, object: 'raw', line: 1, source: '{}' })
const samples = [sample('Paid', '2024-05-02'), sample('Paid', '2024-05-01'), sample('Left', '2024-05-01')]

it('a request for samples that do not exist is answered with the days and names for which samples exist', () => {
  const none = ': only a few records are sampled. There are samples of: '
  for (const [asked, answer] of [
    [{ day: '2024-06-01' }, `of the day 2024-06-01${none}2024-05-01, 2024-05-02.`],
    [{ of: 'Left', day: '2024-05-02' }, `of Left of the day 2024-05-02${none}2024-05-01.`],
    [{ of: 'Lft' }, `of Lft${none}Paid, Left.`],
  ] as const)
    assert.equal(explainMissingSamples(asked, samples), `There are no samples ${answer}`)
})
