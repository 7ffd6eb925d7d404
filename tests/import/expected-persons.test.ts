import assert from 'node:assert/strict'
import { it } from 'node:test'
import { parseJson } from '#core/json.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { ExpectedCollector, readExpectations, storeExpectations } from '#importer/stages/expected/expected.ts'
import { type ExpectedPerson, PersonSampler } from '#importer/stages/expected/expected-persons.ts'
import { tempDir } from '../support/temp-dir.ts'

function event(index: number, distinctId: string, properties: ImportedEvent['properties']): ImportedEvent {
  const timeUs = Date.UTC(2024, 4, 1) * 1_000 + index
  return { uuid: deriveImportUuid('expected', String(index)), event: '$set', distinctId, timeUs, properties }
}

/** Serialized, so that number literals and key order are compared too. */
function serializePerson({ id, rank, ids, profile: { properties, marks } }: ExpectedPerson) {
  return { id, rank, ids, properties: JSON.stringify(properties), marks: JSON.stringify(marks) }
}

it('the stored sample of expected persons is read back unchanged, and ignored if other events were sent', t => {
  const $set = parseJson('{"large": 12345678901234567890, "__proto__": "own"}')
  const events = [
    event(0, 'a', { $set, $unset: ['large'] }),
    event(1, 'b', { $set }),
    event(2, 'b', { $set_once: { 'ünïcode ☂': 1 } }),
  ]
  const folder = new JobFolder(tempDir(t))
  const collector = new ExpectedCollector(id => `person of ${id}`)
  for (const each of events) collector.add(each)
  const expected = collector.end()
  const chosen = expected.persons!
  assert.deepEqual(new Set(chosen.map(({ id }) => id)), new Set(['person of a', 'person of b']))

  const sent = { sent: 3, refused: 0 }
  const read = () => readExpectations(folder, sent)
  assert.equal(read(), null)
  storeExpectations(folder, sent, expected)
  assert.deepEqual(read()!.persons!.map(serializePerson), chosen.map(serializePerson))
  assert.deepEqual(JSON.stringify(read()!.samples), JSON.stringify(expected.samples))
  assert.equal(readExpectations(folder, { sent: 3, refused: 1 }), null)
  assert.equal(readExpectations(folder, { sent: 4, refused: 0 }), null)
})

it('the same persons are chosen in whatever order their events are processed', () => {
  const events = Array.from({ length: 3_000 }, (_, index) =>
    event(index, `id ${index % 1_000}`, { $set: { [`of ${index % 3}`]: index } }),
  )
  const chosenOf = (some: readonly ImportedEvent[]) => {
    const choice = new PersonSampler(id => id, 5)
    for (const each of some) choice.add(each)
    return choice.chosen()
  }
  const chosen = chosenOf(events)
  assert.equal(chosen.length, 20)
  assert.deepEqual(chosenOf(events.toReversed()), chosen)
  for (const { profile } of chosen) assert.equal(Object.keys(profile.properties).length, 3)
})
