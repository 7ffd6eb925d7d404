import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import { anImportedEvent, applyingWorld } from '../../../tests/support/apply-events.ts'
import type { StagedJob } from '../job/staged-part.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { sentProperties } from './encode-event.ts'
import type { ServiceApi } from './job-api.ts'
import { propertyDifference } from './stored-properties.ts'
import { type PersonsCheck, verifyPersons } from './verify-persons.ts'

const marks = { source: 'mixpanel', jobId: '1' }
const timeUs = Date.UTC(2024, 4, 1) * 1_000

function sent(event: string, properties: JsonObject, minutes = 0): ImportedEvent {
  const at = timeUs + minutes * 60_000_000
  return { uuid: '5a5a5a5a-0000-4000-8000-000000000000', event, distinctId: 'ada', timeUs: at, properties }
}

/** Stored by the real rules of processing. */
async function stored(event: ImportedEvent, project = {}): Promise<JsonObject> {
  const world = applyingWorld({ project })
  const properties = sentProperties(event, marks)
  await world.apply(anImportedEvent(event.event, event.distinctId, event.timeUs / 1_000, properties))
  return parseJson(world.rows[0]!.propertiesJson) as JsonObject
}

describe('the properties that are stored of an event', () => {
  const sets = { $set: { plan: 'pro' }, $set_once: { $initial_os: 'Linux' } }
  const events: Record<string, ImportedEvent> = {
    'with properties of the person beside its own $set': sent('Paid', { $browser: 'Firefox', $pathname: '/', ...sets }),
    'with the older name of the system': sent('Paid', { $os_name: 'Linux', $set: { plan: 'pro' } }),
    'with a person by its own word': sent('Paid', { $process_person_profile: true, ...sets }),
    'without a person': sent('Paid', { $process_person_profile: false, ...sets }),
    'of a group': sent('$groupidentify', { $group_type: 'company', $group_key: 'acme', $group_set: {}, ...sets }),
    'with elements and a column of a group': sent('$autocapture', { $elements_chain: 'a:text="Go"', $group_0: 'acme' }),
    'of a flag': sent('$feature_flag_called', { $feature_flag: 'f', $feature_flag_response: true, own: 1, ...sets }),
    'in a session': sent('Paid', { $session_id: '018F3398-C100-7929-9314-7FD0EAB51840' }),
  }
  for (const [name, event] of Object.entries(events))
    it(`are those that were sent: an event ${name}`, async () => {
      assert.equal(propertyDifference(event, await stored(event), marks), null)
    })

  it('are those that were sent although the project keeps neither addresses nor persons', async () => {
    const event = sent('Paid', { $ip: '192.0.2.1', $browser: 'Firefox', ...sets })
    assert.equal(propertyDifference(event, await stored(event, { anonymizeIps: true }), marks), null)
    const ingestion = { thinsFlagCalls: false, personProcessingOptOut: true }
    assert.equal(propertyDifference(event, await stored(event, { ingestion }), marks), null)
  })

  it('differ when one is missing or another', async () => {
    const event = sent('Paid', { amount: 5, $browser: 'Firefox', ...sets })
    const properties = await stored(event)
    const of = (more: JsonObject) => propertyDifference(event, { ...properties, ...more }, marks)
    assert.equal(of({ amount: 6 }), 'the property amount is 6')
    assert.match(of({ $set: sets.$set })!, /^the property \$set is /)
    const { amount: _, ...rest } = properties
    assert.equal(propertyDifference(event, rest, marks), 'the property amount is missing')
  })
})

/** The check of persons against a world that has processed the events. */
async function checked(events: readonly ImportedEvent[], id: string): Promise<PersonsCheck> {
  const world = applyingWorld()
  for (const each of events)
    await world.apply(anImportedEvent(each.event, each.distinctId, each.timeUs / 1_000, sentProperties(each, marks)))
  const { properties } = world.person(id)!
  const ids = [...new Set(events.map(each => each.distinctId))].filter(each => world.person(each) === world.person(id))
  const job = {
    parts: [{}],
    generatedEvents: () => [],
    async *readPart() {
      yield { result: { kind: 'events', events } }
    },
  }
  const person = { uuid: 'p', properties, distinct_ids: ids, distinct_id_count: ids.length }
  const api = { call: async (_: string, path: string) => ({ results: path === '/persons/' ? [person] : [] }) }
  return verifyPersons(job as unknown as StagedJob, '1', each => each, api as unknown as ServiceApi)
}

describe('the persons of a published import', () => {
  it('have what later events say of their browser and system, and what the first one said', async () => {
    const events = [
      sent('Paid', { $os: 'Windows' }, 1),
      sent('$set', { $set: { $os: 'Linux', plan: 'pro' }, $set_once: { $initial_os: 'Linux' } }, 2),
      sent('Paid', { $os: 'Mac OS X' }, 3),
    ]
    assert.deepEqual(await checked(events, 'ada'), { compared: 1, equal: 1, newer: 0, differences: [] })
  })

  it('have what is said of all ids that events of the export link', async () => {
    const events = [
      { ...sent('Opened', { $set: { plan: 'free', theme: 'dark' } }, 1), distinctId: 'device' },
      sent('$identify', { $anon_distinct_id: 'device', $set: { plan: 'pro' } }, 2),
      { ...sent('Opened', { $set: { plan: 'team' } }, 3), distinctId: 'device' },
    ]
    assert.deepEqual((await checked(events, 'ada')).differences, [])
  })
})
