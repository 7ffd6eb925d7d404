import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { wallClock } from '#importer/fetch/waiting.ts'
import { deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { formatTime } from '#importer/records/source-time.ts'
import { ServiceApi } from '#importer/send/service-api.ts'
import type { PersonsCheck } from '#importer/stages/report/import-report.ts'
import { verifyPersons } from '#importer/verify/verify-persons.ts'
import { type Pennon, startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { silentProgress } from '../support/silent-progress.ts'
import { tempDir } from '../support/temp-dir.ts'
import { sentJob } from './sent-job.ts'

const firstUs = Date.UTC(2024, 4, 1) * 1_000
const equal = { newer: 0, differences: [] }

describe('verifying the persons of an import', () => {
  let pennon: Pennon
  let api: ServiceApi
  before(async () => {
    pennon = await startPennon()
    api = new ServiceApi({
      ...{ address: pennon.url, personalKey: testPersonalKey, project: '@current', clock: wallClock },
      ...{ progress: silentProgress, signal: new AbortController().signal },
    })
  })
  after(() => pennon.stop())

  let count = 0
  /** @param second after the first event of the import. */
  function event(distinctId: string, name: string, properties: ImportedEvent['properties'], second?: number) {
    const uuid = deriveImportUuid('verified', String(count++))
    return { uuid, event: name, distinctId, timeUs: firstUs + (second ?? count) * 1_000_000, properties }
  }

  async function send(events: readonly ImportedEvent[]): Promise<void> {
    const batch = events.map(({ uuid, event, distinctId, timeUs, properties }) => ({
      ...{ uuid, event, timestamp: formatTime(timeUs) },
      properties: { ...properties, distinct_id: distinctId },
    }))
    const sent = await pennon.post('/batch/', { api_key: testProjectKey, historical_migration: true, batch })
    assert.equal(sent.status, 200, await sent.text())
    await pennon.caughtUp()
  }

  async function check(
    t: { after: (fn: () => void) => void },
    events: readonly ImportedEvent[],
  ): Promise<PersonsCheck> {
    const query = { distinct_id: events[0]!.distinctId }
    const { results } = await pennon.api<{ results: { import_job_id: number }[] }>(
      'GET',
      `/api/projects/@current/events/?${new URLSearchParams(query)}`,
    )
    const jobId = String(results.find(({ import_job_id }) => import_job_id !== 0)!.import_job_id)
    return verifyPersons({ sent: [sentJob(tempDir(t), events)], jobId, personOf: id => id, api })
  }

  it('$unset takes effect in whatever order the events were sent', async t => {
    const events = [
      event('taken-back', '$set', { $unset: ['gone', 'once'] }, 30),
      event('taken-back', '$set', { $set: { gone: 1, kept: 1 }, $set_once: { once: 1 } }, 10),
      event('taken-back', '$set', { $set: { kept: 2 }, $set_once: { again: 1 } }, 20),
      event('as-an-object', '$set', { $set: { gone: 1, kept: 1 } }, 10),
      event('as-an-object', '$set', { $unset: { gone: true } }, 20),
      event('as-an-object', '$set', { $set: { back: 1 }, $unset: ['back'] }, 30),
      event('as-an-object', '$set', { $set: { back: 2 } }, 40),
      event('without-profile', '$set', { $set: { kept: 1 } }, 10),
      event('without-profile', 'seen', { $process_person_profile: false, $unset: ['kept'] }, 20),
    ]
    await send(events)
    assert.deepEqual(await check(t, events), { compared: 3, equal: 3, ...equal })
  })

  it('events of the same millisecond are applied in the service’s order, since it stores no microseconds', async t => {
    const [smaller, larger] = [0, 1]
      .map(() => event('same-moment', '$set', {}))
      .toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1)) as [ImportedEvent, ImportedEvent]
    const atUs = firstUs + 10_000_000
    const events = [
      { ...larger, timeUs: atUs + 123_400, properties: { $set: { plan: 'first' } } },
      { ...smaller, timeUs: atUs + 123_900, properties: { $set: { plan: 'second' } } },
    ]
    assert.match(formatTime(events[0]!.timeUs), /\.123400Z$/)
    await send(events)
    assert.deepEqual(await check(t, events), { compared: 1, equal: 1, ...equal })
    const { results } = await pennon.api<{ results: { properties: { plan: string } }[] }>(
      'GET',
      '/api/projects/@current/persons/?distinct_id=same-moment',
    )
    assert.equal(results[0]!.properties.plan, 'first')
  })

  it('person properties in exceptions count only for persons that the exceptions create', async t => {
    const events = [
      event('known', '$set', { $set: { plan: 'pro' } }, 20),
      event('known', '$exception', { $set: { plan: 'none' }, $browser: 'Firefox' }, 30),
      event('made', '$exception', { $set: { plan: 'none' }, $set_once: { first: 1 } }, 10),
      event('made', '$set', { $set_once: { first: 2 } }, 20),
    ]
    await send(events)
    assert.deepEqual(await check(t, events), { compared: 2, equal: 2, ...equal })
  })

  it('a device identified by two users may belong to either of them', async t => {
    const events = [
      event('first', '$identify', { $anon_distinct_id: 'shared' }, 10),
      event('second', '$identify', { $anon_distinct_id: 'shared', $set: { plan: 'pro' } }, 20),
      event('shared', '$set', { $set: { color: 'blue' } }, 5),
      event('third', '$create_alias', { alias: 'aliased' }, 30),
      event('fourth', '$identify', { $anon_distinct_id: 'aliased' }, 40),
    ]
    await send(events)
    const { compared, ...rest } = await check(t, events)
    assert.deepEqual(rest, { equal: compared, ...equal })
  })

  it('a person is compared once, even when events of the export joined several ids', async t => {
    const events = Array.from({ length: 6 }, (_, at) => [
      event(`counted-${at}`, '$identify', { $anon_distinct_id: `counted-device-${at}`, $set: { plan: 'pro' } }),
      event(`counted-device-${at}`, '$set', { $set: { color: 'blue' } }),
    ]).flat()
    await send(events)
    assert.deepEqual(await check(t, events), { compared: 6, equal: 6, ...equal })
    const other = event('counted-device-0', '$set', { $set: { color: 'red' } })
    const { differences, ...rest } = await check(t, [...events, other])
    assert.deepEqual([rest, differences.length], [{ compared: 6, equal: 5, newer: 0 }, 1])
  })

  it('each difference from what the events imply is reported', async t => {
    const sent = [
      event('other-value', '$set', { $set: { plan: 'pro' } }),
      event('still-there', '$set', { $set: { plan: 'pro' } }),
      event('not-joined', '$set', { $set: { plan: 'pro' } }),
    ]
    await send(sent)
    const said = [
      event('other-value', '$set', { $set: { plan: 'free' } }),
      event('still-there', '$set', { $unset: ['plan'] }),
      event('not-joined', '$identify', { $anon_distinct_id: 'its-device' }),
      event('nobody', '$set', { $set: { plan: 'free' } }),
    ]
    const { differences, ...rest } = await check(t, said)
    assert.deepEqual(rest, { compared: 4, equal: 0, newer: 0 })
    assert.deepEqual(differences.toSorted(), [
      'nobody: there is no such person',
      'not-joined: its-device is missing from its ids',
      'other-value: the property plan is "pro"',
      'still-there: the property plan is still there, although it was unset',
    ])
  })

  it('persons changed by live events, or sharing an id with live persons, may differ', async t => {
    const sent = [
      event('touched', '$set', { $set: { plan: 'pro' } }),
      event('late', '$set', { $set: { color: 'red' } }),
    ]
    await send(sent)
    const live = [
      { event: '$set', properties: { distinct_id: 'touched', $set: { plan: 'live' } } },
      { event: '$identify', properties: { distinct_id: 'live-user', $anon_distinct_id: 'live-device' } },
    ]
    for (const each of live) await pennon.post('/i/v0/e/', { api_key: testProjectKey, ...each })
    await pennon.caughtUp()
    const link = [event('late', '$identify', { $anon_distinct_id: 'live-device' })]
    await send(link)
    assert.deepEqual(await check(t, [...sent, ...link]), { compared: 2, equal: 0, newer: 2, differences: [] })
  })
})
