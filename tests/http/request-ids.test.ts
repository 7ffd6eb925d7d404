// An answer and the log lines about it have the same id: the caller's, or a generated one.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createHttpServer } from '#http/server.ts'
import { createLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

async function startServer(t: { after(end: () => Promise<void>): void }) {
  const lines: Record<string, unknown>[] = []
  const logger = createLogger(
    { level: 'debug', process: 'serve' },
    { write: line => void lines.push(JSON.parse(line)) },
  )
  const server = createHttpServer({
    routes: [
      {
        ...{ method: 'POST', path: '/works', access: 'open', group: 'flags', bodyLimitBytes: 10 },
        handler: (_request, reply) => void reply.send('done'),
      },
      {
        ...{ method: 'POST', path: '/fails', access: 'open', group: 'flags', bodyLimitBytes: 10 },
        handler: () => {
          throw new Error('broken')
        },
      },
    ],
    logger,
    metrics: createMetrics(),
    authorize: async () => true,
  })
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  const ask = async (path: string, headers: Record<string, string> = {}, body = '') => {
    const response = await fetch(url + path, { method: 'POST', headers, body })
    return { status: response.status, id: response.headers.get('x-request-id') }
  }
  return { ask, lines }
}

describe('the id of a request', () => {
  it('is the id sent by the caller, in the answer and in the log', async t => {
    const { ask, lines } = await startServer(t)
    for (const sent of ['7b2c9a4e6d1f4c0a8e5b3d2f1a0c9e8d', 'Root=1-67891233-abcdef012345678912345678', 'a']) {
      assert.deepEqual(await ask('/works', { 'x-request-id': sent }), { status: 200, id: sent })
      assert.deepEqual(await ask('/fails', { 'x-request-id': sent }), { status: 500, id: sent })
    }
    const told = lines.filter(({ requestId }) => requestId === 'a').map(({ level, msg }) => `${level} ${msg}`)
    assert.deepEqual(told.sort(), ['debug answered', 'debug answered', 'error request failed'])
  })

  it('is generated if the caller sent none, or an id that is unsafe to log', async t => {
    const { ask } = await startServer(t)
    const made = [
      await ask('/works'),
      await ask('/works', { 'x-request-id': '' }),
      await ask('/works', { 'x-request-id': 'two words' }),
      await ask('/works', { 'x-request-id': 'x'.repeat(129) }),
      await ask('/works', { 'x-request-id': '"}{' }),
    ]
    for (const { id } of made) assert.match(id!, uuid)
    assert.equal(new Set(made.map(({ id }) => id)).size, made.length)
  })

  it('is also in errors that the server sends before any route runs', async t => {
    const { ask } = await startServer(t)
    const sent = { 'x-request-id': 'mine' }
    assert.deepEqual(await ask('/nowhere', sent), { status: 404, id: 'mine' })
    assert.deepEqual(await ask('/works', sent, 'more than ten bytes'), { status: 413, id: 'mine' })
    assert.deepEqual(await ask('/%ff', sent), { status: 400, id: 'mine' })
  })
})
