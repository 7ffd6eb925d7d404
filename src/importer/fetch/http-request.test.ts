import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { BrokenAnswer, FetchStop, FetchWait } from './fetch-faults.ts'
import { faultOfStatus, readBody, sendRequest } from './http-request.ts'

async function serverOf(t: TestContext, listener: RequestListener): Promise<URL> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return new URL(`http://127.0.0.1:${(server.address() as { port: number }).port}/`)
}

const { signal } = new AbortController()

describe('a request', () => {
  it('that is not answered in time is a broken answer, since too much may have been asked for', async t => {
    const url = await serverOf(t, () => undefined)
    await assert.rejects(sendRequest({ url, signal, idleMs: 50 }), BrokenAnswer)
  })

  it('to nobody is waited with', async t => {
    const url = await serverOf(t, (_, response) => response.end())
    url.port = '1'
    await assert.rejects(sendRequest({ url, signal }), FetchWait)
  })

  it('follows redirects, but not in a circle', async t => {
    const url = await serverOf(t, (request, response) => {
      const location = request.url === '/' ? '/a' : '/'
      response.writeHead(request.url === '/b' ? 200 : 302, { location: request.url === '/c' ? '/b' : location })
      response.end(request.url)
    })
    const { status, body } = await sendRequest({ url: new URL('/c', url), signal })
    assert.deepEqual([status, String(await readBody(body, 10))], [200, '/b'])
    await assert.rejects(sendRequest({ url, signal }), /redirects in a circle/)
  })

  it('has a body of a bounded size', async t => {
    const url = await serverOf(t, (_, response) => response.end('12345'))
    await assert.rejects(readBody((await sendRequest({ url, signal })).body, 4), BrokenAnswer)
  })
})

it('a status says whether to stop, or to wait and how long', async t => {
  const url = await serverOf(t, (request, response) =>
    response.writeHead(Number(request.url!.slice(1)), { 'retry-after': '7' }).end('why\n so, key1'),
  )
  const about = { source: 'It', secrets: ['key1'], nowMs: 0 }
  for (const [status, kind, words, retryAfterMs] of [
    [400, FetchStop, /^It answers 400: why so, …$/, undefined],
    [401, FetchStop, /^It answers 401: why so, …\. Check the key/, undefined],
    [403, FetchStop, /Check the key/, undefined],
    [408, FetchWait, /in trouble \(408\)/, 7_000],
    [429, FetchWait, /^source limit$/, 7_000],
    [503, FetchWait, /in trouble \(503\)/, 7_000],
  ] as const) {
    const fault = await faultOfStatus(await sendRequest({ url: new URL(`/${status}`, url), signal }), about)
    assert.ok(fault instanceof kind, String(status))
    assert.match(fault.message, words)
    assert.equal(fault instanceof FetchWait ? fault.retryAfterMs : undefined, retryAfterMs)
  }
})
