import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer, type LookupFunction } from 'node:net'
import { networkInterfaces } from 'node:os'
import { describe, it, type TestContext } from 'node:test'
import { BrokenAnswer, FetchStop, FetchWait } from './fetch-faults.ts'
import { faultOfStatus, readBody, sendRequest } from './http-request.ts'
import { redirectedTo } from './redirects.ts'

async function serverOf(t: TestContext, listener: RequestListener, address = '127.0.0.1'): Promise<URL> {
  const server = createServer(listener).listen(0, address)
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return new URL(`http://${address}:${(server.address() as { port: number }).port}/`)
}

/** A resolver that knows only these names. */
function lookupOf(addresses: Readonly<Record<string, readonly string[]>>): LookupFunction {
  return (name, { all = false }, callback) => {
    const found = (addresses[name] ?? []).map(address => ({ address, family: 4 }))
    if (found.length === 0) callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), '')
    else if (all) callback(null, found)
    else callback(null, found[0]!.address, 4)
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof FetchStop && /this machine or its own network link/.test(error.message)
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

  it('follows no redirect to anything but an address of http or https', async t => {
    const url = await serverOf(t, (request, response) =>
      response.writeHead(302, { location: decodeURIComponent(request.url!.slice(1)) }).end(),
    )
    for (const [location, said] of [
      ['file:///etc/passwd', /redirects to an address of file:, which is not followed\.$/],
      ['ftp://x/y', /redirects to an address of ftp:, which is not followed\.$/],
      ['http://[bad', /redirects to something that is no address\.$/],
    ] as const)
      await assert.rejects(
        sendRequest({ url: new URL(`/${encodeURIComponent(location)}`, url), signal }),
        (error: Error) => error instanceof FetchStop && said.test(error.message),
      )
  })

  it('follows no redirect to this machine or its link, unless it went there itself', () => {
    const away = { url: new URL('https://192.0.2.7/list'), lookup: lookupOf({}) }
    const there = ['127.0.0.1', '127.8.9.10', '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254', '[fe80::1]', '0.0.0.0']
    for (const host of [...there, '2130706433'])
      assert.throws(() => redirectedTo(`https://${host}:9/internal`, away, false), isRefusal, host)
    assert.equal(redirectedTo('https://198.51.100.1/b', away, false).url.href, 'https://198.51.100.1/b')
    assert.equal(redirectedTo('/b', away, false).url.href, 'https://192.0.2.7/b')
    const here = { ...away, url: new URL('http://127.0.0.1:1/') }
    assert.equal(redirectedTo('http://localhost:2/b', here, true).url.href, 'http://localhost:2/b')
  })

  it('follows a redirect to a name only where the name leads elsewhere when it is asked', async t => {
    let requests = 0
    const internal = await serverOf(t, (_, response) => {
      requests++
      response.end('secret')
    })
    internal.hostname = 'turning.test'
    const lookup = lookupOf({ 'turning.test': ['192.0.2.7', '127.0.0.1'] })
    const away = { url: new URL('http://192.0.2.7/list'), lookup }
    await assert.rejects(sendRequest({ ...redirectedTo(internal.href, away, false), signal }), isRefusal)
    // Nor is the name asked again on the way.
    const again = redirectedTo('/again', redirectedTo(internal.href, away, false), false)
    await assert.rejects(sendRequest({ ...again, signal }), isRefusal)
    assert.equal(requests, 0)
    const { body } = await sendRequest({ url: internal, lookup: lookupOf({ 'turning.test': ['127.0.0.1'] }), signal })
    assert.equal(String(await readBody(body, 10)), 'secret')
  })

  it('is redirected to this machine by this machine alone', async t => {
    const lookup = lookupOf({ 'here.test': ['127.0.0.1'], 'same.test': ['127.0.0.1'] })
    const target = await serverOf(t, (_, response) => response.end('here'))
    const redirect = (name: string, address?: string) => {
      target.hostname = name
      const location = target.href
      return serverOf(t, (_, response) => response.writeHead(302, { location }).end(), address)
    }
    const { body } = await sendRequest({ url: await redirect('here.test'), lookup, signal })
    assert.equal(String(await readBody(body, 10)), 'here')
    // Where the machine is in a network, it is somebody else under its address there. Another name has no open connection.
    for (const { address, family, internal } of Object.values(networkInterfaces()).flatMap(each => each ?? []))
      if (!internal && family === 'IPv4')
        await assert.rejects(sendRequest({ url: await redirect('same.test', address), lookup, signal }), isRefusal)
  })

  it('that is answered with something other than HTTP is waited with', async t => {
    const answers = ['garbage\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc']
    for (const answer of answers) {
      const server = createTcpServer(socket => {
        socket.on('error', () => undefined)
        socket.once('data', () => socket.end(answer))
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      t.after(() => server.close())
      const url = new URL(`http://127.0.0.1:${(server.address() as { port: number }).port}/`)
      await assert.rejects(
        sendRequest({ url, signal }),
        (error: Error) => error instanceof FetchWait && /no HTTP \(HPE_\w+\)$/.test(error.message),
      )
    }
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
