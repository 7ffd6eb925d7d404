// Exports over a real front and a real engine, opened by other people's tools.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { ClickHouseClients } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import { openEventExport, usualExportLimits } from '#adapters/clickhouse/exports/event-export.ts'
import { createExportQueries, type RunExportQuery } from '#adapters/clickhouse/exports/export-queries.ts'
import type { StoredEvent } from '#core/events/stored-event.ts'
import { dayMs } from '#core/time.ts'
import { PortError } from '#ports/port-error.ts'
import { pythonWithPackages } from '../sdk/python-environment.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { allScopesKey, startManagement } from '../support/management-api.ts'
import { download } from '../support/raw-download.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aStoredEvent } from '../support/values.ts'

const headers = { authorization: `Bearer ${allScopesKey}` }
const path = '/api/projects/1/events/export/'

const scripts = [
  'Привет',
  '日本語の名前',
  'שלום',
  'مرحبا',
  'ไทย',
  'हिन्दी',
  '👩‍👩‍👧',
  'naïve café',
  'ﷺ',
  '\u202eright to left',
]
const awkward = [
  '{"n":1.0,"m":-0,"e":1e400,"f":0.1000000000000000055}',
  '{"id":12345678901234567890,"negative":-9223372036854775808}',
  '{"a":1,"a":2,"a":{"a":3}}',
  '{"nul":"\\u0000","lone":"\\ud800","pair":"\\ud83d\\ude00","slash":"\\/"}',
  '{"nothing":null,"t":true,"deep":[[[[null]]]],"":""}',
  '{"quote":"\\"","comma":",","crlf":"\\r\\n","tab":"\\t","backslash":"\\\\"}',
  '{ "spaced" : [ 1 , 2 ] ,\n  "lines" : "\u2028\u2029" }',
  `{"large":"${'ü,"'.replace('"', '\\"').repeat(225_000)}"}`,
  '{}',
]
const names = [
  'a,b',
  'say "hi"',
  'two\nlines',
  'cr\rlf\r\n',
  '=cmd|x',
  ' lead',
  'trail ',
  '\ttab',
  "it's",
  ';',
  ...scripts,
]

const awkwardEvents: readonly StoredEvent[] = names.map((name, index) =>
  aStoredEvent({
    event: name,
    distinctId: names[(index * 7 + 3) % names.length]!,
    timestampMs: Date.parse('2026-11-05T10:00:00.000Z') + Math.floor(index / 3) - 40_000_000_000 * (index % 5),
    propertiesJson: awkward[index % awkward.length]!,
    personPropertiesJson: awkward[(index + 4) % awkward.length]!,
    personCreatedAtMs: index % 4 === 0 ? 0 : Date.parse('2026-10-01T00:00:00Z'),
    elementsChain: index % 6 === 0 ? 'a.link:href="/x,y"text="„“\n"' : '',
    personMode: index % 2 === 0 ? 'full' : 'propertyless',
  }),
)

describe('event exports from a real engine', () => {
  const held = eventStoreForTests({
    exports: { retryPausesMs: [1] },
    begin: async () => {
      const { refused } = await held.insert({ events: awkwardEvents })
      assert.deepEqual(refused, [])
    },
  })

  /** What a tool read, as its rows of [uuid, event, distinct id, properties, person properties, time]. */
  function assertWhole(rows: readonly (readonly unknown[])[], keep = (json: string) => json): void {
    assert.equal(rows.length, awkwardEvents.length)
    const byUuid = new Map(rows.map(([uuid, ...rest]) => [uuid, rest]))
    for (const event of awkwardEvents)
      assert.deepEqual(
        byUuid.get(event.uuid),
        [
          ...[event.event, event.distinctId, keep(event.propertiesJson), keep(event.personPropertiesJson)],
          event.timestampMs,
        ],
        event.event,
      )
  }

  async function saved(t: TestContext, format: string): Promise<string> {
    const api = await startManagement(t, { events: held.store })
    const { status, bytes, isComplete } = await download(`${api.url}${path}?format=${format}`, headers)
    assert.deepEqual([status, isComplete], [200, true])
    const file = join(tempDir(t), `events.${format}`)
    writeFileSync(file, bytes)
    return file
  }

  /** @param program prints a JSON list of rows. */
  function python(program: string, file: string): unknown[][] {
    const options = {
      maxBuffer: 2 ** 27,
      encoding: 'utf8',
      env: { ...process.env, PYTHONIOENCODING: 'utf-8' },
    } as const
    return JSON.parse(
      execFileSync(pythonWithPackages('duckdb-2.0.0', ['duckdb==2.0.0']), ['-c', program, file], options),
    )
  }

  it('are read completely by Python’s csv module', async t => {
    const file = await saved(t, 'csv')
    const rows = python(
      `import csv, json, sys, datetime
csv.field_size_limit(2**30)
ms = lambda text: round(datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp() * 1000)
with open(sys.argv[1], newline='', encoding='utf-8') as f:
    print(json.dumps([[r['uuid'], r['event'], r['distinct_id'], r['properties'], r['person_properties'], ms(r['timestamp'])]
      for r in csv.DictReader(f, strict=True)]))`,
      file,
    )
    assertWhole(rows)
  })

  it('are read completely by DuckDB, as Parquet', async t => {
    const file = await saved(t, 'parquet')
    const rows = python(
      `import duckdb, json, sys
print(json.dumps(duckdb.sql(f"""select uuid, event, distinct_id, properties, person_properties, epoch_ms("timestamp")
  from '{sys.argv[1]}'""").fetchall()))`,
      file,
    )
    assertWhole(rows)
    const kinds = python(
      `import duckdb, json, sys
print(json.dumps([[name, kind] for name, kind, *_ in duckdb.sql(f"describe select * from '{sys.argv[1]}'").fetchall()]
 + duckdb.sql(f"""select decode(key), decode(value) from parquet_kv_metadata('{sys.argv[1]}')""").fetchall()
 + duckdb.sql(f"""select 'no creation', count(*) from '{sys.argv[1]}' where person_created_at is null""").fetchall()))`,
      file,
    )
    const kindOf = Object.fromEntries(kinds)
    assert.deepEqual(
      [kindOf.properties, kindOf.historical_migration, kindOf.import_job_id, kindOf['pennon.export.complete']],
      ['VARCHAR', 'BOOLEAN', 'BIGINT', 'true'],
    )
    assert.match(kindOf.timestamp as string, /^TIMESTAMP/)
    assert.equal(kindOf['no creation'], awkwardEvents.filter(event => event.personCreatedAtMs === 0).length)
  })

  it('are read completely by jq, line by line, and the lines keep every byte of the properties', async t => {
    const whole = await saved(t, 'jsonl')
    // jq refuses the escape of half a surrogate pair, which is JSON, and which a client may send.
    const isJqs = (line: string) => !line.includes('\\ud800')
    const file = join(tempDir(t), 'for-jq.jsonl')
    writeFileSync(file, readFileSync(whole, 'utf8').split('\n').filter(isJqs).join('\n'))
    const options = { maxBuffer: 2 ** 27, encoding: 'utf8' } as const
    const names = execFileSync('jq', ['-c', '[.uuid, .event, .distinct_id]', file], options).trimEnd().split('\n')
    assert.deepEqual(
      names.map(line => JSON.parse(line)).toSorted(),
      awkwardEvents
        .filter(event => isJqs(event.propertiesJson + event.personPropertiesJson))
        .map(({ uuid, event, distinctId }) => [uuid, event, distinctId])
        .toSorted(),
    )
    const sent = readFileSync(whole, 'utf8').trimEnd().split('\n')
    const rows = sent.map(line => {
      const { uuid, event, distinct_id, timestamp } = JSON.parse(line)
      const [, properties, personProperties] =
        /"properties":(.*),"person_id":".*?,"person_properties":(.*),"elements_chain":/s.exec(line)!
      return [uuid, event, distinct_id, properties, personProperties, Date.parse(timestamp)]
    })
    assertWhole(rows, json => json.replaceAll('\n', ' '))
  })

  it('of 200,000 events are loaded one slice at a time, in order, each event once', async () => {
    await seedMany(held.clients, 2, 200_000)
    const { batches, eventCountMax } = await held.store.openEventExport(
      { projectId: 2, descending: true },
      AbortSignal.timeout(120_000),
    )
    assert.equal(eventCountMax, 200_000)
    const seen = new Set<string>()
    let [charsMax, lastMs] = [0, Number.POSITIVE_INFINITY]
    for await (const batch of batches) {
      let chars = 0
      for (const { event } of batch) {
        chars += event.propertiesJson.length + event.personPropertiesJson.length
        assert.ok(event.timestampMs <= lastMs)
        lastMs = event.timestampMs
        seen.add(event.uuid)
      }
      charsMax = Math.max(charsMax, chars)
    }
    assert.equal(seen.size, 200_000)
    assert.ok(charsMax <= 16 * 1024 * 1024, `${charsMax} characters of text at once`)
  })

  it('of a busy day read each row a fixed number of times, however many rows the day has', async () => {
    const { once, patiently } = createExportQueries(held.clients)(AbortSignal.timeout(120_000))
    let rowsRead = 0
    /** Asks twice: the format with statistics says how many rows the engine read. */
    const counting =
      (ask: RunExportQuery): RunExportQuery =>
      query =>
        ask(async (client, signal) => {
          const count = async (params: Parameters<typeof client.query>[0]) => {
            const result = await client.query({ ...params, format: 'JSONCompact' })
            rowsRead += (await result.json()).statistics!.rows_read
          }
          const counted: Pick<typeof client, 'query' | 'exec'> = {
            query: async params => {
              await count(params)
              return client.query(params)
            },
            exec: async params => {
              await count({ ...params, query: params.query.replace('FORMAT JSONCompactEachRow', '') })
              return client.exec(params)
            },
          }
          return query(Object.assign(Object.create(client), counted), signal)
        })
    const ask = { once: counting(once), patiently: counting(patiently) }
    const limits = { ...usualExportLimits, dayRowsMax: 0, sliceRowsMax: 10_000, sliceBytesMax: 4 * 1024 * 1024 }
    const perRow: number[] = []
    for (const [projectId, count] of [
      [4, 20_000],
      [5, 60_000],
    ] as const) {
      await seedMany(held.clients, projectId, count, dayMs)
      rowsRead = 0
      const { batches } = await openEventExport(ask, { projectId, descending: true }, limits)
      const seen = new Set<string>()
      for await (const batch of batches) for (const { event } of batch) seen.add(event.uuid)
      assert.equal(seen.size, count)
      perRow.push(rowsRead / count)
    }
    const [few, many] = perRow as [number, number]
    assert.ok(many < 25 && many < few * 1.3, `read ${few.toFixed(1)}, then ${many.toFixed(1)} rows for each`)
  })

  it('split a part that is too large for one query, and continue', async () => {
    await seedMany(held.clients, 3, 5_000)
    const { once, patiently } = createExportQueries(held.clients)(AbortSignal.timeout(60_000))
    const limits = { ...usualExportLimits, windowRowsMin: 2_000, sliceRowsMax: 1_000, sliceBytesMax: 1024 * 1024 }
    const uuids: string[][] = []
    let asked = 0
    // None fails; then the histogram, a division and some slices do, for their time or their size.
    for (const failures of [{}, { 0: 'timeout', 7: 'full', 30: 'timeout' }] as const) {
      asked = 0
      const failing: RunExportQuery = query => {
        const code = Object.entries(failures).find(([at]) => Number(at) === asked)?.[1]
        asked++
        if (code !== undefined) throw new PortError('event-store', code, new Error('too much'))
        return patiently(query)
      }
      const query = { projectId: 3, descending: false }
      const { batches } = await openEventExport({ once, patiently: async asking => failing(asking) }, query, limits)
      uuids.push((await Array.fromAsync(batches, batch => [...batch])).flat().map(({ event }) => event.uuid))
    }
    assert.ok(asked > 20, `${asked} queries`)
    assert.equal(new Set(uuids[0]).size, 5_000)
    assert.deepEqual(uuids[1], uuids[0])
  })

  it('fail visibly when the store is killed midway, and can be resumed where they stopped', async t => {
    await seedMany(held.clients, 1, 40_000)
    const api = await startManagement(t, { events: held.store })
    const url = `${api.url}${path}?event=seeded`
    // A reader that stops until the engine is gone: afterwards it gets only data read before.
    const response = await opened(url)
    const chunks: Buffer[] = [response.read() as Buffer | null].filter(chunk => chunk !== null)
    await held.engine.kill()
    response.on('data', chunk => chunks.push(chunk))
    await new Promise(resolve => response.once('close', resolve))
    assert.equal(response.complete, false)
    const lines = Buffer.concat(chunks).toString().split('\n').slice(0, -1)
    const last = JSON.parse(lines.pop()!)
    assert.equal(last.export_error.code, 'event_store_unavailable')
    assert.ok(lines.length > 0 && lines.length < 40_000, `${lines.length} lines`)
    assert.equal(last.export_error.cursor, JSON.parse(lines.at(-1)!).cursor)
    await held.engine.restart()
    const rest = await download(`${url}&cursor=${last.export_error.cursor}`, headers)
    assert.equal(rest.isComplete, true)
    const uuids = [...lines, ...rest.bytes.toString().trimEnd().split('\n')].map(line => JSON.parse(line).uuid)
    assert.equal(uuids.length, 40_000)
    assert.equal(new Set(uuids).size, 40_000)
  })
})

/** Events of some 800 bytes over three days, or another span, made by the engine itself. */
async function seedMany(
  clients: ClickHouseClients,
  projectId: number,
  count: number,
  spanMs = 3 * dayMs,
): Promise<void> {
  await clients.write(async (client, database) => {
    await client.command({
      query: `INSERT INTO ${database}.events (project_id, uuid, event, distinct_id, timestamp, captured_at, created_at, lane,
          row_version, properties, person_id, person_properties, person_mode)
        SELECT {project:UInt32}, generateUUIDv4(), 'seeded', concat('user ', toString(number % 9973)),
          toDateTime64('2026-04-01 00:00:00', 6, 'UTC') + toIntervalMillisecond(cityHash64(number) % {span:UInt64}),
          now64(3), now64(3), 'main', 1,
          concat('{"n":', toString(number), '.0,"text":"', repeat(hex(cityHash64(number, 1)), 45), '"}'),
          generateUUIDv4(), '{"plan":"pro"}', 'full'
        FROM numbers({count:UInt32})`,
      query_params: { project: projectId, count, span: spanMs },
    })
  })
}

async function opened(url: string): Promise<IncomingMessage> {
  const sent = request(url, { headers, agent: false })
  sent.on('error', () => undefined)
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  assert.equal(response.statusCode, 200)
  response.on('error', () => undefined)
  await once(response, 'readable')
  return response
}
