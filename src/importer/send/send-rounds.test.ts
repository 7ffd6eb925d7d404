import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { importBatchEventsMax } from '#core/imports/import-job.ts'
import { runs } from '../../../tests/support/nightly.ts'
import type { StagedOutcome } from '../job/staged-part.ts'
import { batchBytesMax, divideIntoSendRounds, type Round, type RoundOptions } from './send-rounds.ts'

const dayUs = 86_400_000_000

/** A line with one event for each person. @param padding bytes that are added to each event. */
function lineOf(line: number, persons: readonly number[], { day = 0, padding = 0 } = {}): StagedOutcome {
  const events = persons.map((person, at) => ({
    uuid: `${line}-${at}`,
    event: 'e',
    distinctId: `p${person}`,
    timeUs: 20_000 * dayUs + day * dayUs,
    properties: { line, padding: '☂'.repeat(padding / 3) },
  }))
  const result = { kind: 'events', events, notes: [], dropped: [] } as const
  const source = () => ({ text: '', sha256: '', unreadableBytes: null })
  return { line, raw: { object: 'o', line, byte: 0 }, textBytes: 0, source, result }
}

async function roundsFor(lines: readonly StagedOutcome[], over: Partial<RoundOptions> = {}): Promise<Round[]> {
  const marks = { source: 's', jobId: '1' }
  return Array.fromAsync(
    divideIntoSendRounds(lines, { marks, lanes: 3, laneEventsMin: 1, personOf: id => id, ...over }),
  )
}

const allEvents = (round: Round) => round.lanes.flat().flatMap(({ events }) => events)

describe('the sending rounds of a part', () => {
  const shape = fc.array(
    fc.record({
      persons: fc.array(fc.nat(6), { maxLength: 4 }),
      day: fc.nat(3),
      padding: fc.constantFrom(0, 30, 90_000, 600_000, 1_200_000),
    }),
    { maxLength: 40 },
  )

  it('contain each event once, in batches of one day and limited size, with each person’s events in order in one lane', () =>
    fc.assert(
      fc.asyncProperty(shape, fc.integer({ min: 1, max: 4 }), async (shapes, lanes) => {
        const sorted = shapes.toSorted((a, b) => a.day - b.day)
        const lines = sorted.map(({ persons, ...rest }, at) => lineOf(at + 1, persons, rest))
        const rounds = await roundsFor(lines, { lanes })
        const uuids = rounds.flatMap(round => [...allEvents(round), ...round.tooLarge]).map(({ event }) => event.uuid)
        const expected = lines.flatMap(({ result }) => (result.kind === 'events' ? result.events : [])).map(e => e.uuid)
        assert.deepEqual(uuids.toSorted(), expected.toSorted())
        let line = 0
        for (const round of rounds) {
          assert.equal(round.fromLine, line + 1)
          line = round.toLine
          assert.ok(new Set(round.lanes.flat().map(({ day }) => day)).size <= 2)
          const laneOf = new Map<string, number>()
          for (const [lane, batches] of round.lanes.entries())
            for (const { events, day } of batches) {
              assert.ok(events.length <= importBatchEventsMax)
              const bytes = Buffer.byteLength(JSON.stringify({ batch: events.map(({ text }) => JSON.parse(text)) }))
              assert.ok(bytes <= batchBytesMax, String(bytes))
              for (const { event } of events) {
                assert.equal(new Date(event.timeUs / 1_000).toISOString().slice(0, 10), day)
                assert.equal(laneOf.get(event.distinctId) ?? lane, lane)
                laneOf.set(event.distinctId, lane)
              }
              const order = events.map(({ outcome }) => outcome.line)
              assert.deepEqual(
                order,
                order.toSorted((a, b) => a - b),
              )
            }
        }
        assert.equal(line, lines.length)
      }),
      { numRuns: runs(15, 60) },
    ))

  it('exclude from their lanes events that are larger than the service accepts', async () => {
    const [round] = await roundsFor([lineOf(1, [1]), lineOf(2, [2], { padding: 1_200_000 })])
    assert.deepEqual(
      round!.tooLarge.map(({ event }) => event.uuid),
      ['2-0'],
    )
    assert.equal(round!.events, 1)
  })

  it('include lines without events, so that sending moves past them', async () => {
    const skipped = (line: number): StagedOutcome => ({
      ...lineOf(line, []),
      result: { kind: 'skipped', reason: 'filtered' },
    })
    const rounds = await roundsFor(Array.from({ length: 3 }, (_, at) => skipped(at + 1)))
    assert.deepEqual(
      rounds.map(({ fromLine, toLine, counts }) => [fromLine, toLine, counts.skipped]),
      [[1, 3, 3]],
    )
  })

  it('use more lanes if they have more events or bytes', async () => {
    const lines = Array.from({ length: 40 }, (_, at) => lineOf(at + 1, [at]))
    for (const [laneEventsMin, lanes] of [
      [1_000, 1],
      [40, 1],
      [20, 2],
      [1, 3],
    ] as const) {
      const [round] = await roundsFor(lines, { laneEventsMin })
      assert.equal(round!.lanes.length, lanes)
    }
    const large = Array.from({ length: 40 }, (_, at) => lineOf(at + 1, [at], { padding: 90_000 }))
    assert.equal((await roundsFor(large, { laneEventsMin: 1_000 }))[0]!.lanes.length, 2)
  })

  it('make one batch for each day even if the days alternate', async () => {
    const lines = Array.from({ length: 40 }, (_, at) => lineOf(at + 1, [at % 3], { day: at % 2 }))
    const [round] = await roundsFor(lines, { laneEventsMin: 1_000 })
    const [batches] = round!.lanes
    assert.deepEqual(
      batches!.map(({ day, events }) => [day, events.length]),
      [
        ['2024-10-04', 20],
        ['2024-10-05', 20],
      ],
    )
  })
})
