import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  buildHashedDeviceId,
  buildHashedDistinctId,
  computeVisitorHash,
  encodeVisitorHash,
  hashIdentifiedVisitor,
  type VisitorParts,
} from '#core/cookieless/visitor-hash.ts'
import type { RequestVisitor } from '#core/flags/evaluation/evaluation-request.ts'
import { type CookielessMode, noIngestionSettings, type Project } from '#core/project.ts'
import { err, ok } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import { createVisitorHasher, type VisitorHasherOptions } from './hash-visitor.ts'
import type { SubjectRequest } from './load-subject.ts'
import type { StoreCircuitBreaker } from './store-circuit-breaker.ts'

/** A salt for each day of a month. */
const saltOf = (day: string) => Buffer.alloc(16, Number(day.slice(-2)))
const nowMs = Date.parse('2026-01-15T12:00:00Z')
const page: RequestVisitor = { address: '203.0.113.7', host: 'https://shop.example.com', userAgent: 'Firefox' }

function hashOf(change: Partial<VisitorParts> = {}, day = '2026-01-15') {
  const { address, userAgent } = page
  return computeVisitorHash(saltOf(day), { projectId: 1, address, userAgent, extra: '', ...change }, 'example.com')
}

/** Limits nothing: every failure becomes an error value. */
const guard: StoreCircuitBreaker = {
  run(call) {
    try {
      const answer = call()
      return answer instanceof Promise ? answer.then(ok, () => err('database_unavailable')) : ok(answer)
    } catch {
      return err('database_unavailable')
    }
  },
  isDown: () => false,
}

const noVisitors: CookielessVisitors = { countIdentifies: () => assert.fail('mode 1 has no state') }

interface Asked extends Partial<VisitorHasherOptions> {
  readonly mode?: CookielessMode
  readonly shown?: Partial<RequestVisitor>
  readonly projectZone?: string
  readonly deviceId?: string
}

function ask(asked: Asked = {}) {
  const { mode = 1, shown, projectZone = 'UTC', deviceId = null, ...stores } = asked
  const usual = { salts: { saltOf }, visitors: noVisitors, saltReads: guard, reads: guard }
  const hash = createVisitorHasher({ ...usual, ...stores })
  const ingestion = { ...noIngestionSettings, cookielessMode: mode }
  const project = { id: 1, timezone: projectZone, ingestion } as Project
  const request = { distinctId: '$posthog_cookieless', deviceId } as SubjectRequest
  return hash(project, request, { timezone: null, extra: '' }, { ...page, ...shown }, nowMs)
}

async function idsOf(asked: Asked) {
  const hashed = await ask(asked)
  assert.ok(hashed.ok)
  const { distinctId, deviceId } = hashed.value
  return { distinctId, deviceId }
}

const idsFor = (hash: Uint8Array) => ({
  distinctId: buildHashedDistinctId(encodeVisitorHash(hash)),
  deviceId: buildHashedDeviceId(encodeVisitorHash(hash)),
})

describe('a cookieless visitor', () => {
  it('is the same for every spelling of the address, and is hashed with the user agent as truncated by posthog-js', async () => {
    assert.deepEqual(await idsOf({ shown: { address: '::FFFF:203.0.113.7' } }), idsFor(hashOf()))
    const address = '2001:db8::1'
    assert.deepEqual(await idsOf({ shown: { address: '2001:DB8:0:0::0001' } }), idsFor(hashOf({ address })))
    const userAgent = `${'x'.repeat(997)}...`
    assert.deepEqual(await idsOf({ shown: { userAgent: 'x'.repeat(1_001) } }), idsFor(hashOf({ userAgent })))
  })

  it('belongs to the day in the project’s time zone, and keeps a device id that was sent', async () => {
    assert.ok(!(ask() instanceof Promise), 'it waits although the salt is known')
    assert.deepEqual(await idsOf({ projectZone: 'Pacific/Auckland' }), idsFor(hashOf({}, '2026-01-16')))
    assert.deepEqual(await idsOf({ deviceId: 'd' }), { ...idsFor(hashOf()), deviceId: 'd' })
  })

  it('gets a new id with each $identify if the project keeps state, and keeps the same device id', async () => {
    const asked: unknown[] = []
    const visitors: CookielessVisitors = {
      countIdentifies: async (...visitor) => {
        asked.push(visitor)
        return 2
      },
    }
    const expected = buildHashedDistinctId(encodeVisitorHash(hashIdentifiedVisitor(saltOf('2026-01-15'), hashOf(), 2)))
    assert.deepEqual(await idsOf({ mode: 2, visitors }), { ...idsFor(hashOf()), distinctId: expected })
    assert.deepEqual(asked, [[1, encodeVisitorHash(hashOf())]])
    assert.deepEqual(await idsOf({ mode: 2, visitors: { countIdentifies: () => 0 } }), idsFor(hashOf()))
  })

  it('is refused without an address, a host or a user agent, checked in this order', async () => {
    for (const [shown, property] of [
      [{ address: '', host: '', userAgent: '' }, 'ip'],
      [{ host: '', userAgent: '' }, 'host'],
      [{ userAgent: '' }, 'user_agent'],
    ] as const)
      assert.deepEqual(await ask({ shown }), err({ kind: 'missing_property', property }))
  })

  it('is unknown while the salts or the state are unavailable', async () => {
    const away = async () => {
      throw new PortError('state', 'unavailable')
    }
    const unknown = err({ kind: 'visitor_unknown' })
    assert.deepEqual(await ask({ salts: { saltOf: away } }), unknown)
    assert.deepEqual(await ask({ mode: 2, visitors: { countIdentifies: away } }), unknown)
  })
})
