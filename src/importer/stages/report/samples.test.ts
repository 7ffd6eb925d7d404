import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { StagedOutcome } from '#importer/job/staged-part.ts'
import { Samples } from './samples.ts'

it('samples cover each kind of outcome, and include a few more records with events for every day', () => {
  const samples = new Samples()
  const offer = (part: string, result: object, line: number) => {
    samples.offer(part, {
      raw: { object: 'raw', line, byte: 0 },
      source: () => ({ text: '{}' }),
      result,
    } as unknown as StagedOutcome)
  }
  const event = { kind: 'events', events: [] }
  for (let line = 0; line < 20; line++) offer('2024-04-30/0', { kind: 'skipped', reason: 'filtered' }, line)
  for (const day of ['2024-05-01', '2024-05-02', '2024-05-03'])
    for (let line = 0; line < 20; line++) offer(`${day}/0`, event, line)
  for (let line = 0; line < 20; line++) offer('unknown-day/0', event, line)
  const perDay = new Map<string | null, number>()
  for (const { day } of samples.all) perDay.set(day, (perDay.get(day) ?? 0) + 1)
  assert.deepEqual(
    [...perDay],
    [
      ['2024-04-30', 5],
      ['2024-05-01', 5],
      ['2024-05-02', 2],
      ['2024-05-03', 2],
    ],
  )
  for (let day = 0; day < 3_000; day++) offer(`day ${day}/0`, event, 0)
  assert.ok(samples.all.length < 1_200, 'not each of very many days has samples')
})
