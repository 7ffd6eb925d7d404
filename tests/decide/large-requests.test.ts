// Requests large enough to hold up the event loop go to a decode thread, with the same result, and a flag that takes
// long on large values is evaluated in slices.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import lzString from 'lz-string'
import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { JsonObject } from '#core/json.ts'
import {
  compileTestProject,
  type DecideServerOptions,
  startDecideServer,
  type TestDefinitions,
} from '../support/decide-server.ts'
import { allFlags, aSubject, evaluateFlags, evaluateInSlices } from '../support/evaluation-subject.ts'

const crashingEntry = new URL('../capture/crashing-decode-thread.ts', import.meta.url)
const headers = { 'x-request-id': '0197c5a0-0000-4000-8000-000000000001' }

function flag(id: number, key: string, ...filters: JsonObject[]): JsonObject {
  const properties = filters.map(filter => ({ key: 'a', type: 'person', ...filter }))
  return { id, key, filters: { groups: [{ properties }] } }
}

const flags = [
  flag(1, 'whole', { key: 'n', operator: 'exact', value: '1' }),
  flag(2, 'literal', { key: 'n', operator: 'exact', value: '1.0' }),
  flag(3, 'nested', { key: 'o', operator: 'exact', value: '{"__proto__":[1.5]}' }),
  flag(4, 'found', { operator: 'icontains', value: 'NEEDLE' }),
  flag(5, 'number', { key: 'n', operator: 'gt', value: 0 }),
]

/** The same subject whatever the `padding`, which is in a field that is never read. */
function requestText(padding: string): string {
  const properties = `{"n":1.0,"o":{"__proto__":[1.50]},"a":"a needle"}`
  return `{"token":"phc_test","padding":${padding},"distinct_id":"u","person_properties":${properties}}`
}

function lz64Form(text: string): string {
  return `data=${encodeURIComponent(lzString.compressToBase64(text))}&compression=lz64`
}

async function startServer(t: Parameters<typeof startDecideServer>[0], options: Partial<DecideServerOptions> = {}) {
  const server = await startDecideServer(t, { flags, ...options })
  const send = (body: string | Buffer, contentType = 'application/json', extra: Record<string, string> = {}) =>
    server.call('/flags/?v=2', {
      method: 'POST',
      headers: { ...headers, 'content-type': contentType, ...extra },
      body: typeof body === 'string' ? body : new Uint8Array(body),
    })
  return { ...server, send }
}

const form = 'application/x-www-form-urlencoded'
const longText = `"${'x'.repeat(1_000_000)}"`

describe('large requests', () => {
  it('are decoded in a thread and get exactly the same answers as small requests', async t => {
    const server = await startServer(t)
    const small = await server.send(requestText('1'))
    assert.equal(small.status, 200)
    const answered = small.json.flags as Record<string, { enabled: boolean }>
    assert.deepEqual(
      Object.values(answered).map(({ enabled }) => enabled),
      [false, true, true, true, true],
    )
    assert.equal(server.threadJobs.length, 0)
    const values = `[${'1.0,'.repeat(16_000)}"${'x'.repeat(300_000)}"]`
    const nested = `${'[{"a":'.repeat(500)}${longText}${'}]'.repeat(500)}`
    const cases: [string, Parameters<typeof server.send>][] = [
      ['close to the limit of the wire', [requestText(`"${'x'.repeat(2 * 1024 * 1024 - 200)}"`)]],
      ['gzip that unpacks to much', [gzipSync(requestText(`"${'x'.repeat(3_900_000)}"`))]],
      ['brotli', [brotliCompressSync(requestText(longText)), 'application/json', { 'content-encoding': 'br' }]],
      ['base64', [Buffer.from(requestText(longText)).toString('base64'), 'text/plain']],
      ['form', [`data=${encodeURIComponent(Buffer.from(requestText(longText)).toString('base64'))}`, form]],
      ['lz64 in a form', [lz64Form(requestText(`"${'x'.repeat(900_000)}"`)), form]],
      ['very many values', [requestText(values)]],
      ['nested deeply in an unused field', [requestText(nested)]],
    ]
    for (const [index, [name, sent]] of cases.entries()) {
      const answer = await server.send(...sent)
      assert.deepEqual([name, answer.status, answer.text], [name, 200, small.text])
      assert.equal(server.threadJobs.length, index + 1, name)
    }
  })

  it('are rejected in the same way as small requests', async t => {
    const server = await startServer(t)
    const refusalOf = async (...sent: Parameters<typeof server.send>) => {
      const { status, text } = await server.send(...sent)
      return `${status} ${text}`
    }
    const nested = `${'['.repeat(200)}${']'.repeat(200)}`
    for (const fields of ['"token":1', '"distinct_id":"u"', `"token":"phc_test","person_properties":{"a":${nested}}`]) {
      assert.equal(await refusalOf(`{${fields},"padding":${longText}}`), await refusalOf(`{${fields}}`))
    }
    assert.match(await refusalOf(gzipSync(requestText(`"${'x'.repeat(4_200_000)}"`))), /^413 .*payload_too_large/)
    assert.match(await refusalOf(requestText(`[${'1,'.repeat(200_000)}1]`)), /^413 .*payload_too_large/)
    assert.match(await refusalOf(requestText(longText).slice(0, -1)), /^400 .*invalid_json/)
    assert.match(await refusalOf(requestText(longText).replace('phc_test', 'phc_else')), /^401 .*authentication_failed/)
    assert.equal(server.threadJobs.length, 7)
  })

  it('are answered 503 if no thread is free, while small requests are served', async t => {
    const server = await startServer(t, { decodeThreads: { threadCount: 0, queuedJobCountMax: 0 } })
    const refused = await server.send(requestText(longText))
    assert.equal(refused.status, 503)
    assert.equal(refused.headers.get('retry-after'), '1')
    assert.deepEqual(refused.json, {
      type: 'server_error',
      code: 'transient_error',
      detail: 'transient error, please retry',
      attr: null,
    })
    assert.equal((await server.send(requestText('1'))).status, 200)
  })

  it('are answered 503 if their thread dies, and served by the next thread', async t => {
    const server = await startServer(t, { threadEntry: crashingEntry })
    assert.equal((await server.send(requestText(`["crash",${longText}]`))).status, 503)
    assert.equal((await server.send(requestText(longText))).status, 200)
  })
})

describe('a flag that takes long to evaluate', () => {
  /** Evaluates at once, and again in the shortest slices. */
  function bothWays(definitions: TestDefinitions, personProperties: JsonObject) {
    const project = compileTestProject(definitions)
    const subject = aSubject({ distinctId: 'u', personProperties })
    const atOnce = evaluateFlags(project, allFlags, subject)
    const { evaluation: sliced, sliceCount } = evaluateInSlices(project, subject)
    const summary = ({ outcomes }: FlagEvaluation) => outcomes.map(outcome => [outcome?.kind, outcome?.reason])
    assert.deepEqual(summary(sliced), summary(atOnce))
    return { sliceCount, kinds: atOnce.outcomes.map(outcome => outcome?.kind) }
  }

  const missing = (index: number): JsonObject => {
    return { key: 'a', type: 'person', operator: 'not_icontains', value: `nowhere ${index}` }
  }
  const missed = (index: number): JsonObject => ({ ...missing(index), operator: 'icontains' })
  const large = { a: `${'x'.repeat(100_000)} end` }

  it('can be interrupted between its condition sets, and between the filters of a set', () => {
    const manySets = {
      id: 1,
      key: 'sets',
      filters: { groups: Array.from({ length: 100 }, (_, index) => ({ properties: [missed(index)] })) },
    }
    const manyFilters = flag(2, 'filters', ...Array.from({ length: 100 }, (_, index) => missing(index)))
    const after = flag(3, 'after', { operator: 'icontains', value: 'END' })
    const { sliceCount, kinds } = bothWays({ flags: [manySets, manyFilters, after] }, large)
    assert.deepEqual(kinds, ['off', 'on', 'on'])
    assert.ok(sliceCount >= 200, `${sliceCount} slices`)
    const small = bothWays({ flags: [manySets, manyFilters, after] }, { a: 'the end' })
    assert.deepEqual(small.kinds, ['off', 'on', 'on'])
    assert.ok(small.sliceCount >= 12, `${small.sliceCount} slices`)
  })

  it('can be interrupted within a filter with very many values, shared by several flags or not', () => {
    const value = Array.from({ length: 1_000 }, (_, index) => `nowhere ${index}`)
    const any = { operator: 'icontains_multi', value }
    const none = { operator: 'not_icontains_multi', value }
    const last = { operator: 'icontains_multi', value: [...value, 'END'] }
    const definitions = {
      flags: [flag(1, 'any', any), flag(2, 'none', none), flag(3, 'shared', none), flag(4, 'last', last)],
    }
    const { sliceCount, kinds } = bothWays(definitions, large)
    assert.deepEqual(kinds, ['off', 'on', 'on', 'on'])
    assert.ok(sliceCount > 100, `${sliceCount} slices`)
  })

  it('keeps the most specific reason across time slices', () => {
    const outOfRollout = { properties: [{ ...missed(0), value: 'END' }], rollout_percentage: 0 }
    const groups = [{ properties: [missed(1)] }, outOfRollout, { properties: [missed(2)] }, { properties: [missed(3)] }]
    const { sliceCount, kinds } = bothWays({ flags: [{ id: 1, key: 'rollout', filters: { groups } }] }, large)
    assert.deepEqual(kinds, ['off'])
    assert.equal(sliceCount, 4)
  })
})
