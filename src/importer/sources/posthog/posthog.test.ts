import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import { parseCsvHeader, parseCsvRow } from '#importer/read/parse-record.ts'
import { deriveContentUuid, deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import type { ExportEncoder } from '#wire/exports/export-column.ts'
import { type ExportedEventRow, eventColumns } from '#wire/exports/exported-columns.ts'
import { createCsvEncoder, createJsonlEncoder } from '#wire/exports/text-formats.ts'
import type { EventToEncode } from '#wire/management/events.ts'
import { convertRecords, droppedOf, eventsOf } from '../../../../tests/support/convert-records.ts'
import { posthog } from './posthog.ts'

const uuid = '018f3a10-0000-7000-8000-000000000701'
const row = { uuid, event: 'Opened', distinct_id: 'u-1', properties: {}, timestamp: '2024-05-01 12:00:00.123456' }

describe('a PostHog event', () => {
  it('is carried over unchanged, without the metadata of the export', () => {
    const record = {
      ...row,
      properties: { $lib: 'web', $lib_version: '1.2', $ip: '192.0.2.1', empty: '', offset: 5 },
      person_id: 'p-1',
      created_at: '2024-05-01 12:00:02',
      offset: 10,
      sent_at: '2024-05-01 13:00:00',
      elements_chain: 'button',
      site: 'eu',
    }
    assert.deepEqual(eventsOf(posthog, [record]), [
      {
        uuid,
        event: 'Opened',
        distinct_id: 'u-1',
        timestamp: '2024-05-01T12:00:00.123456Z',
        properties: {
          $lib: 'web',
          $lib_version: '1.2',
          $ip: '192.0.2.1',
          empty: '',
          offset: 5,
          $elements_chain: 'button',
          site: 'eu',
        },
      },
    ])
  })

  it('drops the metadata columns of a Pennon export, which are ordinary properties in any other export', async () => {
    const event: Partial<EventToEncode> = {
      ...{
        uuid,
        event: 'Opened',
        distinctId: 'u-1',
        timestampMs: Date.UTC(2024, 4, 1),
        propertiesJson: '{"plan":"pro"}',
      },
      ...{ personId: 'p-1', personMode: 'full', personCreatedAtMs: 1, personPropertiesJson: '{}', elementsChain: '' },
      ...{ lane: 'main', historicalMigration: false, importJobId: 3, capturedAtMs: 2, createdAtMs: 3 },
    }
    const rows = [{ event: event as EventToEncode, cursor: 'c-1' }]
    const text = async (encoder: ExportEncoder<ExportedEventRow>) =>
      [encoder.begin(), ...(await Array.fromAsync(encoder.encode(rows)))].join('')
    const line = parseJson(await text(createJsonlEncoder(eventColumns))) as JsonObject
    const [header, cells] = (await text(createCsvEncoder(eventColumns))).trim().split('\r\n')
    const columns = parseCsvHeader(Buffer.from(header!))
    assert.ok('columns' in columns)
    const row = parseCsvRow(Buffer.from(cells!), columns)
    assert.ok('value' in row)
    const bookkeeping = ['cursor', 'lane', 'captured_at', 'import_job_id', 'person_created_at']
    for (const record of [line, row.value]) {
      const [own] = eventsOf(posthog, [record])
      assert.deepEqual(own!.properties, { plan: 'pro', historical_migration: record.historical_migration })
      const dropped = droppedOf(posthog, record)
      assert.deepEqual(
        bookkeeping.filter(name => !dropped.includes(name)),
        [],
      )
    }
    const { lane: _, ...other } = line
    const [foreign] = eventsOf(posthog, [other])
    assert.deepEqual([foreign!.properties.cursor, String(foreign!.properties.import_job_id)], ['c-1', '3'])
  })

  it('keeps number literals in properties that are given as JSON text', () => {
    const [event] = eventsOf(posthog, [{ ...row, properties: '{"id":9007199254740993}' }])
    assert.equal(JSON.stringify(event!.properties), '{"id":9007199254740993}')
  })

  it('is refused when its properties are not an object', () => {
    for (const properties of ['[1]', 'x', 7, [1]])
      assert.deepEqual(convertRecords(posthog, [{ ...row, properties }]), [
        { rejected: { reason: 'properties_not_object', field: 'properties' } },
      ])
  })

  it('gets a derived uuid if its own is invalid, with a note', () => {
    const [outcome] = convertRecords(posthog, [{ ...row, uuid: 'x-1' }])
    assert.ok('events' in outcome!)
    assert.equal(outcome.events[0]!.uuid, deriveImportUuid('posthog', 'uuid', 'x-1'))
    assert.deepEqual(outcome.notes, ['invalid_uuid'])
    const { uuid: _, ...without } = row
    assert.equal(eventsOf(posthog, [without])[0]!.uuid, deriveContentUuid('posthog', without))
  })

  it('has a note about `groups` without the dollar sign unless the configuration promotes them', () => {
    const record = { ...row, properties: { groups: { org: 'acme' } } }
    const [outcome] = convertRecords(posthog, [record])
    assert.partialDeepStrictEqual(outcome, { notes: ['groups_without_dollar'] })
    assert.deepEqual(eventsOf(posthog, [record])[0]!.properties, { groups: { org: 'acme' } })
    assert.deepEqual(eventsOf(posthog, [record], { promote_groups: true })[0]!.properties, { $groups: { org: 'acme' } })
  })

  it('loses the updates of its person only if the configuration says so', () => {
    const properties: JsonObject = { $set: { a: 1 }, $set_once: { b: 1 }, $unset: ['c'], $group_set: { d: 1 } }
    assert.deepEqual(eventsOf(posthog, [{ ...row, properties }])[0]!.properties, properties)
    const [stripped] = eventsOf(posthog, [{ ...row, properties }], { strip_person_updates: true })
    assert.deepEqual(stripped!.properties, { $group_set: { d: 1 } })
    const beside: JsonObject = { ...row, $set: { a: 1 }, $set_once: { b: 1 }, $unset: ['c'], site: 'eu' }
    assert.deepEqual(eventsOf(posthog, [beside], { strip_person_updates: true })[0]!.properties, { site: 'eu' })
    const lost = ['properties.$set.a', 'properties.$set_once.b', 'properties.$unset.c']
    assert.deepEqual(droppedOf(posthog, { ...row, properties }, { strip_person_updates: true }), lost)
    assert.deepEqual(droppedOf(posthog, { ...row, properties }), [])
    const lostBeside = ['$set.a', '$set_once.b', '$unset.c']
    assert.deepEqual(droppedOf(posthog, beside, { strip_person_updates: true }), lostBeside)
  })
})

describe('the ids of a PostHog person', () => {
  const id = (distinct_id: string) => ({
    distinct_id,
    person_id: 'p-1',
    person_distinct_id_version: 0,
    created_at: '2024-05-01 12:00:00',
  })

  it('are merged into the first id if the configuration allows dangerous merges', () => {
    const rows = [id('u-1'), id('u-2'), id('u-1')]
    const outcomes = convertRecords(posthog, rows, { allow_dangerous_merge: true })
    const merged = outcomes.flatMap(outcome => ('events' in outcome ? outcome.events : []))
    assert.equal(merged.length, 1)
    const ids = [merged[0]!.distinct_id, merged[0]!.properties.alias as string]
    assert.deepEqual(ids.toSorted(), ['u-1', 'u-2'])
    assert.equal(merged[0]!.uuid, deriveImportUuid('merge', 'posthog', ...ids))
  })

  /** @returns each merge as `into alias`. */
  const mergesOf = (rows: readonly JsonObject[]) =>
    convertRecords(posthog, rows, { allow_dangerous_merge: true }).flatMap(outcome =>
      'events' in outcome ? outcome.events.map(event => `${event.distinct_id} ${event.properties.alias}`) : [],
    )

  it('do not include deleted ids, however is_deleted is spelt', () => {
    for (const is_deleted of [true, 1, '1', 'true']) {
      const gone = { ...id('u-2'), person_distinct_id_version: 1, is_deleted }
      assert.deepEqual(mergesOf([id('u-1'), id('u-2'), gone, id('u-3')]), ['u-1 u-3'])
      assert.deepEqual(mergesOf([gone, id('u-2'), id('u-1'), id('u-3')]), ['u-1 u-3'])
      assert.deepEqual(mergesOf([gone, { ...id('u-2'), person_distinct_id_version: 2 }, id('u-3')]), ['u-2 u-3'])
    }
    for (const is_deleted of [false, 0, '0', null, '']) {
      assert.deepEqual(mergesOf([id('u-1'), { ...id('u-2'), is_deleted }]), ['u-1 u-2'])
    }
  })

  it('are those of the highest version if an id moved between persons', () => {
    const moved = (distinctId: string, person_id: string, version: number | string) => ({
      ...{ ...id(distinctId), person_id, person_distinct_id_version: version },
    })
    const rows = [moved('x', 'p-1', 0), moved('a', 'p-1', 0), moved('b', 'p-1', 0), moved('c', 'p-2', 0)]
    assert.deepEqual(mergesOf(rows), ['x a', 'x b'])
    assert.deepEqual(mergesOf([...rows, moved('x', 'p-2', '1')]), ['a b', 'c x'])
    assert.deepEqual(mergesOf([moved('x', 'p-2', 1), ...rows]), ['a b', 'x c'])
    assert.deepEqual(mergesOf([moved('x', 'p-2', 1), ...rows, moved('x', 'p-1', 2)]), ['x a', 'x b'])
  })

  it('are rejected if they need a merge that the configuration does not allow', () => {
    const reasons = convertRecords(posthog, [id('u-1'), id('u-2')]).map(outcome =>
      'rejected' in outcome ? outcome.rejected.reason : 'skipped',
    )
    assert.deepEqual(reasons, ['skipped', 'merge_needs_approval'])
  })
})
