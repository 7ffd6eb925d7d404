import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { notFound, unknownPublicPath } from '#wire/wire-error.ts'
import { serve } from '../../../tests/support/local-server.ts'
import { ClientError, PrivateApi } from './private-api.ts'

/** Servers that are not Pennon, or a failing one; other tests run the commands against a real instance. */
async function open(t: TestContext, answer: RequestListener, timeoutMs = 5_000) {
  const instance = await serve(t, answer)
  return new PrivateApi({ instance, personalKey: 'phx_secret', project: '@current', timeoutMs })
}

const answering =
  (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(status, headers).end(body)

async function failureOf(asked: Promise<unknown>): Promise<ClientError> {
  const error = await asked.then(
    () => null,
    (cause: unknown) => cause,
  )
  assert.ok(error instanceof ClientError, String(error))
  assert.ok(!error.message.includes('\n') && !error.message.includes('phx_secret'), error.message)
  return error
}

describe('the client of the private API', () => {
  it('says at which address no instance answers, and how to give another address', async () => {
    const api = new PrivateApi({ instance: 'http://127.0.0.1:1', personalKey: 'k', project: '1' })
    const { message, exitCode } = await failureOf(api.get('/x/'))
    assert.match(message, /^No instance answers at http:\/\/127\.0\.0\.1:1 \(.+\)\. Start one .* --host\.$/)
    assert.equal(exitCode, 2)
  })

  it('says that https is wrong for an instance without TLS', async t => {
    const { instance: plain } = await open(t, answering(200, '{}'))
    const instance = plain.replace('http:', 'https:')
    const api = new PrivateApi({ instance, personalKey: 'k', project: '1' })
    assert.match(
      (await failureOf(api.get('/x/'))).message,
      /^No instance answers at https:.* not use TLS; try http:\/\/ instead/,
    )
  })

  const error = (detail: string) => JSON.stringify({ type: 't', code: 'c', detail, attr: null })
  const refusals: [status: number, body: string, exitCode: number, message: RegExp][] = [
    [401, error('Invalid key.'), 2, /rejected the key in PENNON_PERSONAL_KEY: Invalid key\..*pennon new-key/],
    [403, error('It lacks the scope feature_flag:read.'), 2, /lacks permission at .*scope feature_flag:read/],
    [
      404,
      error('This project does not exist.'),
      2,
      /^This project does not exist\. .*project @current at .*--project\)$/,
    ],
    [
      404,
      error(notFound.detail),
      2,
      /^There is no private API at http\S+, .*--host or PENNON .*before \/api\/.*PENNON_ADMIN_PORT/,
    ],
    [404, error(unknownPublicPath.detail), 2, /^There is no private API at http\S+, .* this port serves SDKs/],
    [400, error('limit: at least 1'), 2, /answered 400: limit: at least 1/],
    [503, error('Try again.'), 1, /answered 503: Try again\./],
    [200, '<html>', 2, /answered 200, but not like Pennon's private API\..*--host.*PENNON_ADMIN_PORT/],
    [200, '[1]', 2, /not like Pennon's/],
    [404, '<html>', 2, /answered 404, but not like/],
    [302, '', 2, /answered 302, but not like/],
  ]
  for (const [status, body, exitCode, message] of refusals)
    it(`says what to do about ${status} ${body}`, async t => {
      const api = await open(t, answering(status, body, { location: 'http://127.0.0.1:1/' }))
      const failure = await failureOf(api.get('/x/'))
      assert.match(failure.message, message)
      assert.equal(failure.exitCode, exitCode)
    })

  it('names no project if the request was not about one', async t => {
    const { instance: url } = await open(t, answering(404, error('Gone.')))
    const { message } = await failureOf(new PrivateApi({ instance: url, personalKey: 'k', project: '' }).ownKey())
    assert.equal(message, `Gone. (at ${url})`)
  })

  it('gives up on an instance that never answers, with a message', async t => {
    const api = await open(t, () => {}, 50)
    const { message, exitCode } = await failureOf(api.get('/x/'))
    assert.match(message, /did not answer within 0\.05 s\. Try again\.$/)
    assert.equal(exitCode, 1)
  })

  it('reads a list page by page, up to the number of results requested', async t => {
    const asked: string[] = []
    const api = await open(t, (request, response) => {
      asked.push(request.url!)
      const offset = Number(new URL(request.url!, 'http://x').searchParams.get('offset'))
      const results = [offset, offset + 1].filter(n => n < 5).map(n => ({ n }))
      response.end(JSON.stringify({ count: 5, next: offset + 2 < 5 ? 'http://elsewhere/' : null, results }))
    })
    const numbers = async (countMax?: number) => (await api.list('/x/', { a: ['b', 'c'] }, countMax)).map(({ n }) => n)
    assert.deepEqual(await numbers(), [0, 1, 2, 3, 4])
    assert.equal(asked[1], '/api/projects/%40current/x/?limit=200&a=b&a=c&offset=2')
    asked.length = 0
    assert.deepEqual(await numbers(3), [0, 1, 2])
    assert.equal(asked.length, 2)
  })

  it('requests shorter pages if rows are too large together, down to one row', async t => {
    let fittingCount = 60
    const limits: number[] = []
    const api = await open(t, (request, response) => {
      const { searchParams } = new URL(request.url!, 'http://x')
      const [limit, offset] = [Number(searchParams.get('limit')), Number(searchParams.get('offset'))]
      limits.push(limit)
      if (limit > fittingCount) {
        response.writeHead(400).end(JSON.stringify({ type: 't', code: 'c', detail: 'Too large.', attr: 'limit' }))
        return
      }
      const results = Array.from({ length: Math.min(limit, 110 - offset) }, (_, index) => ({ n: offset + index }))
      response.end(JSON.stringify({ next: offset + limit < 110 ? 'http://elsewhere/' : null, results }))
    })
    const found = await api.list('/x/')
    assert.deepEqual(
      found.map(({ n }) => n),
      Array.from({ length: 110 }, (_, n) => n),
    )
    assert.deepEqual(limits, [200, 100, 50, 50, 50])
    fittingCount = 0
    assert.match((await failureOf(api.list('/x/'))).message, /answered 400: limit: Too large\.$/)
    assert.equal(limits.at(-1), 1)
  })

  it('sends the key as a bearer token, and a body as JSON', async t => {
    const api = await open(t, (request, response) => {
      let body = ''
      request.on('data', chunk => {
        body += chunk
      })
      request.on('end', () =>
        response.end(JSON.stringify({ key: request.headers.authorization, method: request.method, body })),
      )
    })
    assert.deepEqual(await api.post('/x/', { a: 1 }), { key: 'Bearer phx_secret', method: 'POST', body: '{"a":1}' })
  })
})
