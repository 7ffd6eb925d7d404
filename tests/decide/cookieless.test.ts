// Evaluations for cookieless visitors, over a real server. Source: docs/wire/evaluation.md 1.7; docs/wire/ofrep.md 2, 4.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  buildHashedDistinctId,
  computeVisitorHash,
  encodeVisitorHash,
  hashIdentifiedVisitor,
} from '#core/cookieless/visitor-hash.ts'
import type { JsonObject } from '#core/json.ts'
import { type CookielessMode, noIngestionSettings, noQuotas } from '#core/project.ts'
import { PortError } from '#ports/port-error.ts'
import { storeLimits } from '#services/flags/store-circuit-breaker.ts'
import { type DecideServerOptions, emptySubjects, startDecideServer } from '../support/decide-server.ts'

const sentinel = '$posthog_cookieless'
const saltOf = (day: string) => Buffer.alloc(16, Number(day.slice(-2)))
const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:151.0) Gecko/20100101 Firefox/151.0'
const page = { 'x-forwarded-for': '203.0.113.7', 'user-agent': userAgent, origin: 'https://shop.example.com' }

function hashOf({ day = '2026-01-15', address = '203.0.113.7', extra = '' } = {}) {
  return computeVisitorHash(saltOf(day), { projectId: 1, address, userAgent, extra }, 'example.com')
}
const visitor = buildHashedDistinctId(encodeVisitorHash(hashOf()))

/** Reads the stored person, so that a test sees whose flags are evaluated. */
const readsPerson: JsonObject = {
  id: 1,
  key: 'beta',
  filters: { groups: [{ properties: [{ key: 'plan', type: 'person', operator: 'exact', value: 'pro' }] }] },
}

async function start(t: TestContext, mode: CookielessMode, options: Partial<DecideServerOptions> = {}) {
  const found: string[] = []
  const findPerson = (_projectId: number, distinctId: string) => {
    found.push(distinctId)
    return null
  }
  const server = await startDecideServer(t, {
    flags: [readsPerson],
    trustedProxies: 'loopback',
    salts: { saltOf },
    subjects: { ...emptySubjects, findPerson },
    ...options,
    project: { ...options.project, ingestion: { ...noIngestionSettings, cookielessMode: mode } },
  })
  const flags = (body: JsonObject = {}, headers: Record<string, string> = page, path = '/flags?v=2') =>
    server.post(path, { token: 'phc_test', distinct_id: sentinel, ...body }, headers)
  const openFeature = (context: JsonObject = {}, headers: Record<string, string> = page, path = '/beta') =>
    server.post(
      `/ofrep/v1/evaluate/flags${path}`,
      { context: { targetingKey: sentinel, ...context } },
      { authorization: 'Bearer phc_test', ...headers },
    )
  const idAt = async (ask: Promise<{ status: number; text: string }>) => {
    const { status, text } = await ask
    assert.equal(status, 200, text)
    return found.pop()
  }
  return { ...server, found, flags, openFeature, idAt }
}

describe('an evaluation for a cookieless visitor', () => {
  it('uses the hashed id, on every path and in every version', async t => {
    const { flags, openFeature, idAt } = await start(t, 1)
    for (const path of ['/flags', '/flags?v=1', '/flags?v=2', '/flags?v=3', '/decide', '/decide?v=1', '/decide?v=3'])
      assert.equal(await idAt(flags({}, page, path)), visitor, path)
    for (const path of ['/beta', '']) assert.equal(await idAt(openFeature({}, page, path)), visitor, path)
  })

  it('hashes the values from the body and the context', async t => {
    const { flags, openFeature, idAt } = await start(t, 1)
    const expected = buildHashedDistinctId(encodeVisitorHash(hashOf({ day: '2026-01-16', extra: 'x' })))
    const fields = { timezone: 'Pacific/Auckland', cookieless_hash_extra: 'x' }
    assert.equal(await idAt(flags(fields)), expected)
    const context = { $timezone: 'Pacific/Auckland', $cookieless_extra: 'x' }
    assert.equal(await idAt(openFeature(context)), expected)
    assert.equal(await idAt(openFeature({ $timezone: 7, timezone: 'Pacific/Auckland' })), visitor)
  })

  it('is the same when a decode thread decodes the body', async t => {
    const { flags, idAt, threadJobs } = await start(t, 1)
    const padding = { person_properties: { long: 'x'.repeat(70_000) } }
    assert.equal(await idAt(flags(padding)), visitor)
    assert.equal(threadJobs.length, 1)
    const refused = await flags(padding, { ...page, origin: 'null' })
    assert.deepEqual([refused.status, refused.json.detail], [400, 'Missing required property: host'])
  })

  it('uses the client address that events use, not an untrusted header', async t => {
    const { flags, idAt } = await start(t, 1, { trustedProxies: 'none' })
    assert.equal(await idAt(flags()), buildHashedDistinctId(encodeVisitorHash(hashOf({ address: '127.0.0.1' }))))
  })

  it('includes the number of $identify events in stateful mode', async t => {
    const asked: unknown[] = []
    const countIdentifies = async (...question: unknown[]) => asked.push(question)
    const { flags, idAt } = await start(t, 2, { visitors: { countIdentifies } })
    const first = buildHashedDistinctId(encodeVisitorHash(hashIdentifiedVisitor(saltOf('2026-01-15'), hashOf(), 1)))
    assert.equal(await idAt(flags()), first)
    assert.deepEqual(asked, [[1, encodeVisitorHash(hashOf())]])
  })

  it('replaces only the cookieless placeholder id, and only if the project’s cookieless mode is on', async t => {
    const on = await start(t, 1)
    assert.equal(await on.idAt(on.flags({ distinct_id: 'ada' }, {})), 'ada')
    const off = await start(t, 0)
    assert.equal(await off.idAt(off.flags({}, {})), sentinel)
  })

  it('is rejected with the missing field when the request lacks a hash input, and is not counted', async t => {
    const { flags, openFeature, counted } = await start(t, 1)
    const withoutAgent = { ...page, 'user-agent': '' }
    for (const [headers, name] of [
      [{ 'user-agent': '' }, 'host'],
      [withoutAgent, 'user_agent'],
    ] as const) {
      const detail = `Missing required property: ${name}`
      for (const path of ['/flags?v=2', '/decide?v=1']) {
        const { status, json } = await flags({}, headers, path)
        const error = { type: 'validation_error', code: 'missing_property', detail, attr: null }
        assert.deepEqual([status, json], [400, error])
      }
      const alone = await openFeature({}, headers)
      const error = { errorCode: 'INVALID_CONTEXT', errorDetails: detail }
      assert.deepEqual([alone.status, alone.json], [400, { key: 'beta', ...error }])
      assert.deepEqual((await openFeature({}, headers, '')).json, error)
    }
    assert.deepEqual(counted, [])
  })

  it('derives the id after the quota check, which can answer without flags', async t => {
    const { flags } = await start(t, 1, { project: { quotas: { ...noQuotas, featureFlagRequests: 0 } } })
    const { status, json } = await flags({}, {})
    assert.deepEqual([status, json.quotaLimited], [200, ['feature_flags']])
  })

  it('is answered 503 while the salts are unavailable, and other requests are served', async t => {
    const unavailable = () => Promise.reject(new PortError('cookieless-salts', 'unavailable'))
    const { flags, openFeature, counted } = await start(t, 1, { salts: { saltOf: unavailable } })
    const answer = await flags()
    assert.deepEqual(
      [answer.status, answer.json.code, answer.headers.get('retry-after')],
      [503, 'transient_error', '1'],
    )
    const open = await openFeature()
    assert.deepEqual([open.status, open.json.errorCode, open.headers.get('retry-after')], [503, 'GENERAL', '1'])
    assert.deepEqual(counted, [])
    assert.equal((await flags({ distinct_id: 'ada' })).status, 200)
  })

  it('waits longer for a salt that must be written to disk first than for stored persons', async t => {
    const startTimer = (run: () => void, delayMs: number) => {
      if (delayMs <= storeLimits.timeoutMs) queueMicrotask(run)
      return { cancel: () => undefined }
    }
    const slowly = async (day: string) => {
      await nextTurn()
      return saltOf(day)
    }
    const { flags } = await start(t, 1, { guard: { startTimer }, salts: { saltOf: slowly } })
    assert.equal((await flags()).status, 200)
  })

  it('stores no continuity rows, neither for the hashed id nor for the shared placeholder id', async t => {
    const kept: string[] = []
    const { flags } = await start(t, 1, {
      flags: [
        { id: 1, key: 'half', ensure_experience_continuity: true, filters: { groups: [{ rollout_percentage: 50 }] } },
      ],
      hashKeys: {
        findHashKeys: () => [],
        addMissingHashKeys: async ({ distinctId }) => {
          kept.push(distinctId)
          return []
        },
      },
    })
    await flags({ $anon_distinct_id: 'anon' })
    await flags({ distinct_id: 'ada', $anon_distinct_id: sentinel })
    await flags({ distinct_id: 'ada', person_properties: { $anon_distinct_id: sentinel } })
    assert.deepEqual(kept, [])
    await flags({ distinct_id: 'ada', $anon_distinct_id: 'anon' })
    assert.deepEqual(kept, ['ada'])
  })
})
