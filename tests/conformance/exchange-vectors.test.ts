import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { answerDifferences, valueAt } from './answer.ts'
import { exactDifferences } from './compare.ts'
import { exchange } from './exchange.ts'
import { type ExchangeVector, exchangeCases } from './forms/exchanges.ts'
import { pureCases } from './forms/pure.ts'
import { type Instance, type Instances, personalKey } from './instance.ts'
import { Label, tried } from './labels.ts'
import { passing, wrongVersions } from './wrong-versions.ts'

// A server that answers with what it was sent shows what the form sends, and that each comparison can fail. `vectors.ci.ts`
// runs the vectors on the service.

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  if (request.url === '/api/bytes') return void response.writeHead(200).end(body)
  const { authorization = null, 'content-type': type = null } = request.headers
  response.writeHead(201, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ path: request.url, authorization, type, body: body.toString(), list: [{ id: 7 }] }))
})
const instances: Instances = {
  with: (_, use) => {
    const { port } = server.address() as { port: number }
    return use({ send: sent => exchange(`http://127.0.0.1:${port}`, sent) } as Instance)
  },
}

const vector: ExchangeVector = {
  id: 'echo',
  steps: [
    {
      method: 'POST',
      path: '/api/things/',
      private: true,
      body_json: { a: 1 },
      save: { id: 'list.0.id', path: 'path' },
      expect: {
        status: 201,
        headers: { 'content-type': 'application/json' },
        json_at: { authorization: `Bearer ${personalKey}`, type: 'application/json', body: '{"a":1}', 'list.0.id': 7 },
        json_absent: ['list.1', 'body.a', 'list.0.id.x'],
      },
    },
    {
      method: 'PATCH',
      path: '/api/things/{{id}}/',
      body_json: { id: '{{id}}', from: 'was {{path}}' },
      expect: {
        json_at: { path: '/api/things/{{id}}/', authorization: null, body: '{"id":7,"from":"was /api/things/"}' },
      },
    },
    { method: 'POST', path: '/api/same', body: 'x', expect: { json_at: { path: '<label:a>', body: '<label:b>' } } },
    { method: 'POST', path: '/api/same', body: 'y', expect: { json_at: { path: '<label:a>', body: '<label:c>' } } },
    { method: 'POST', path: '/api/bytes', body_base64: '/wA=', expect: { body_base64: '/wA=' } },
  ],
}

describe('exchange test vectors', () => {
  before(() => new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve)))
  after(() => void server.close())

  it('send their steps in order and compare each answer', async () => assert.deepEqual(await run(vector), []))

  it('fail if any of their expectations is changed', async () => {
    const wrong = vector.steps.flatMap((step, index) =>
      [...wrongVersions(step.expect!)].map(expect => withStep(index, { ...step, expect })),
    )
    assert.ok(wrong.length > 20)
    assert.deepEqual(await passing(wrong, run), [])
  })

  it('fail if a path that must be absent is present, or if the body is not JSON', async () => {
    for (const json_absent of [['list.0'], ['authorization']])
      assert.equal((await run(withStep(0, { ...vector.steps[0]!, expect: { json_absent } }))).length, 1)
    assert.equal((await run(withStep(4, { ...vector.steps[4]!, expect: { json_absent: ['a'] } }))).length, 1)
  })

  it('fail if a value to save is absent, or if a value is used that was not saved', async () => {
    const { save: _, ...unsaved } = vector.steps[0]!
    assert.equal((await run(withStep(0, { ...unsaved, save: { id: 'list.1.id' } }))).length, 1)
    await assert.rejects(run(withStep(0, unsaved)), /no step before has saved id/)
  })

  it('cannot be run without steps or expectations, or with two bodies', async () => {
    const step = { method: 'GET', path: '/api/' }
    await assert.rejects(run({ id: 'none', steps: [] }), /has no steps/)
    await assert.rejects(run({ id: 'none', steps: [step] }), /expects nothing/)
    await assert.rejects(run(withStep(0, { ...vector.steps[0]!, body: 'x' })), /only one can hold/)
  })
})

describe('labels in test vectors', () => {
  it('stand for the same text everywhere, and each label for a different text', () => {
    const texts = new Map<string, string>()
    const [a, b] = [new Label('a', texts), new Label('b', texts)]
    assert.deepEqual(exactDifferences([a, b, a], ['x', 'y', 'x'], 'ids'), [])
    assert.deepEqual(exactDifferences(a, 'y', 'id'), ['id: is "y" instead of "<label:a>"'])
    assert.equal(exactDifferences(new Label('c', texts), 'x', 'id').length, 1)
    assert.equal(exactDifferences(new Label('d', texts), 1, 'id').length, 1)
    assert.equal(String(a), 'x')
  })

  it('are not assigned by a tentative comparison', () => {
    const a = new Label('a', new Map())
    assert.equal(
      tried([{ id: a }], () => a.accepts('x')),
      true,
    )
    assert.equal(a.accepts('y'), true)
  })
})

describe('paths in an answer', () => {
  it('are resolved by keys and indexes, never by inherited properties', () => {
    assert.equal(valueAt({ a: [{ b: null }] }, 'a.0.b'), null)
    for (const path of ['a.1', 'toString', 'a.0.b.c']) assert.equal(valueAt({ a: [{ b: null }] }, path), undefined)
    const answer = { status: 200, headers: {}, text: '{"a":null}', bytes: Buffer.from('{"a":null}') }
    assert.equal(answerDifferences({ json_at: { b: null } }, answer).length, 1)
    assert.equal(answerDifferences({ json_absent: ['a'] }, answer).length, 1)
  })
})

describe('test vectors of pure functions', () => {
  const domain = { id: 'domain', host: 'a.example.com', root_domain: 'example.com' }
  const run = (version: typeof domain) => {
    const functions = {
      root_domain_vectors: ({ host }: { host?: unknown }) => String(host).split('.').slice(1).join('.'),
    }
    return pureCases('root_domain_vectors', [version], functions)[0]!.run(instances)
  }

  it('compare what the function returns', async () => {
    assert.deepEqual(await run(domain), [])
    const { id, ...rest } = domain
    const wrong = [...wrongVersions(rest)].map(version => ({ id, ...version }))
    assert.deepEqual(await passing(wrong, run), [])
  })

  it('cannot be run without a function, or with a required part missing', () => {
    const [only] = pureCases('root_domain_vectors', [domain], {})
    assert.throws(() => only!.run(instances), /the core has no function for root_domain_vectors yet/)
    const [part] = pureCases('cookieless_day_vectors', [{ id: 'day', expect: {} }], {})
    assert.throws(() => part!.run(instances), /the vector has no timestamp/)
  })
})

async function run(version: ExchangeVector): Promise<readonly string[]> {
  return exchangeCases([version], 'phc_test', () => true)[0]!.run(instances)
}

function withStep(index: number, step: ExchangeVector['steps'][number]): ExchangeVector {
  return { ...vector, steps: vector.steps.with(index, step) }
}
