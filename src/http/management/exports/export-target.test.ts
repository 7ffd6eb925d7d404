import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it } from 'node:test'
import { createExportPlaces } from '#services/exports/export-places.ts'
import { eventually } from '../../../../tests/support/eventually.ts'
import { openExportResponse } from './export-target.ts'

it('an export whose reader has stalled ends when another export needs its place', async t => {
  let nowMs = 0
  const places = createExportPlaces({ inAllMax: 1, perProjectMax: 1, monotonicMs: () => nowMs })
  const entered = places.enter(1)
  assert.ok(entered.ok)
  const { promise: ended, resolve: end } = Promise.withResolvers<{ code?: string }>()
  const server = createServer(async (_request, response) => {
    const signal = new AbortController().signal
    const target = openExportResponse(response, { headers: {}, isGzip: false, signal, place: entered.value })
    try {
      for (;;) await target.write(Buffer.alloc(1024 * 1024))
    } catch (error) {
      await target.breakOff('last words')
      end(error as { code?: string })
    }
  })
  server.listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const request = get(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const broken = once(response, 'error')
  assert.deepEqual(places.enter(2), { ok: false, error: 'full' })
  await eventually(
    () => {
      nowMs += 10_000
      return places.enter(2).ok
    },
    { what: 'the place of the one that waits' },
  )
  assert.equal((await ended).code, 'too_slow')
  response.resume()
  await broken
})

for (const isGzip of [false, true])
  it(`${isGzip ? 'a gzipped export' : 'an export'} ends if its reader stalls at the end`, async t => {
    let nowMs = 0
    const places = createExportPlaces({ inAllMax: 1, perProjectMax: 1, monotonicMs: () => nowMs })
    const entered = places.enter(1)
    assert.ok(entered.ok)
    const { promise: ended, resolve: end } = Promise.withResolvers<unknown>()
    const server = createServer(async (_request, response) => {
      const signal = new AbortController().signal
      const target = openExportResponse(response, { headers: {}, isGzip, signal, place: entered.value })
      response.write(Buffer.alloc(64 * 1024 * 1024))
      try {
        await target.end({})
        end('complete')
      } catch (error) {
        await target.breakOff('last words')
        end((error as { code?: string }).code)
      }
    })
    server.listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const request = get(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    t.after(() => response.destroy())
    const broken = once(response, 'error')
    await eventually(
      () => {
        nowMs += 10_000
        return places.enter(2).ok
      },
      { what: 'the place of the one that waits' },
    )
    assert.equal(await ended, 'too_slow')
    response.resume()
    await broken
  })
