// The person properties that rows of a published job show: those of the job and what the project already knows,
// whatever its origin.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { finishWithCrashes } from './finish-with-crashes.ts'
import { day } from './random-acts.ts'

export function knownPersonsContract(engine: string, open: OpenSqlState): void {
  describe(`rows of a published import job on ${engine}`, () => {
    const liveAt = (index: number) => ({ timestampMs: 200 * day + index })

    it('rows show the person’s properties from live events and earlier jobs, overridden by those of the job itself', async t => {
      const world = await importWorld(t, open)
      await world.apply(
        anEvent('live', 'ada', { $set: { plan: 'live', country: 'NO' }, $set_once: { first: 1 } }, liveAt(0)),
      )
      const earlier = await world.publishEvents(anImportedEvent('earlier', 'ada', 2 * day, { $set: { city: 'Oslo' } }))
      const job = await world.publishEvents(
        anImportedEvent('before', 'ada', day, {}),
        anImportedEvent('sets', 'ada', 2 * day, { $set: { plan: 'old' } }),
        anImportedEvent('after', 'ada', 3 * day, {}),
        anImportedEvent('of an unknown person', 'bob', 3 * day, {}),
        anImportedEvent('personless', 'ada', 3 * day, { $process_person_profile: false }),
      )
      assert.deepEqual(shown(world), {
        live: { plan: 'live', country: 'NO', first: 1 },
        // Rows already stored learn as little from later jobs as from live events.
        earlier: { city: 'Oslo', plan: 'live', country: 'NO', first: 1 },
        before: { plan: 'live', country: 'NO', first: 1, city: 'Oslo' },
        sets: { plan: 'old', country: 'NO', first: 1, city: 'Oslo' },
        after: { plan: 'old', country: 'NO', first: 1, city: 'Oslo' },
        'of an unknown person': {},
        personless: null,
      })
      await world.discard(earlier)
      await world.discard(job)
      assert.deepEqual(shown(world), { live: { plan: 'live', country: 'NO', first: 1 } })
    })

    it('rows show properties that the job sets after these events, as a profile file does, also across linked ids', async t => {
      const world = await importWorld(t, open)
      await world.publishEvents(
        anImportedEvent('visit', 'device', day, {}),
        anImportedEvent('$identify', 'ada', 2 * day, { $anon_distinct_id: 'device' }),
        anImportedEvent('paid', 'ada', 3 * day, {}),
        anImportedEvent('$set', 'ada', 4 * day, { $set: { plan: 'pro' } }),
      )
      for (const [name, properties] of Object.entries(shown(world))) assert.deepEqual(properties, { plan: 'pro' }, name)
    })

    it('a worker that lost its stream to another stops before the next step, even without persons; the other finishes', async t => {
      const world = await importWorld(t, open)
      const { events, chunks, management } = world
      const job = await world.createJob()
      await world.apply(
        anImportedEvent('alone', 'ada', day, { $process_person_profile: false }, { importJobId: job.id }),
      )
      assert.ok((await world.startPublishing(job)).ok)
      world.clock.advance(10_000)
      const add = events.addKnownProperties.bind(events)
      events.addKnownProperties = async (...args) => {
        await add(...args)
        await chunks.claimPosition('historical', 'another worker')
      }
      await world.work().workNow(new AbortController().signal)
      const stepOf = async () => (await management.findImportJob(job.id))?.step
      assert.equal(await stepOf(), 'person_properties')
      await world.work({ ownerId: 'another worker' }).workNow(new AbortController().signal)
      assert.equal(await stepOf(), null)
    })

    it('rows show the person’s properties even when the worker is killed repeatedly', async t => {
      for (const first of [0, 1, 2, 3]) {
        const world = await importWorld(t, open)
        await world.apply(anEvent('live', 'ada', { $set: { plan: 'live' } }, liveAt(0)))
        const job = await world.createJob()
        await world.apply(anImportedEvent('imported', 'ada', day, { $set: { own: 1 } }, { importJobId: job.id }))
        assert.ok((await world.startPublishing(job)).ok)
        await finishWithCrashes(world, job.id, 'published', first)
        assert.deepEqual(shown(world).imported, { own: 1, plan: 'live' })
      }
    })
  })
}

/** By event name; null for a row without a person. */
function shown(world: ImportWorld): Record<string, JsonObject | null> {
  return Object.fromEntries(
    Array.from(world.events.rows.values(), ({ event, personMode, personPropertiesJson }) => {
      const { $creator_event_uuid: _, ...properties } = JSON.parse(personPropertiesJson) as JsonObject
      if (personMode !== 'full') assert.equal(personPropertiesJson, '{}')
      return [event, personMode === 'full' ? properties : null]
    }),
  )
}
