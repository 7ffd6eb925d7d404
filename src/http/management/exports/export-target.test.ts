import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it, type TestContext } from 'node:test'
import { createExportSlots } from '#services/exports/export-slots.ts'
import { eventually } from '../../../../tests/support/eventually.ts'
import { openExportResponse } from './export-target.ts'

/** Sends an export in the only place to a client that reads nothing; takes the place, and expects the export to end. */
async function stall(
  t: TestContext,
  isGzip: boolean,
  write: (target: ReturnType<typeof openExportResponse>, response: ServerResponse) => Promise<void>,
) {
  let nowMs = 0
  const places = createExportSlots({ inAllMax: 1, perProjectMax: 1, monotonicMs: () => nowMs })
  const entered = places.enter(1)
  assert.ok(entered.ok)
  const { promise: ended, resolve: end } = Promise.withResolvers<string | undefined>()
  const server = createServer(async (_request, response) => {
    const signal = new AbortController().signal
    const target = openExportResponse(response, { headers: {}, isGzip, signal, place: entered.value })
    try {
      await write(target, response)
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
  assert.deepEqual(places.enter(2), { ok: false, error: 'full' })
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
}

it('an export whose reader has stalled ends when another export needs its slot', t =>
  stall(t, false, async target => {
    for (;;) await target.write(Buffer.alloc(1024 * 1024))
  }))

for (const isGzip of [false, true])
  it(`${isGzip ? 'a gzipped export' : 'an export'} ends if its reader stalls just before the end`, t =>
    stall(t, isGzip, async (target, response) => {
      response.write(Buffer.alloc(64 * 1024 * 1024))
      await target.end({})
    }))
