import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import type { JsonObject } from '#core/json.ts'
import { generic } from '#importer/sources/generic/generic.ts'
import { mixpanel } from '#importer/sources/mixpanel/mixpanel.ts'
import { outcomesOf, TestJob, type TestJobOptions } from '../../../tests/support/import-job.ts'
import { runs } from '../../../tests/support/nightly.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { JobLedger } from '../job/ledger.ts'
import { rootUuid } from '../records/deterministic-uuid.ts'
import { Type } from '../records/file-schema.ts'
import { createRecordEvents } from '../records/generated-events.ts'
import { createMemoryLedger } from '../records/import-ledger.ts'
import type { ImportSource, SourceRecord } from '../records/import-source.ts'
import type { ConvertedRecord, ImportedEvent } from '../records/imported-event.ts'
import { ledgerFile, readScan } from './scan.ts'
import { nameScanNotesFile } from './scan-notes.ts'

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
        uuid: rootUuid('plain', 'id', String(id)),
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
  it('stops if hardly any record fits the given zone', async t => {
    const config = { source_timezone: 'Europe/Berlin' }
    const raw = join(tempDir(t), 'raw.json')
    const time = Date.parse('2024-07-01T12:00:00Z') / 1_000
    const lineOf = (n: number) =>
      JSON.stringify({
        event: 'e',
        properties: {
          distinct_id: 'u',
          $insert_id: `i-${n}`,
          time: time + n,
          $mp_api_timestamp_ms: (time + n) * 1_000,
        },
      })
    writeFileSync(raw, Array.from({ length: 20 }, (_, n) => `${lineOf(n)}\n`).join(''))
    const job = new TestJob(tempDir(t), mixpanel, [raw], { config })
    await job.stage()
    await assert.rejects(
      job.scan(),
      /hardly any record was received at the hour that the zone Europe\/Berlin says: .* UTC or/,
    )
  })

  it('makes every part yield the same as a direct conversion in time order', async t => {
    await fc.assert(
      fc.asyncProperty(fc.array(someRecord, { maxLength: 40 }), fc.nat(), async (some, cut) => {
        const records = some.map((record, id) => ({ ...record, id }))
        const middle = cut % (records.length + 1)
        const job = await scanned(t, [records.slice(0, middle), records.slice(middle)], plain)
        const staged = job.open()
        try {
          const generated = [...staged.generatedEvents()].map(({ event }) => event)
          const own = (await outcomesOf(staged)).flatMap(({ result }) =>
            result.kind === 'events' ? result.events : [],
          )
          const ledger = createMemoryLedger()
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
          assert.deepEqual(sorted([...generated, ...own]), sorted(lastOfGroups(straight)))
          assert.equal(staged.generatedCount, generated.length)
        } finally {
          staged.close()
        }
      }),
      { numRuns: runs(10, 40) },
    )
  })

  it('sends a group that returns to earlier properties with its last state', async t => {
    const said = [{ a: 1 }, { b: 2 }, { a: 1 }].map((group, id) => ({ id, at: id, user: 'u-1', group }))
    const staged = (await scanned(t, [said], plain)).open()
    t.after(() => staged.close())
    assert.deepEqual(
      [...staged.generatedEvents()].map(({ event: { timeUs, properties } }) => [
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

  it('yields the same events from any line of a part, and from any generated event', async t => {
    const records = Array.from({ length: 20 }, (_, id) => {
      return { id, at: id * 10, user: `u-${id % 3}`, device: `d-${id}`, person: { n: Math.floor(id / 6), always: 1 } }
    })
    const staged = (await scanned(t, [records], plain)).open()
    t.after(() => staged.close())
    const whole = await outcomesOf(staged)
    for (const afterLine of [1, 7, 19, 20]) {
      const rest = []
      for await (const outcome of staged.readPart(staged.parts[0]!, afterLine)) rest.push(outcome)
      assert.deepEqual(
        rest.map(({ line, byteEnd, result }) => ({ line, byteEnd, result })),
        whole.slice(afterLine).map(({ line, byteEnd, result }) => ({ line, byteEnd, result })),
      )
    }
    const generated = [...staged.generatedEvents()]
    assert.equal(generated.length, 20)
    assert.deepEqual([...staged.generatedEvents({ afterIndex: 12 })], generated.slice(13))
  })

  it('yields groups before links, each by time', async t => {
    const job = await scanned(
      t,
      [
        [
          { id: 1, at: 5, user: 'u', device: 'd-1', group: { a: 1 } },
          { id: 2, at: 1, user: 'v', device: 'd-2', group: { a: 2 } },
        ],
      ],
      plain,
    )
    const staged = job.open()
    t.after(() => staged.close())
    assert.deepEqual(
      [...staged.generatedEvents()].map(({ event: { event, distinctId } }) => [event, distinctId]),
      [
        ['$groupidentify', 'v'],
        ['$groupidentify', 'u'],
        ['$identify', 'v'],
        ['$identify', 'u'],
      ],
    )
  })

  it('links a device to its first user by time, and reports later users as shared', async t => {
    const job = await scanned(
      t,
      [[{ id: 1, at: 9, user: 'late', device: 'd' }], [{ id: 2, at: 3, user: 'early', device: 'd' }]],
      plain,
    )
    const staged = job.open()
    t.after(() => staged.close())
    assert.deepEqual(
      [...staged.generatedEvents()].map(({ event }) => event.distinctId),
      ['early'],
    )
    const notes = (await outcomesOf(staged)).map(({ result }) => result.kind === 'events' && result.notes)
    assert.deepEqual(notes, [[], ['shared_device']])
  })

  it('knows the facts of all records before it converts any', async t => {
    const staged = (
      await scanned(
        t,
        [
          [
            { id: 1, at: 1, user: 'u' },
            { id: 2, at: 2, user: 'u', alias: 'named' },
          ],
        ],
        plain,
      )
    ).open()
    t.after(() => staged.close())
    const events = (await outcomesOf(staged)).flatMap(({ result }) => (result.kind === 'events' ? result.events : []))
    assert.deepEqual(
      events.map(({ event }) => event),
      ['named', 'named'],
    )
  })

  it('collects facts along the way, and reads those of later parts once a record asks', async t => {
    const day = 86_400
    const said = ['first', 'second', undefined, 'third', undefined].map((alias, id) => ({
      id,
      at: id * day,
      user: 'u',
      alias,
    }))
    const asks: ImportSource = {
      ...plain,
      prepare(config, context) {
        const silent = plain.prepare(config, { ...context, findFact: () => null })
        const asking = plain.prepare(config, context)
        return { ...silent, convert: record => (record.value.id === 2 ? asking : silent).convert(record) }
      },
    }
    const job = await scanned(t, [said], asks)
    const { outcomes } = await allOf(job)
    assert.deepEqual(
      outcomes.map(result => result.kind === 'events' && result.events[0]!.event),
      ['e', 'e', 'third', 'e', 'e'],
    )
    const silent = await scanned(t, [said.filter(({ id }) => id !== 2)], asks)
    for (const { folder, manifest } of [job, silent]) {
      const ledger = new JobLedger(folder.file(ledgerFile))
      assert.equal(ledger.findFact('alias', 'x'), 'third')
      assert.equal(ledger.readProgress('fact_parts', Type.Number()), manifest.parts.length)
      ledger.close()
    }
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
    const job = await scanned(t, [records], generic, { config: { mapping } })
    const staged = job.open()
    t.after(() => staged.close())
    assert.deepEqual(
      (await outcomesOf(staged)).map(({ result }) => ('reason' in result ? result.reason : result.kind)),
      ['events', 'events', 'collapsed', 'duplicate_in_source', 'events', 'differs_in_source'],
    )
  })

  for (const [what, damage] of Object.entries<(job: TestJob) => void>({
    'the ledger is missing': job => rmSync(job.folder.file(ledgerFile)),
    'the ledger is damaged': job => writeFileSync(job.folder.file(ledgerFile), 'x'.repeat(9_000)),
    'links are missing from the ledger': job => change(job, 'DELETE FROM generated'),
    'the ledger has other tables': job => change(job, 'DROP TABLE link; CREATE TABLE link (other)'),
    'the progress in the ledger has the wrong form': job =>
      change(job, `UPDATE progress SET value = '{"parts": []}' WHERE name = 'counts'`),
    'the progress in the ledger is not JSON': job => change(job, `UPDATE progress SET value = '{"par'`),
    'a stopped scan left progress of the wrong form': job => {
      rmSync(job.folder.file('stats.json'))
      change(job, `UPDATE progress SET value = '[]' WHERE name = 'counts'`)
    },
    'the notes of a part are missing': job => rmSync(job.folder.file('scanned'), { recursive: true }),
  }))
    it(`is repeated with the same result if ${what}`, async t => {
      const records = [1, 2, 3].map(id => ({ id, at: id, user: `u-${id}`, device: `d-${id}`, person: { id } }))
      const job = await scanned(t, [records], plain)
      const before = await allOf(job)
      const stats = readScan(job.folder, job.manifest)
      assert.match(stats?.ledgerSha256 ?? '', /^[0-9a-f]{64}$/)
      damage(job)
      assert.equal(readScan(job.folder, job.manifest), null)
      await job.scan()
      assert.deepEqual(readScan(job.folder, job.manifest), stats)
      assert.deepEqual(await allOf(job), before)
    })

  it('names the file whose notes are damaged', async t => {
    const job = await scanned(t, [[{ id: 1, at: 1, user: 'u', device: 'd', person: { a: 1 } }]], plain)
    const path = job.folder.file(nameScanNotesFile(job.manifest.parts[0]!))
    const bytes = readFileSync(path)
    bytes[bytes.length - 1]! ^= 1
    writeFileSync(path, bytes)
    await assert.rejects(allOf(job), ({ message }: Error) => message.startsWith(`${path} cannot be read`))
  })

  it('stops before sending if most times are off by the same hours, and names the offset', async t => {
    const records = [7_200, 7_200, 7_200, 0].map((shift, id) => ({ id, at: id, user: 'u', shift }))
    await assert.rejects(scanned(t, [records], plain), /75 % of the records are \+02:00 away.*--source-timezone/)
    await scanned(t, [records.map(record => ({ ...record, shift: 0 }))], plain)
  })
})

function change({ folder }: TestJob, sql: string): void {
  const ledger = new Database(folder.file(ledgerFile))
  ledger.exec(sql)
  ledger.close()
}

async function scanned(
  t: TestContext,
  files: readonly (readonly object[])[],
  source: ImportSource,
  options: TestJobOptions = {},
): Promise<TestJob> {
  const raw = tempDir(t)
  const paths = files.map((records, index) => {
    const path = join(raw, `${index}.jsonl`)
    writeFileSync(path, records.map(record => `${JSON.stringify(record)}\n`).join(''))
    return path
  })
  const job = new TestJob(tempDir(t), source, paths, options)
  await job.stage()
  await job.scan()
  return job
}

async function allOf(job: TestJob) {
  const staged = job.open()
  try {
    return {
      generated: [...staged.generatedEvents()],
      outcomes: (await outcomesOf(staged)).map(({ result }) => result),
    }
  } finally {
    staged.close()
  }
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
