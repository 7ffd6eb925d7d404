// Publishing and undoing the same import repeatedly keeps the uuids of its persons.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { JsonObject } from '#core/json.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { importWorld } from '../../support/world/import-world.ts'
import { assertRowsHaveTheirPersons, day, personWith } from './random-acts.ts'

const rounds = 4
const live = (id: string, properties: JsonObject = {}) => anEvent('e', id, properties, { timestampMs: 200 * day })
const personless = (id: string) => live(id, { $process_person_profile: false })

export function importedAgainContract(engine: string, open: OpenSqlState): void {
  describe(`an import on ${engine} that is repeatedly undone and published again`, () => {
    const cases: readonly {
      readonly name: string
      readonly before?: readonly string[]
      /** Called after each undo. */
      readonly between?: () => readonly CapturedEvent[]
      /** A live event that creates a person fixes its uuid from then on. */
      readonly isOtherAtFirst?: true
    }[] = [
      { name: 'with ids that no event has used' },
      { name: 'with a device that had personless events', before: ['device'] },
      { name: 'with a user that had personless events', before: ['user'] },
      { name: 'with a user and a device that had personless events', before: ['user', 'device'] },
      { name: 'with personless events of the device in between', between: () => [personless('device')] },
      { name: 'with personless events of the user in between', between: () => [personless('user')] },
      {
        name: 'with personless events of both, before and in between',
        before: ['device'],
        between: () => [personless('user'), personless('device')],
      },
      { name: 'with live events of the user in between', between: () => [live('user')] },
      { name: 'with live events of the device in between', between: () => [live('device')], isOtherAtFirst: true },
    ]
    for (const { name, before = [], between = () => [], isOtherAtFirst = false } of cases)
      it(`gives the same persons each time: ${name}`, async t => {
        const world = await importWorld(t, open)
        if (before.length > 0) await world.apply(...before.map(personless))
        const events = [
          anImportedEvent('e', 'device', day, {}),
          anImportedEvent('$identify', 'user', 2 * day, { $anon_distinct_id: 'device' }),
          anImportedEvent('e', 'user', 3 * day, { $set: { plan: 'old' } }),
        ]
        const uuids: string[] = []
        for (let round = 0; round < rounds; round++) {
          const job = await world.publishEvents(...events)
          const person = await personWith(world, 'user')
          assert.equal(person?.ids, 'device user')
          await assertRowsHaveTheirPersons(world)
          uuids.push(person.uuid)
          await world.discard(job)
          const others = between()
          if (others.length > 0) await world.apply(...others)
          await assertRowsHaveTheirPersons(world)
        }
        const [first, second] = uuids
        assert.deepEqual(uuids, [isOtherAtFirst ? first : second, second, second, second])
      })
  })
}
