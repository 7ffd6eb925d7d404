import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { readRowsInSlices } from '#adapters/clickhouse/queries/rows-in-slices.ts'
import { bufferAnswerRows } from '../exports/buffered-rows.ts'
import { createClickHouseClients } from './clickhouse-clients.ts'

describe('an answer of the event store', () => {
  let body = ''
  let summary: object = {}
  const server = createServer((request, response) => {
    request.resume()
    response.setHeader('X-ClickHouse-Summary', JSON.stringify(summary))
    response.end(body)
  })
  const user = { username: 'u', password: 'p' }
  const endpointOf = (of: Server) => {
    const url = `http://127.0.0.1:${(of.address() as AddressInfo).port}`
    return { url, database: 'd', secret: null, writer: user, reader: user, analyst: user }
  }
  const clients = createClickHouseClients({ endpoint: () => endpointOf(server), queryTimeoutSeconds: 5 })
  const ask = () => clients.read(client => client.query({ query: 'SELECT', format: 'JSONCompactEachRow' }))
  const askForBytes = () => clients.read(client => client.exec({ query: 'SELECT FORMAT JSONCompactEachRow' }))
  const readings = {
    'as a whole': async () => (await ask()).json(),
    'in turns': async () => readRowsInSlices(await ask()),
    'to be held as bytes': async () =>
      [...(await bufferAnswerRows(await askForBytes(), json => json)).batches()].flatMap(batch => [...batch]),
  }

  before(() => new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve)))
  after(async () => {
    await clients.close()
    server.close()
  })

  for (const [how, read] of Object.entries(readings)) {
    it(`is accepted when read ${how} if it has as many rows as the server counted, or if the server sends no count`, async () => {
      body = '[1]\n[2]\n'
      for (const counted of [{ result_rows: '2' }, { result_rows: 2 }, {}]) {
        summary = counted
        assert.deepEqual(await read(), [[1], [2]])
      }
      ;[body, summary] = ['', { result_rows: '0' }]
      assert.deepEqual(await read(), [])
    })

    it(`is a store failure when read ${how} if rows are missing`, async () => {
      for (const [text, counted] of [
        ['', 1],
        ['[1]\n', 2],
        ['[1]\n[2', 2],
      ] as const) {
        ;[body, summary] = [text, { result_rows: String(counted) }]
        await assert.rejects(read(), { name: 'PortError', code: 'unavailable' }, text)
      }
    })
  }

  for (const how of ['as a whole', 'in turns', 'to be held as bytes'] as const)
    it(`is aborted by its signal even after it has begun to arrive, when read ${how}`, async t => {
      const begun = createServer((request, response) => {
        request.resume()
        response.write('[1]\n')
      })
      await new Promise<void>(resolve => begun.listen(0, '127.0.0.1', resolve))
      const silent = createClickHouseClients({ endpoint: () => endpointOf(begun), queryTimeoutSeconds: 600 })
      t.after(async () => {
        await silent.close()
        begun.closeAllConnections()
        begun.close()
      })
      const caller = new AbortController()
      const read = silent.read(async (client, signal) => {
        const params = { query: 'SELECT', format: 'JSONCompactEachRow', abort_signal: signal } as const
        if (how === 'to be held as bytes') {
          const answer = await client.exec(params)
          caller.abort(new Error('the caller left'))
          return bufferAnswerRows(answer, json => json)
        }
        const answer = await client.query(params)
        caller.abort(new Error('the caller left'))
        return how === 'in turns' ? readRowsInSlices(answer) : answer.json()
      }, caller.signal)
      await assert.rejects(read, /the caller left/)
    })

  it('is a store failure if it is held as bytes and ends within a row, even without a row count from the server', async () => {
    ;[body, summary] = ['[1]\n[2', {}]
    await assert.rejects(readings['to be held as bytes'](), { name: 'PortError', code: 'unavailable' })
  })

  it('is parsed row by row when held as bytes, however its bytes are divided', async () => {
    const lengths = [...Array.from({ length: 300 }, () => 9_000), 3_000_000, 10, 1_000_000]
    const rows = lengths.map((length, index) => [index, `日本\n${'x'.repeat(length)}`])
    ;[body, summary] = [rows.map(row => `${JSON.stringify(row)}\n`).join(''), {}]
    let objectCount = 0
    const held = await bufferAnswerRows(await askForBytes(), json => {
      objectCount++
      return json
    })
    assert.equal(held.rowCount, rows.length)
    const found: unknown[] = []
    for (const batch of held.batches())
      for (const row of batch) {
        found.push(row)
        assert.equal(objectCount, found.length)
      }
    assert.deepEqual(found, rows)
  })
})
