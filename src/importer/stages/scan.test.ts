import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import type { JsonObject } from '#core/json.ts'
import { generic } from '#importer/sources/generic/generic.ts'
import { mixpanel } from '#importer/sources/mixpanel/mixpanel.ts'
import { jobOf, outcomesOf, resultsOf, StopSwitch, type TestJob } from '../../../tests/support/import-job.ts'
import { runs } from '../../../tests/support/nightly.ts'
import { seededRandom, testSeed } from '../../../tests/support/seeded-random.ts'
import { JobDatabase, jobDatabaseFile } from '../job/job-database.ts'
import { writeManifest } from '../job/manifest.ts'
import type { StagedPart } from '../job/staged-part.ts'
import { deriveImportUuid } from '../records/deterministic-uuid.ts'
import { createRecordEvents } from '../records/generated-events.ts'
import { createInMemoryLedger } from '../records/import-ledger.ts'
import type { ImportSource, SourceRecord } from '../records/import-source.ts'
import type { ConvertedRecord, ImportedEvent } from '../records/imported-event.ts'
import { readFinishedScan } from './scan.ts'

/** A source whose records state directly what they are converted to; `alias` needs a fact of another record. */
const plain: ImportSource = {
  name: 'plain',
  summary: 'for tests',
  prepare: (_config, { findFact }) => ({
    convert: record => convertPlain(record, findFact),
    factsOf: ({ value }) => (typeof value.alias === 'string' ? [{ kind: 'alias', key: 'x', value: value.alias }] : []),
    timeOf: ({ value }) => timeOf(value),
  }),
}

function timeOf({ at }: JsonObject): number {
  return (at as number) * 1_000_000 + Date.UTC(2024, 0, 1) * 1_000
}

function convertPlain(
  { value }: SourceRecord,
  findFact: (kind: string, key: string) => string | null,
): ConvertedRecord {
  const { id, user, device, person, group, shift, own } = value
  const timeUs = timeOf(value)
  const distinctId = user as string
  return {
    events: [
      {
        uuid: deriveImportUuid('plain', 'id', String(id)),
        event: findFact('alias', 'x') ?? 'e',
        distinctId,
        timeUs,
        properties: { id: id!, ...(own === true && { $anon_distinct_id: device! }) },
      },
    ],
    ...(typeof device === 'string' && {
      links: [{ userId: distinctId, deviceId: device, timeUs, properties: {}, isOwnEvent: own === true }],
    }),
    ...(group !== undefined && {
      groups: [{ type: 'org', key: 'a', properties: group as JsonObject, distinctId, timeUs }],
    }),
    ...(person !== undefined && { person: { distinctId, properties: person as JsonObject } }),
    ...(shift !== undefined && { notes: [`zone_shift:${shift}`] }),
  }
}

const oneOf = (...values: readonly string[]) => fc.constantFrom(...values)
const properties = fc.dictionary(oneOf('a', 'b', '__proto__'), fc.integer({ min: 0, max: 2 }), { maxKeys: 3 })
const someRecord = fc.record(
  {
    at: fc.integer({ min: 0, max: 4 * 86_400 }),
    user: oneOf('u-1', 'u-2', 'd-1'),
    device: oneOf('d-1', 'd-2', 'none'),
    own: fc.boolean(),
    person: properties,
    group: fc.option(properties),
  },
  { requiredKeys: ['at', 'user'] },
)

describe('the scan', () => {
  it('stops if hardly any record fits the given time zone', async t => {
    const time = Date.parse('2024-07-01T12:00:00Z') / 1_000
    const records = Array.from({ length: 20 }, (_, n) => ({
      event: 'e',
      properties: {
        ...{ distinct_id: 'u', $insert_id: `i-${n}`, time: time + n },
        $mp_api_timestamp_ms: (time + n) * 1_000,
      },
    }))
    await assert.rejects(
      scanned(t, [records], mixpanel, { config: { source_timezone: 'Europe/Berlin' } }),
      /hardly any record was received at the hour that the zone Europe\/Berlin says: .* UTC or/,
    )
  })

  it('yields the same events for every part as converting its records directly in the order of time', async t => {
    await fc.assert(
      fc.asyncProperty(fc.array(someRecord, { maxLength: 40 }), fc.nat(), async (some, cut) => {
        const records = some.map((record, id) => ({ ...record, id }))
        const middle = cut % (records.length + 1)
        const files = [records.slice(0, middle), records.slice(middle)]
        const { generated, events } = await scannedResults(t, files, plain)
        const ledger = createInMemoryLedger()
        const straight = records
          .toSorted((a, b) => a.at - b.at || a.id - b.id)
          .flatMap(value => {
            const record = { value: JSON.parse(JSON.stringify(value)), table: null, ordinal: 1 }
            return createRecordEvents(
              'plain',
              convertPlain(record, () => null),
              ledger,
            ).events
          })
        assert.deepEqual(sorted([...generated, ...events]), sorted(lastOfGroups(straight)))
      }),
      { numRuns: runs(10, 40) },
    )
  })

  it('leaves a group in its last state, even if the group returns to earlier properties', async t => {
    const said = [{ a: 1 }, { b: 2 }, { a: 1 }].map((group, id) => ({ id, at: id, user: 'u-1', group }))
    const { generated } = await scannedResults(t, [said], plain)
    assert.deepEqual(
      generated.map(({ timeUs, properties }) => [
        timeUs / 1_000_000 - Date.UTC(2024, 0, 1) / 1_000,
        properties.$group_set,
        properties.$group_unset,
      ]),
      [
        [1, { b: 2 }, ['a']],
        [2, { a: 1 }, ['b']],
      ],
    )
  })

  it('yields the same events when it starts at any line of a part, of records or of generated events', async t => {
    const records = Array.from({ length: 20 }, (_, id) => {
      return { id, at: id * 10, user: `u-${id % 3}`, device: `d-${id}`, person: { n: Math.floor(id / 6), always: 1 } }
    })
    using staged = (await scanned(t, [records], plain)).open()
    const whole = await outcomesOf(staged)
    const [linksPart, recordsPart] = staged.parts as [StagedPart, StagedPart]
    for (const afterLine of [1, 7, 19, 20]) {
      const rest = []
      for await (const outcome of staged.readPart(recordsPart, afterLine)) rest.push(outcome)
      assert.deepEqual(
        rest.map(({ line, result }) => ({ line, result })),
        whole.slice(afterLine).map(({ line, result }) => ({ line, result })),
      )
    }
    const links = await Array.fromAsync(staged.readPart(linksPart))
    assert.equal(links.length, 20)
    const rest = await Array.fromAsync(staged.readPart(linksPart, 13))
    assert.deepEqual(
      rest.map(({ result }) => result),
      links.slice(13).map(({ result }) => result),
    )
  })

  it('yields groups before links, each by time', async t => {
    const records = [
      { id: 1, at: 5, user: 'u', device: 'd-1', group: { a: 1 } },
      { id: 2, at: 1, user: 'v', device: 'd-2', group: { a: 2 } },
    ]
    const { generated } = await scannedResults(t, [records], plain)
    assert.deepEqual(
      generated.map(({ event, distinctId }) => [event, distinctId]),
      [
        ['$groupidentify', 'v'],
        ['$groupidentify', 'u'],
        ['$identify', 'v'],
        ['$identify', 'u'],
      ],
    )
  })

  it('links a device to its first user in time, and reports later users as shared', async t => {
    const files = [[{ id: 1, at: 9, user: 'late', device: 'd' }], [{ id: 2, at: 3, user: 'early', device: 'd' }]]
    const { generated, results } = await scannedResults(t, files, plain)
    assert.deepEqual(
      generated.map(({ distinctId }) => distinctId),
      ['early'],
    )
    const notes = results.map(result => result.kind === 'events' && result.notes)
    assert.deepEqual(notes, [[], ['shared_device']])
  })

  it('first collects the facts that records state about other records, and uses the latest fact for each key', async t => {
    const day = 86_400
    const said = ['third', undefined, 'second', 'first'].map((alias, id) => ({
      ...{ id, at: (9 - id) * day, user: 'u', alias },
    }))
    const { events } = await scannedResults(t, [said], plain)
    assert.deepEqual(
      events.map(({ event }) => event),
      said.map(() => 'third'),
    )
  })

  it('is the only stage that converts records, and converts each of them once wherever it was stopped', async t => {
    const seed = testSeed()
    t.diagnostic(`SEED=${seed}`)
    const random = seededRandom(seed)
    const records = Array.from({ length: 300 }, (_, id) => ({
      id,
      at: id * 1_000,
      user: `u-${id % 7}`,
      person: { id },
    }))
    let converted = 0
    const counting: ImportSource = {
      ...plain,
      prepare(config, context) {
        const converter = plain.prepare(config, context)
        const convert = (record: SourceRecord) => {
          converted++
          return converter.convert(record)
        }
        return { ...converter, convert }
      },
    }
    const stop = new StopSwitch()
    const sizes = { committedBytes: 1_000, partBytes: 2_000 }
    const job = jobOf(t, [records], counting, { sizes, onRecord: stop.onRecord })
    const committed = () =>
      JobDatabase.ask(job.folder, database => database.parts().reduce((sum, part) => sum + part.records, 0)) ?? 0
    let lost = 0
    const leftOf = () => Math.floor(random() * 500)
    await stop.runUntilDone(() => job.stage(), leftOf)
    assert.equal(converted, 0)
    await stop.runUntilDone(
      () => job.scan(),
      leftOf,
      () => {
        // A stopped scan loses what it has not committed, which is less than a part.
        const uncommitted = converted - committed() - lost
        assert.ok(uncommitted < 30, String(uncommitted))
        lost += uncommitted
      },
    )
    assert.equal(converted, records.length + lost)
    await job.rehearse()
    assert.equal((await resultsOf(job)).outcomes.length, records.length)
    assert.equal(converted, records.length + lost)
  })

  it('collapses a repeated line without an id, and skips a repeated id', async t => {
    const [without, withId] = [
      { event: 'e', user: 'u', at: '2024-05-01T00:00:00Z' },
      { id: 'r-1', event: 'e', user: 'u', at: '2024-05-01T00:00:00Z' },
    ]
    const records = [
      without,
      withId,
      { at: without.at, user: 'u', event: 'e' },
      withId,
      { ...withId, event: 'other' },
      { ...withId, price: 5 },
    ]
    const mapping = { event: 'event', distinct_id: 'user', timestamp: 'at', uuid: 'id' }
    const { results } = await scannedResults(t, [records], generic, { config: { mapping } })
    assert.deepEqual(
      results.map(result => ('reason' in result ? result.reason : result.kind)),
      ['events', 'events', 'collapsed', 'duplicate_in_source', 'events', 'differs_in_source'],
    )
  })

  for (const [what, damage] of Object.entries<(job: TestJob) => void>({
    'its database is missing': job => rmSync(job.folder.file(jobDatabaseFile)),
    'its database is damaged': job => writeFileSync(job.folder.file(jobDatabaseFile), 'x'.repeat(9_000)),
    'a part is missing from its database': job => change(job, "DELETE FROM part WHERE id = 'links/0'"),
    'a part in its database is damaged': job => change(job, "UPDATE part SET described = '{' WHERE id = 'links/0'"),
    'its database has other tables': job => change(job, 'DROP TABLE part; CREATE TABLE part (other)'),
    'it was of another plan': job => {
      const { mappingSha256, ...manifest } = JSON.parse(JSON.stringify(job.manifest))
      writeManifest(job.folder, { ...manifest, mappingSha256: `${mappingSha256}0` })
    },
  }))
    it(`is repeated with the same result if ${what}`, async t => {
      const records = [1, 2, 3].map(id => ({ id, at: id, user: `u-${id}`, device: `d-${id}`, person: { id } }))
      const job = await scanned(t, [records], plain)
      const { manifest } = job
      const { generated, results } = await resultsOf(job)
      assert.deepEqual(readFinishedScan(job.folder, job.plan), manifest)
      damage(job)
      assert.equal(readFinishedScan(job.folder, job.plan), null)
      JobDatabase.remove(job.folder)
      await job.stageAndScan()
      assert.deepEqual(readFinishedScan(job.folder, job.plan), manifest)
      const after = await resultsOf(job)
      assert.deepEqual([after.generated, after.results], [generated, results])
    })

  for (const [what, sql] of Object.entries({
    'of the wrong form': `UPDATE progress SET value = '[]' WHERE name = 'scan'`,
    'not JSON': `UPDATE progress SET value = '{"par' WHERE name = 'scan'`,
    'of other records': `UPDATE progress SET value = '"other"' WHERE name = 'records'`,
  }))
    it(`begins again if the progress of a stopped scan is ${what}`, async t => {
      const stop = new StopSwitch()
      const records = [1, 2, 3].map(id => ({ id, at: id * 86_400, user: `u-${id}`, device: `d-${id}` }))
      const job = jobOf(t, [records], plain, { onRecord: stop.onRecord })
      await job.stage()
      stop.left = 2
      await assert.rejects(job.scan(), /stopped here/)
      change(job, sql)
      await job.scan()
      assert.equal((await resultsOf(job)).outcomes.length, 3)
    })

  it('names a part whose bytes changed or that is missing, with a remedy', async t => {
    const job = await scanned(t, [[{ id: 1, at: 1, user: 'u' }]], plain)
    change(job, "UPDATE part SET lines = x'00'")
    const remedy = /Delete .*job\.db and run again: it is rebuilt from the files of the export/
    for (const [sql, problem] of [
      ["UPDATE part SET lines = x'00'", /part 2024-01-01\/0 in .*job\.db has changed since it was written/],
      ['DELETE FROM part', /part 2024-01-01\/0 in .*job\.db is missing/],
    ] as const) {
      change(job, sql)
      await assert.rejects(resultsOf(job), problem)
      await assert.rejects(resultsOf(job), remedy)
    }
  })

  it('stops before sending if most times are off by the same number of hours, and names the offset', async t => {
    const records = [7_200, 7_200, 7_200, 0].map((shift, id) => ({ id, at: id, user: 'u', shift }))
    await assert.rejects(scanned(t, [records], plain), /75 % of the records are \+02:00 away.*--source-timezone/)
    await scanned(t, [records.map(record => ({ ...record, shift: 0 }))], plain)
  })
})

function change({ folder }: TestJob, sql: string): void {
  const database = new Database(folder.file(jobDatabaseFile))
  database.exec(sql)
  database.close()
}

async function scanned(...[t, files, source, options]: Parameters<typeof jobOf>): Promise<TestJob> {
  const job = jobOf(t, files, source, options)
  await job.stageAndScan()
  return job
}

async function scannedResults(...given: Parameters<typeof jobOf>) {
  return resultsOf(await scanned(...given))
}

function sorted(events: readonly ImportedEvent[]): string[] {
  return events.map(event => JSON.stringify(event)).toSorted()
}

/** The service stores only one of several group events with the same uuid, so only the last is sent. */
function lastOfGroups(events: readonly ImportedEvent[]): ImportedEvent[] {
  return events.filter(
    ({ event, uuid }, index) =>
      event !== '$groupidentify' || !events.slice(index + 1).some(later => later.uuid === uuid),
  )
}
