import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { constants, gunzipSync } from 'node:zlib'
import { encodeExportCursor } from '#http/management/exports/export-events.ts'
import type { EventExportQuery, ExportedEvent } from '#ports/events/event-queries.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { PortError } from '#ports/port-error.ts'
import { eventually } from '../support/eventually.ts'
import { allScopesKey, type ManagementApi, startManagement } from '../support/management-api.ts'
import { download } from '../support/raw-download.ts'
import { anEventView } from '../support/values.ts'

const path = '/api/projects/1/events/export/'
const uuid = (last: number) => `0195a000-0000-7000-8000-${String(last).padStart(12, '0')}`
const headers = { authorization: `Bearer ${allScopesKey}` }

function anExported(index: number, over: Partial<ExportedEvent['event']> = {}): ExportedEvent {
  const event = anEventView({
    ...{ uuid: uuid(index), event: 'signed up', distinctId: `user ${index}`, personId: uuid(900) },
    timestampMs: Date.parse('2026-04-30T10:00:00.123Z') - index,
    capturedAtMs: Date.parse('2026-04-30T10:00:01.000Z'),
    createdAtMs: Date.parse('2026-04-30T10:00:02.000Z'),
    propertiesJson: `{"n":${index}}`,
    ...{ personCreatedAtMs: 0, personPropertiesJson: '' },
    ...over,
  })
  return { event, cursor: { timestampMs: event.timestampMs, uuid: event.uuid, tieBreak: String(index) } }
}

const keyText = (json: string) => Buffer.from(json).toString('base64url')
const forgedKeys = [
  '',
  '*',
  keyText('["a","b"]'),
  keyText('["a","b",null'),
  keyText('["a",2,null]'),
  keyText('["a","b","1_2_3"]'),
  keyText('["a","b",null,"project 2"]'),
  keyText('{"0":"a","1":"b","2":null,"length":3}'),
  keyText('['.repeat(2_000)),
]

const some = (from: number, count: number, over?: Partial<ExportedEvent['event']>) =>
  Array.from({ length: count }, (_, index) => anExported(from + index, over))
const cursorText = ({ cursor }: ExportedEvent) => `${cursor.timestampMs}_${cursor.uuid}_${cursor.tieBreak}`

/** A store that exports these batches; an error among them is thrown in its turn. */
function scripted(batches: readonly (readonly ExportedEvent[] | Error)[]) {
  const queries: EventExportQuery[] = []
  const signals: AbortSignal[] = []
  let asked = 0
  const events: Partial<EventStore> = {
    openEventExport: async (query, signal) => {
      queries.push(query)
      signals.push(signal)
      return {
        eventCountMax: 1_000,
        batches: (async function* () {
          for (const batch of batches) {
            asked++
            signal.throwIfAborted()
            if (batch instanceof Error) throw batch
            yield batch
          }
        })(),
      }
    },
  }
  return { events, queries, signals, asked: () => asked }
}

const broken = () => new PortError('event-store', 'unavailable', new Error('killed'))

async function start(t: TestContext, batches: readonly (readonly ExportedEvent[] | Error)[]) {
  const store = scripted(batches)
  const api = await startManagement(t, { events: store.events })
  return {
    ...store,
    api,
    get: (query = '', more = {}) => download(`${api.url}${path}${query}`, { ...headers, ...more }),
  }
}

describe('an export of events', () => {
  it('has one JSON object per line, with properties as they were sent', async t => {
    const texts = [
      '{"n":1.0,"id":12345678901234567890,"a":1,"a":2,"z":"\\u0000 \\ud800","e":1e400}',
      '{ "pretty" :\r\n  [1,\n 2] }',
      `{"long":"${'ü"'.replaceAll('"', '\\"').repeat(200_000)}"}`,
    ]
    const batch = texts.map((propertiesJson, index) => anExported(index, { propertiesJson, event: 'a,"b"\n💥\u2028' }))
    const { get } = await start(t, [batch])
    const { status, headers: answered, bytes, isComplete, trailers } = await get()
    assert.deepEqual([status, isComplete, answered['content-type']], [200, true, 'application/x-ndjson'])
    const lines = bytes.toString().split('\n')
    assert.equal(lines.pop(), '')
    assert.equal(lines.length, 3)
    for (const [index, line] of lines.entries()) {
      const kept = texts[index]!.replaceAll(/[\r\n]/g, ' ')
      assert.ok(line.includes(`"properties":${kept},"person_id"`), line.slice(0, 500))
      assert.equal(JSON.parse(line).event, 'a,"b"\n💥\u2028')
      assert.equal(JSON.parse(line).cursor, cursorText(batch[index]!))
    }
    assert.deepEqual(Object.keys(JSON.parse(lines[0]!)), [
      ...['cursor', 'uuid', 'event', 'distinct_id', 'timestamp', 'properties', 'person_id', 'person_mode'],
      ...['person_created_at', 'person_properties', 'elements_chain', 'lane', 'historical_migration'],
      ...['import_job_id', 'captured_at', 'created_at'],
    ])
    assert.match(lines[0]!, /"person_created_at":null,"person_properties":\{\},/)
    assert.deepEqual(trailers, {
      'content-digest': `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`,
      'pennon-export-count': '3',
      'pennon-export-cursor': cursorText(batch[2]!),
      'pennon-export-next': '',
    })
    assert.equal(answered['content-disposition'], 'attachment; filename="events-project1-2026-05-01.jsonl"')
    assert.equal(answered['pennon-export-at-most'], '1000')
  })

  it('has one CSV row per event, with every byte of the properties, including line breaks', async t => {
    const propertiesJson = '{ "n":1.0,\r\n"s":"a\\"b" }'
    const { get } = await start(t, [[anExported(1, { propertiesJson, event: ' =1,"2"', distinctId: '' })]])
    const { bytes, headers: answered, isComplete } = await get('?format=csv')
    assert.deepEqual([isComplete, answered['content-type']], [true, 'text/csv; charset=utf-8; header=present'])
    const at = anExported(1)
    const expected = [
      ...[cursorText(at), uuid(1), '" =1,""2"""', '""', '2026-04-30T10:00:00.122Z'],
      ...['"{ ""n"":1.0,\r\n""s"":""a\\""b"" }"', uuid(900), 'full', '', '{}', '""', 'main', 'false', '0'],
      ...['2026-04-30T10:00:01.000Z', '2026-04-30T10:00:02.000Z'],
    ]
    assert.equal(bytes.toString().slice(bytes.indexOf('\r\n') + 2), `${expected.join(',')}\r\n`)
  })

  it('queries the store in the same way as the list, even after a cursor', async t => {
    const { get, queries } = await start(t, [])
    const query = new URLSearchParams({
      ...{ event: '$pageview', distinct_id: 'ada', person_id: uuid(900), uuid: uuid(1), orderBy: '["timestamp"]' },
      ...{ after: '2026-04-01', before: '2026-04-30T12:00:00Z', properties: '[{"key":"n","value":1}]' },
      cursor: `-5_${uuid(7)}_18446744073709551615`,
    })
    const { status, bytes, headers: answered } = await get(`?${query}`)
    assert.deepEqual([status, bytes.toString()], [200, ''])
    assert.deepEqual(
      [answered['pennon-export-after'], answered['pennon-export-before']],
      ['2026-04-01T00:00:00.000Z', '2026-04-30T12:00:00.000Z'],
    )
    assert.deepEqual(queries, [
      {
        projectId: 1,
        event: '$pageview',
        distinctId: 'ada',
        personId: uuid(900),
        uuid: uuid(1),
        afterMs: Date.parse('2026-04-01T00:00:00Z'),
        beforeMs: Date.parse('2026-04-30T12:00:00Z'),
        properties: [{ key: 'n', value: 1 }],
        descending: false,
        after: { timestampMs: -5, uuid: uuid(7), tieBreak: '18446744073709551615' },
      },
    ])
  })

  it('passes the row key in the cursor of a busy day to the store unchanged', async t => {
    const key = { event: `' OR "1"=1 --\n日本`, distinctId: '\u0000\\', base: null }
    const behind = { ...key, base: { timestampMs: -7, uuid: uuid(3), tieBreak: '18446744073709551615' } }
    for (const one of [key, behind]) {
      const cursor = { timestampMs: 1_777_543_200_123, uuid: uuid(2), tieBreak: '5', key: one }
      const { api, get, queries } = await start(t, [])
      const { status } = await get(`?cursor=${encodeURIComponent(encodeExportCursor(cursor))}`)
      assert.deepEqual([status, queries], [200, [{ projectId: 1, descending: true, after: cursor }]])
      // A list is in another order.
      const list = `/api/projects/1/events/?cursor=${encodeURIComponent(encodeExportCursor(cursor))}`
      assert.equal((await api.call('GET', list)).status, 400)
    }
  })

  it('rejects invalid parameters before it queries the store', async t => {
    const { api, queries } = await start(t, [])
    await api.refuses(
      'GET',
      path,
      ['format=xml', 'format'],
      ['format=jsonl%27%3B--', 'format'],
      ['limit=0', 'limit'],
      ['offset=5', 'offset'],
      [`cursor=${encodeURIComponent(`1_${uuid(1)}_1' OR '1'='1`)}`, 'cursor'],
      ['cursor=18446744073709551616', 'cursor'],
      ...forgedKeys.map(key => [`cursor=1_${uuid(1)}_1~${key}`, 'cursor'] as const),
      ['after=tomorrow%27', 'after'],
      ['person_id=1%20OR%201', 'person_id'],
      ['event=', 'event'],
    )
    assert.equal(queries.length, 0)
  })

  it('gives an ordinary error response if it fails before the first row', async t => {
    const { api } = await start(t, [new PortError('event-store', 'timeout', new Error('slow'))])
    await api.refuses('GET', path, ['', null, 'event_store_timeout'])
    for (let n = 0; n < 5; n++) assert.equal((await api.call('GET', path)).status, 503, 'its place is left')
  })

  it('never ends cleanly if it fails midway, and reports the reason if the format allows', async t => {
    const { get, api } = await start(t, [some(0, 3), broken()])
    for (const coding of ['identity', 'gzip']) {
      const { isComplete, bytes, trailers, headers: answered } = await get('', { 'accept-encoding': coding })
      assert.deepEqual([isComplete, trailers], [false, {}])
      const isPacked = answered['content-encoding'] === 'gzip'
      const text = (isPacked ? gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }) : bytes).toString()
      const last = JSON.parse(text.trimEnd().split('\n').at(-1)!)
      assert.deepEqual(last, {
        export_error: {
          code: 'event_store_unavailable',
          detail:
            'The event store failed during the export. Repeat the request with this cursor for the remaining rows.',
          cursor: cursorText(anExported(2)),
        },
      })
      assert.equal(text.split('\n').length, 5)
    }
    const csv = await get('?format=csv')
    assert.deepEqual([csv.isComplete, csv.bytes.toString().split('\r\n').length], [false, 5])
    const parquet = await get('?format=parquet')
    assert.deepEqual([parquet.isComplete, parquet.bytes.subarray(-4).toString() === 'PAR1'], [false, false])
    await assert.rejects(fetch(`${api.url}${path}`, { headers }).then(answered => answered.text()))
  })

  it('resets an HTTP/1.0 connection when it fails, since closing would look like the end of the body', async t => {
    const { api } = await start(t, [some(0, 3), broken()])
    const { hostname, port } = new URL(api.url)
    const socket = connect(Number(port), hostname)
    socket.write(`GET ${path} HTTP/1.0\r\nauthorization: Bearer ${allScopesKey}\r\n\r\n`)
    socket.resume()
    const [error] = await once(socket, 'error')
    assert.equal(error.code, 'ECONNRESET')
  })

  it('ends after the requested number of rows, and gives the cursor of the next export', async t => {
    const { get } = await start(t, [some(0, 3), some(3, 3)])
    const counts = async (limit: number) => {
      const { trailers, bytes } = await get(`?limit=${limit}`)
      return [bytes.toString().split('\n').length - 1, trailers['pennon-export-next']]
    }
    assert.deepEqual(await counts(2), [2, cursorText(anExported(1))])
    assert.deepEqual(await counts(3), [3, cursorText(anExported(2))])
    assert.deepEqual(await counts(6), [6, ''])
    assert.deepEqual(await counts(7), [6, ''])
  })

  it('answers HEAD without querying the store', async t => {
    const { api, queries } = await start(t, [some(0, 3)])
    const answered = await fetch(`${api.url}${path}?format=csv`, { method: 'HEAD', headers })
    assert.deepEqual(
      [answered.status, answered.headers.get('content-type'), queries.length],
      [200, 'text/csv; charset=utf-8; header=present', 0],
    )
  })

  it('is compressed for clients that accept gzip, and the digest covers the bytes sent', async t => {
    const { get } = await start(t, [some(0, 500), some(500, 500)])
    const plain = await get()
    const packed = await get('', { 'accept-encoding': 'br, gzip;q=0.5' })
    assert.equal(packed.headers['content-encoding'], 'gzip')
    assert.deepEqual(gunzipSync(packed.bytes), plain.bytes)
    assert.ok(packed.bytes.length * 4 < plain.bytes.length)
    const sum = createHash('sha256').update(packed.bytes).digest('base64')
    assert.equal(packed.trailers['content-digest'], `sha-256=:${sum}:`)
    assert.equal((await get('', { 'accept-encoding': 'gzip;q=0, *' })).headers['content-encoding'], undefined)
  })

  it('is limited to two at a time per project and six in total, and frees its slot at the end', async t => {
    const { api, signals } = await start(t, [some(0, 1), ...Array.from({ length: 400 }, () => large())])
    for (const name of ['B', 'C', 'D']) await api.post('/api/projects/', { name })
    const opened = await Promise.all([1, 1, 2, 2, 3, 3].map(projectId => openUnread(api, projectId)))
    const third = await api.call('GET', path)
    assert.deepEqual([third.status, third.body.code, third.headers.get('retry-after')], [429, 'too_many_exports', '30'])
    const seventh = await api.call('GET', path.replace('/1/', '/4/'))
    assert.deepEqual([seventh.status, seventh.body.code], [503, 'too_many_exports'])
    for (const one of opened) one.destroy()
    await eventually(() => signals.slice(0, 6).every(signal => signal.aborted), { what: 'the ends of the exports' })
    const again = await openUnread(api, 4)
    again.destroy()
  })

  it('is read from the store no faster than the client reads, and stops when the client disconnects', async t => {
    const { api, asked, signals } = await start(
      t,
      Array.from({ length: 400 }, () => large()),
    )
    const reader = await openUnread(api, 1)
    await eventually(() => asked() > 0, { what: 'the first batch' })
    // Enough time for all batches if the export did not wait for the reader.
    for (let n = 0; n < 100; n++) await api.call('GET', '/api/projects/1/')
    // A batch has 4 MB; the requested batches fit in the buffers of both ends.
    assert.ok(asked() < 12, `${asked()} batches were asked for`)
    reader.destroy()
    await eventually(() => signals[0]!.aborted, { what: 'the end of the work' })
    assert.ok(asked() < 13)
  })

  it('ends when its key or its project is deleted', async t => {
    let goOn = () => {}
    const until = new Promise<void>(resolve => {
      goOn = resolve
    })
    const api = await startManagement(t, {
      events: {
        openEventExport: async () => ({
          eventCountMax: 2,
          batches: (async function* () {
            yield some(0, 1)
            yield some(1, 1)
            await until
            yield some(2, 1)
            yield some(3, 1)
          })(),
        }),
      },
    })
    const key = await api.addKey(['query:read'])
    const reading = download(`${api.url}${path}`, { authorization: `Bearer ${key}` })
    const body = await api.get('/api/personal_api_keys/')
    const { id } = body.results.find((one: { scopes: string[] }) => one.scopes[0] === 'query:read')
    assert.equal((await api.call('DELETE', `/api/personal_api_keys/${id}/`)).status, 204)
    goOn()
    const { isComplete, bytes } = await reading
    assert.equal(isComplete, false)
    assert.equal(JSON.parse(bytes.toString().trimEnd().split('\n').at(-1)!).export_error.code, 'access_ended')
  })
})

/** 4 MB. */
function large(): readonly ExportedEvent[] {
  return some(0, 4, { propertiesJson: `{"s":"${'x'.repeat(1_000_000)}"}` })
}

/** A reader that takes the headers and nothing else. */
async function openUnread(api: ManagementApi, projectId: number) {
  const sent = request(`${api.url}${path.replace('/1/', `/${projectId}/`)}`, { headers, agent: false })
  sent.on('error', () => undefined)
  sent.end()
  const [response] = await once(sent, 'response')
  assert.equal(response.statusCode, 200)
  response.on('error', () => undefined)
  return sent
}
