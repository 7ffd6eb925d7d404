import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer as createTcpServer, type LookupFunction } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { serve } from '../../../tests/support/local-server.ts'
import { BrokenAnswer, FetchStop, FetchWait } from './fetch-faults.ts'
import { createStatusFault, type NetworkKind, readBoundedBody, resolveRedirect, sendRequest } from './http-request.ts'

async function serverOf(t: TestContext, listener: RequestListener): Promise<URL> {
  return new URL(await serve(t, listener))
}

/** A resolver for these names only. */
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
const warn = () => undefined

describe('a request', () => {
  it('fails as a broken answer when it times out, since its time window may be too large', async t => {
    const url = await serverOf(t, () => undefined)
    await assert.rejects(sendRequest({ url, signal, idleMs: 50, warn }), BrokenAnswer)
  })

  it('to a closed port is retried later', async t => {
    const url = await serverOf(t, (_, response) => response.end())
    url.port = '1'
    await assert.rejects(sendRequest({ url, signal, warn }), FetchWait)
  })

  it('follows redirects, but not in a circle', async t => {
    const url = await serverOf(t, (request, response) => {
      const location = request.url === '/' ? '/a' : '/'
      response.writeHead(request.url === '/b' ? 200 : 302, { location: request.url === '/c' ? '/b' : location })
      response.end(request.url)
    })
    const { status, body } = await sendRequest({ url: new URL('/c', url), signal, warn })
    assert.deepEqual([status, String(await readBoundedBody(body, 10))], [200, '/b'])
    await assert.rejects(sendRequest({ url, signal, warn }), /redirects in a circle/)
  })

  it('follows only redirects to http and https URLs', async t => {
    const url = await serverOf(t, (request, response) =>
      response.writeHead(302, { location: decodeURIComponent(request.url!.slice(1)) }).end(),
    )
    for (const [location, said] of [
      ['file:///etc/passwd', /redirects to an address of file:, which is not followed\.$/],
      ['ftp://x/y', /redirects to an address of ftp:, which is not followed\.$/],
      ['http://[bad', /redirects to something that is no address\.$/],
    ] as const)
      await assert.rejects(
        sendRequest({ url: new URL(`/${encodeURIComponent(location)}`, url), signal, warn }),
        (error: Error) => error instanceof FetchStop && said.test(error.message),
      )
  })

  it('follows no redirect to this machine or its local network, and warns about a redirect into a private network', () => {
    const warned: string[] = []
    const from = (url: string, reach: NetworkKind = 'public') => ({
      ...{ from: new URL(url), reach, lookup: lookupOf({}) },
      warn: (line: string) => void warned.push(line),
    })
    const away = from('https://192.0.2.7/list')
    const link = ['169.254.169.254', '[fe80::1]', '[::ffff:169.254.1.1]', '[64:ff9b::a9fe:a9fe]', '[fd00:ec2::254]']
    const here = ['127.0.0.1', '127.8.9.10', '[::1]', '[::]', '[::ffff:127.0.0.1]', '[::7f00:1]', '[64:ff9b::7f00:1]']
    for (const host of [...link, ...here, '0.0.0.0', '2130706433'])
      assert.throws(() => resolveRedirect(`https://${host}:9/internal`, away), isRefusal, host)
    assert.equal(resolveRedirect('https://198.51.100.1/b', away).url.href, 'https://198.51.100.1/b')
    assert.equal(resolveRedirect('/b', away).url.href, 'https://192.0.2.7/b')

    const local = from('http://127.0.0.1:1/', 'loopback')
    assert.equal(resolveRedirect('http://127.0.0.1:2/b', local).url.href, 'http://127.0.0.1:2/b')
    assert.throws(() => resolveRedirect('http://127.0.0.2:2/b', local), isRefusal)
    assert.throws(() => resolveRedirect('/b', from('http://169.254.1.1/', 'link-local')), isRefusal)
    assert.deepEqual(warned, [])

    for (const host of ['10.0.0.5', '172.31.0.1', '192.168.1.1', '100.64.0.1', '[fc00::1]', '[::ffff:10.0.0.5]'])
      resolveRedirect(`https://${host}/b`, away)
    assert.equal(warned.length, 6)
    assert.equal(
      warned[0],
      '192.0.2.7 redirects to 10.0.0.5 (10.0.0.5), in a private network that only some machines can reach.',
    )
    resolveRedirect('http://10.0.0.5:81/b', from('http://10.0.0.5/', 'private'))
    assert.equal(warned.length, 6)
  })

  it('checks a redirect’s addresses at the time of the request, as protection against DNS rebinding', async t => {
    let requests = 0
    const internal = await serverOf(t, (_, response) => {
      requests++
      response.end('secret')
    })
    internal.hostname = 'turning.test'
    const lookup = lookupOf({ 'turning.test': ['192.0.2.7', '127.0.0.1'] })
    const away = { from: new URL('http://192.0.2.7/list'), reach: 'public', lookup, warn } as const
    await assert.rejects(sendRequest({ ...resolveRedirect(internal.href, away), signal, warn }), isRefusal)
    // Also when a host redirects to itself and its name then resolves to this machine.
    const turned = { ...away, from: internal, lookup: lookupOf({ 'turning.test': ['127.0.0.1'] }) }
    await assert.rejects(sendRequest({ ...resolveRedirect('/again', turned), signal, warn }), isRefusal)
    assert.equal(requests, 0)
    const { body } = await sendRequest({ ...turned, url: internal, signal })
    assert.equal(String(await readBoundedBody(body, 10)), 'secret')
  })

  it('is redirected to this machine only under the same host name, also when a connection is open', async t => {
    const lookup = lookupOf({ 'here.test': ['127.0.0.1'], 'same.test': ['127.0.0.1'] })
    const target = await serverOf(t, (request, response) =>
      request.url === '/on'
        ? response.writeHead(302, { location: '/end' }).end()
        : response.end(request.url === '/end' ? 'here' : ''),
    )
    const named = (name: string, path: string) => {
      const url = new URL(path, target)
      url.hostname = name
      return url
    }
    const { body } = await sendRequest({ url: named('here.test', '/on'), lookup, signal, warn })
    assert.equal(String(await readBoundedBody(body, 10)), 'here')
    const location = named('same.test', '/end').href
    const url = await serverOf(t, (_, response) => response.writeHead(302, { location }).end())
    await readBoundedBody((await sendRequest({ url: named('same.test', '/'), lookup, signal, warn })).body, 10)
    await assert.rejects(sendRequest({ url, lookup, signal, warn }), isRefusal)
  })

  it('is retried later when the response is not HTTP', async t => {
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
        sendRequest({ url, signal, warn }),
        (error: Error) => error instanceof FetchWait && /no HTTP \(HPE_\w+\)$/.test(error.message),
      )
    }
  })

  it('fails as a broken answer when the response body exceeds the limit', async t => {
    const url = await serverOf(t, (_, response) => response.end('12345'))
    await assert.rejects(readBoundedBody((await sendRequest({ url, signal, warn })).body, 4), BrokenAnswer)
  })
})

it('the status of a response decides whether the fetch stops or waits, and for how long', async t => {
  const url = await serverOf(t, (request, response) =>
    response.writeHead(Number(request.url!.slice(1)), { 'retry-after': '7' }).end('why\n so, key1'),
  )
  for (const [status, kind, message, retryAfterMs] of [
    [400, FetchStop, /^It answers 400: why so, …$/, undefined],
    [401, FetchStop, /^It answers 401: why so, …\. Check the key/, undefined],
    [403, FetchStop, /Check the key/, undefined],
    [408, FetchWait, /in trouble \(408\)/, 7_000],
    [429, FetchWait, /^source limit$/, 7_000],
    [503, FetchWait, /in trouble \(503\)/, 7_000],
  ] as const) {
    const answer = await sendRequest({ url: new URL(`/${status}`, url), signal, warn })
    const fault = await createStatusFault(answer, 'It', ['key1'])
    assert.ok(fault instanceof kind, String(status))
    assert.match(fault.message, message)
    assert.equal(fault instanceof FetchWait ? fault.retryAfterMs : undefined, retryAfterMs)
  }
})
