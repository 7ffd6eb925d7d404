import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryChunkStore } from '../../../tests/support/memory/memory-chunk-store.ts'
import { memoryState } from '../../../tests/support/memory/memory-state.ts'
import { loadWhole } from '../../../tests/support/state.ts'
import { aCapturedReject, anEvent, anImportedEvent, aProject, recordsAt } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'
import type { LogRecord } from '../events/captured-event.ts'
import type { JsonObject } from '../json.ts'
import { personUuid } from '../persons/person-uuid.ts'
import { listChunkSubjects, parseChunk } from './parse-chunk.ts'
import { type ProcessedChunk, processChunk } from './process-chunk.ts'
import { rejectRefusedRows } from './refused-rows.ts'

const noGeoip = { logId: 'log', lookUpGeoip: () => null }

async function processRecords(records: readonly LogRecord[]): Promise<ProcessedChunk> {
  const store = memoryChunkStore(memoryState([aProject()]))
  const chunk = parseChunk({ stream: 'main', traffic: 'live', records: recordsAt(records, 10) }, new Map())
  return processChunk(chunk, await loadWhole(store, listChunkSubjects(chunk)), noGeoip)
}

const textOf = (processed: ProcessedChunk) =>
  JSON.stringify([processed.rows, processed.rows.events.map(({ flags }) => [...flags]), processed.changes])

describe('a chunk', () => {
  it('gives the same rows and changes byte for byte when processed again from the same state', async () => {
    const events = [
      anEvent('$pageview', 'a', { $browser: 'Chrome', $current_url: '/1', $groups: { company: 'acme' } }),
      anEvent('$identify', 'user', { $anon_distinct_id: 'a', $set: { plan: 'pro' } }),
      anEvent('$pageview', 'user', { $current_url: '/2', '$feature/beta': true }),
      anEvent('e', 'ghost', { $process_person_profile: false }),
    ]
    const records = recordsAt(events.map(event => ({ kind: 'event', event })))
    const store = memoryChunkStore(memoryState([aProject()]))
    const chunk = parseChunk({ stream: 'main', traffic: 'live', records }, new Map())
    const loaded = await loadWhole(store, listChunkSubjects(chunk))
    const first = textOf(processChunk(chunk, loaded, noGeoip))
    assert.equal(
      textOf(processChunk(chunk, loaded, noGeoip)),
      first,
      'neither the records nor the loaded state were changed',
    )
    const again = parseChunk({ stream: 'main', traffic: 'live', records }, new Map())
    assert.equal(textOf(processChunk(again, await loadWhole(store, listChunkSubjects(again)), noGeoip)), first)
  })

  it('accounts for every record: stored, dropped or rejected', async () => {
    const processed = await processRecords([
      { kind: 'event', event: anEvent('e', 'ada') },
      { kind: 'event', event: anEvent('e', 'ada', {}, { projectId: 99 }) },
      { kind: 'event', event: anEvent('$$heatmap', 'ada') },
      { kind: 'event', event: anEvent('e', 'x'.repeat(401)) },
      { kind: 'event', event: anEvent('e', 'ada', { $cookieless_mode: true }) },
      { kind: 'event', event: anEvent('e', 'ada', 'null') },
      { kind: 'reject', reject: aCapturedReject() },
      { kind: 'damaged', body: new Uint8Array([0xff, 0x61]), appendedAtMs: 1_790_000_000_123 },
    ])
    assert.deepEqual(
      processed.changes.outcomes.map(({ projectId, outcome, reason, count }) => [projectId, outcome, reason, count]),
      [
        [1, 'stored', '', 1],
        [1, 'dropped', 'heatmap', 1],
        [1, 'dropped', 'skipping_event_invalid_distinct_id', 1],
        [1, 'dropped', 'cookieless_team_disabled', 1],
        [1, 'rejected', 'processing_failed', 1],
        [1, 'rejected', 'missing_event_name', 1],
        [99, 'dropped', 'unknown_project', 1],
        [0, 'rejected', 'log_record_damaged', 1],
      ],
    )
    const [failed, refused, damaged] = processed.rows.rejected.map(({ body }) => body)
    assert.match(failed!, /^{"event":"e","uuid":"[^"]+","distinct_id":"ada","timestamp":"[^"]+","properties":null}$/)
    assert.deepEqual([refused, damaged], ['{"distinct_id":"ada"}', '\ufffda'])
    assert.equal(processed.rows.rejected.at(-1)!.receivedAtMs, 1_790_000_000_123, 'retained as long as the others')
    assert.equal(new Set(processed.rows.rejected.map(({ rejectId }) => rejectId)).size, 3)
  })

  it('counts each record in its own lane, including rows that the event store refuses', async () => {
    const processed = await processRecords([
      { kind: 'event', event: anEvent('e', 'ada') },
      { kind: 'event', event: anEvent('e', 'hot', {}, { lane: 'overflow' }) },
      { kind: 'event', event: anEvent('e', 'hot', {}, { lane: 'overflow' }) },
      { kind: 'event', event: anEvent('$$heatmap', 'ada', {}, { lane: 'heatmaps' }) },
      { kind: 'event', event: anEvent('$ai_span', 'ada', 'null', { lane: 'ai' }) },
      { kind: 'event', event: anEvent('$exception', 'ada', {}, { lane: 'error_tracking', projectId: 99 }) },
      { kind: 'reject', reject: aCapturedReject({ lane: 'replay', reason: 'missing_session_id' }) },
      { kind: 'damaged', body: new Uint8Array([0xff]), appendedAtMs: 1_790_000_000_123 },
    ])
    const describeOutcomes = ({ outcomes }: ProcessedChunk['changes']) =>
      outcomes.map(({ lane, outcome, reason, count }) => `${lane} ${outcome} ${reason} ${count}`).toSorted()
    const others = [
      'ai rejected processing_failed 1',
      'error_tracking dropped unknown_project 1',
      'heatmaps dropped heatmap 1',
      'main rejected log_record_damaged 1',
      'main stored  1',
    ]
    const refusedRecording = 'replay rejected missing_session_id 1'
    assert.deepEqual(describeOutcomes(processed.changes), [...others, 'overflow stored  2', refusedRecording])
    const { changes } = rejectRefusedRows(processed, [{ list: 'events', index: 2, message: 'too large' }])
    const overflow = ['overflow rejected row_refused 1', 'overflow stored  1']
    assert.deepEqual(describeOutcomes(changes), [...others, ...overflow, refusedRecording])
  })

  it('stores at most 64 KiB of a rejected body', async () => {
    const processed = await processRecords([{ kind: 'event', event: anEvent('e', 'ada', `["${'é'.repeat(50_000)}"]`) }])
    assert.ok(Buffer.byteLength(processed.rows.rejected[0]!.body) <= 65_536 + 2)
  })

  it('stores the log position of each row, and for a group event how long after the time of its row it was sent', async () => {
    const uuid = '0199a000-0000-5000-8000-000000000001'
    const described = (timestampMs: number) =>
      anImportedEvent('$groupidentify', 'ada', timestampMs, { $group_type: 'org', $group_key: 'x' }, { uuid })
    const events = [described(1_000), described(4_500), anImportedEvent('e', 'ada', 9_000, {})].map(event => {
      return { ...event, importJobId: 7 }
    })
    const records = recordsAt(
      events.map(event => ({ kind: 'event', event })),
      10,
    )
    const chunk = parseChunk({ stream: 'historical/2', traffic: 'import', records }, new Map())
    const loaded = await loadWhole(memoryChunkStore(memoryState([aProject()])), listChunkSubjects(chunk))
    const job = { id: 7, projectId: 1, state: 'sending', step: null, hasNotes: false, looksUpGeoip: false } as const
    const { pendingEvents } = processChunk(chunk, { ...loaded, importJobs: [job] }, noGeoip).rows
    assert.deepEqual(
      pendingEvents.map(row => [row.logStream, row.logOffset, row.timestampMs, row.sentLaterMs ?? 0]),
      [
        ['historical/2', 10, 1_000, 0],
        ['historical/2', 11, 1_000, 3_500],
        ['historical/2', 12, 9_000, 0],
      ],
    )
  })

  it('separates rows of unpublished jobs', async () => {
    const event = anImportedEvent('e', 'ada', 1, {}, { importJobId: 7 })
    const chunk = parseChunk(
      { stream: 'historical', traffic: 'import', records: recordsAt([{ kind: 'event', event }]) },
      new Map(),
    )
    const loaded = await loadWhole(memoryChunkStore(memoryState([aProject()])), listChunkSubjects(chunk))
    const job = { id: 7, projectId: 1, state: 'sending', step: null, hasNotes: false, looksUpGeoip: false } as const
    const { rows, changes } = processChunk(chunk, { ...loaded, importJobs: [job] }, noGeoip)
    assert.deepEqual([rows.events.length, rows.pendingEvents.length], [0, 1])
    assert.deepEqual(
      changes.persons.map(({ row }) => row.projectId),
      [-7],
    )
  })
})

describe('old events on the live stream', () => {
  const old = (count: number) =>
    Array.from({ length: count }, () => anEvent('e', 'ada', {}, { timestampMs: Date.UTC(2024, 0, 1) }))

  it('raise a warning with advice if they look like bulk data', async () => {
    const world = aWorld()
    await world.apply(...old(120), ...Array.from({ length: 100 }, () => anEvent('e', 'ada')))
    const [warning] = world.state.warnings.filter(({ type }) => type === 'old_events_sent_live')
    assert.equal(warning?.details.count, 120)
    assert.match(String(warning?.details.hint), /historical_migration.*PENNON_REROUTE_OLDER_THAN_DAYS/)
  })

  it('raise no warning if they are few, or a minority', async () => {
    const world = aWorld()
    await world.apply(...old(99))
    await world.apply(...old(120), ...Array.from({ length: 200 }, () => anEvent('e', 'ada')))
    assert.deepEqual(world.warningTypes(), [])
  })
})

describe('an event without a profile', () => {
  it('has the person uuid that is derived from its id, and no person properties or groups', async () => {
    const world = aWorld()
    const properties = {
      $process_person_profile: false,
      $set: { a: 1 },
      $set_once: { b: 1 },
      $unset: ['c'],
      $browser: 'Chrome',
      $groups: { company: 'acme' },
    }
    await world.apply(anEvent('e', 'ghost', properties))
    const [row] = world.rows
    assert.deepEqual(
      [row?.personId, row?.personCreatedAtMs, row?.personMode],
      [personUuid(1, 'ghost'), 5_000, 'propertyless'],
    )
    assert.equal(
      row?.propertiesJson,
      '{"$process_person_profile":false,"$browser":"Chrome","$groups":{"company":"acme"}}',
    )
    assert.deepEqual([row?.personPropertiesJson, row?.groups], ['{}', ['', '', '', '', '']])
    assert.equal(world.state.persons.size, 0)
  })

  it('belongs to the person of its id if that person exists', async () => {
    const world = aWorld()
    const person = anEvent('e', 'ada', { $set: { a: 1 } }, { timestampMs: 1_000_000 })
    await world.apply(person, anEvent('e', 'ada', { $process_person_profile: false }, { timestampMs: 1_060_000 }))
    await world.apply(anEvent('e', 'ada', { $process_person_profile: false }, { timestampMs: 1_060_001 }))
    assert.deepEqual(
      world.rows.map(({ personMode }) => personMode),
      ['full', 'propertyless', 'force_upgrade'],
    )
    assert.equal(new Set(world.rows.map(({ personId }) => personId)).size, 1)
    assert.deepEqual([world.rows[2]?.personCreatedAtMs, world.rows[2]?.personPropertiesJson], [1_000_000, '{}'])
  })

  it('is stored if the edge switched person processing off, whatever the event requests', async () => {
    const world = aWorld()
    await world.apply(anEvent('e', 'ada'))
    await world.apply(anEvent('e', 'ada', { $process_person_profile: true }, { personProcessingForcedOff: true }))
    assert.deepEqual([world.rows[1]?.personMode, world.rows[1]?.personCreatedAtMs], ['propertyless', 5_000])
    assert.equal(world.rows[1]?.propertiesJson, '{"$process_person_profile":false}')
  })

  it('has a profile if $process_person_profile is not a valid value', async () => {
    const world = aWorld()
    await world.apply(
      anEvent('e', 'ada', { $process_person_profile: 'no' }),
      anEvent('e', 'bob', { $process_person_profile: true }),
    )
    assert.deepEqual(
      world.rows.map(({ personMode, propertiesJson }) => [personMode, propertiesJson]),
      [
        ['full', '{}'],
        ['full', '{}'],
      ],
    )
    assert.deepEqual(world.warningTypes(), ['invalid_process_person_profile'])
  })
})

describe('a stored event', () => {
  it('has $sent_at, and has $ip unless the client sent one or the project stores no addresses', async () => {
    const world = aWorld()
    const at = { ip: '203.0.113.7', sentAtMs: Date.parse('2026-01-01T00:00:00Z') }
    await world.apply(
      anEvent('e', 'ada', { n: 1 }, at),
      anEvent('e', 'ada', { $ip: '198.51.100.1', $sent_at: 'x' }, at),
    )
    assert.deepEqual(
      world.rows.map(({ propertiesJson }) => propertiesJson),
      [
        '{"n":1,"$sent_at":"2026-01-01T00:00:00Z","$ip":"203.0.113.7"}',
        '{"$ip":"198.51.100.1","$sent_at":"2026-01-01T00:00:00Z"}',
      ],
    )
    const discreet = aWorld({ project: { anonymizeIps: true } })
    await discreet.apply(anEvent('e', 'ada', {}, { ip: '203.0.113.7' }), anEvent('e', 'ada', { $ip: '198.51.100.1' }))
    assert.deepEqual(
      discreet.rows.map(({ propertiesJson }) => propertiesJson),
      ['{}', '{}'],
    )
  })

  it('of an import has neither the sender’s address nor its location', async () => {
    const world = aWorld({ geoip: { '203.0.113.7': { country_code: 'DE' } } })
    await world.apply(anImportedEvent('e', 'ada', 1_000, { $geoip_country_code: 'FR' }, { ip: '203.0.113.7' }))
    assert.equal(world.rows[0]?.propertiesJson, '{"$geoip_country_code":"FR"}')
  })

  it('has the location that was looked up for its address, which overrides the client’s location', async () => {
    const world = aWorld({
      geoip: { '203.0.113.7': { country_code: 'DE', further: { subdivision_3_code: 'X' } } },
    })
    await world.apply(anEvent('e', 'ada', { $set: { $geoip_country_code: 'FR' } }, { ip: '203.0.113.7' }))
    const { properties } = world.person('ada')!
    assert.deepEqual(
      [properties.$geoip_country_code, properties.$geoip_city_name, properties.$initial_geoip_country_code],
      ['DE', null, 'DE'],
    )
    assert.equal(properties.$geoip_subdivision_3_code, 'X')
    const personless = anEvent('e', 'ghost', { $process_person_profile: false }, { ip: '203.0.113.7' })
    await world.apply(personless)
    assert.match(world.rows[1]!.propertiesJson, /"\$geoip_country_code":"DE"/)
    assert.doesNotMatch(world.rows[1]!.propertiesJson, /\$set/)
  })

  it('has columns for flags, session and window', async () => {
    const world = aWorld()
    const session = '0199A000-0000-7000-8000-00000000ABCD'
    await world.apply(
      anEvent('e', 'ada', {
        '$feature/a': true,
        '$feature/b': 'test',
        '$feature/c': null,
        [`$feature/${'d'.repeat(1_000)}`]: true,
        [`$feature/${'e'.repeat(1_001)}`]: true,
        $session_id: session,
        $window_id: 7,
      }),
      anEvent('e', 'ada', { $session_id: 'mine' }),
    )
    assert.deepEqual(
      [...world.rows[0]!.flags],
      [
        ['$feature/a', 'true'],
        ['$feature/b', 'test'],
        [`$feature/${'d'.repeat(1_000)}`, 'true'],
      ],
    )
    assert.deepEqual([world.rows[0]?.sessionId, world.rows[0]?.windowId], [session.toLowerCase(), '7'])
    assert.equal(world.rows[1]?.sessionId, 'mine')
    assert.deepEqual(world.warningTypes(), ['invalid_event_session_id'])
  })

  it('contains the distinct id that it may link, unless it changes no person', async () => {
    const link = (name: string, distinctId: string, properties: JsonObject, over = {}) =>
      [anEvent(name, distinctId, properties, over), properties.$anon_distinct_id ?? properties.alias] as const
    const linking = [
      link('$identify', 'ada', { $anon_distinct_id: 'anon' }),
      // Refused, because both are identified.
      link('$identify', 'grace', { $anon_distinct_id: 'ada' }),
      link('$create_alias', 'ada', { alias: 'a\ud800' }),
      link('$merge_dangerously', 'ada', { alias: 'grace' }),
    ]
    const others = [
      link('$identify', 'ada', { $anon_distinct_id: 'ada' }),
      link('$identify', 'ada', { $anon_distinct_id: 'null' }),
      link('$create_alias', 'undefined', { alias: 'ada' }),
      link('$create_alias', 'ada', { $anon_distinct_id: 'other' }),
      link('$identify', 'ada', { $anon_distinct_id: 'other' }, { personProcessingForcedOff: true }),
      link('e', 'ada', { $anon_distinct_id: 'other', alias: 'other' }),
    ]
    const world = aWorld()
    await world.apply(...[...linking, ...others].map(([event]) => event))
    assert.deepEqual(
      world.rows.map(({ linkedId }) => linkedId),
      [...linking.map(([, other]) => String(other).toWellFormed()), ...others.map(() => '')],
    )
  })

  it('of a flag call has only the properties that analyses need, unless the flag returned a variant', async () => {
    const world = aWorld()
    const called = (response: string | boolean | null) =>
      anEvent('$feature_flag_called', 'ada', {
        $feature_flag: 'f',
        $feature_flag_response: response,
        '$feature/f': response,
        random: 1,
        $browser: 'Chrome',
      })
    await world.apply(called(true), called('test'), called(null))
    const kept = world.rows.map(({ propertiesJson }) => Object.hasOwn(JSON.parse(propertiesJson), 'random'))
    assert.deepEqual(kept, [false, true, false])
    assert.equal(JSON.parse(world.rows[0]!.propertiesJson).$browser, 'Chrome')
    assert.equal(JSON.parse(world.rows[0]!.propertiesJson)['$feature/f'], true)
  })

  it('of the AI lane has its person’s properties but never changes them', async () => {
    const world = aWorld()
    await world.apply(anEvent('e', 'ada', { $set: { plan: 'pro' } }))
    const properties = { $set: { plan: 'x' }, $ai_gateway_key: 'secret', $ai_model: 'm' }
    await world.apply(
      anEvent('$ai_generation', 'ada', properties, { lane: 'ai' }),
      anEvent('$ai_generation', 'new', properties, { lane: 'ai' }),
    )
    assert.equal(world.rows[1]?.propertiesJson, '{"$ai_model":"m"}')
    assert.match(world.rows[1]!.personPropertiesJson, /"plan":"pro"/)
    assert.deepEqual([world.rows[2]?.personMode, world.rows[2]?.personId], ['full', personUuid(1, 'new')])
    assert.equal(world.rows[2]?.personPropertiesJson, '{}')
    assert.equal(world.state.persons.size, 1)
  })

  it('causes a warning if its time-based uuid is of another day, or once per chunk if it is imported and recent', async () => {
    const world = aWorld()
    const uuid = '0100a000-0000-7000-8000-000000000001'
    await world.apply(anEvent('e', 'ada', {}, { uuid }), anImportedEvent('e', 'ada', 1_789_999_000_000, {}, { uuid }))
    assert.deepEqual(world.warningTypes(), ['event_uuid_timestamp_divergent', 'historical_migration'])
    assert.deepEqual(world.state.warnings[1]?.details, {
      importJobId: 1,
      reasons: { recent: { count: 1, samples: [{ eventUuid: uuid }] } },
      category: 'event',
      severity: 'info',
    })
  })
})
