// `X-Import-Report: 1` on a batch without a job: when the event store is asked how much of it is stored, and when it waits.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { compileProject } from '#core/flags/evaluation/compile-project.ts'
import { PortError } from '#ports/port-error.ts'
import {
  backlogOf,
  type CaptureServerOptions,
  startCaptureServer,
  testProject,
  testToken,
} from '../support/capture-server.ts'
import { eventually } from '../support/eventually.ts'
import { emptyDefinitions } from '../support/values.ts'

/** Counts two events of each batch as stored. */
async function start(t: TestContext, options: CaptureServerOptions = {}) {
  const asked: number[] = []
  const server = await startCaptureServer(t, {
    eventStore: {
      countStoredEvents: async (_, { summary }) => {
        asked.push(summary.count)
        return 2
      },
    },
    ...options,
  })
  const send = async (distinctIds: readonly unknown[], envelope: object = { historical_migration: true }) => {
    const batch = distinctIds.map(distinct_id => ({
      ...{ event: 'e', distinct_id, timestamp: '2024-01-01T00:00:00Z', uuid: '0197c5a0-0000-7000-8000-000000000001' },
    }))
    const body = JSON.stringify({ api_key: testToken, ...envelope, batch })
    const response = await server.post('/batch/', body, { 'x-import-report': '1' })
    const { headers } = response
    const [rate, retryAfter] = ['x-import-rate', 'retry-after'].map(name => headers.get(name))
    return { status: response.status, rate, retryAfter, report: JSON.parse(await response.text()) }
  }
  return { server, asked, send }
}

describe('a batch that asks for an import report', () => {
  it('gets the number of its duplicates and of events already stored', async t => {
    const { asked, send } = await start(t)
    const { status, report } = await send(['a', 'b', 'b', ''])
    assert.deepEqual([status, report.accepted, report.duplicates, report.failed_records.length], [200, 3, 3, 1])
    assert.equal(report.charged, 0)
    assert.deepEqual(asked, [2])
  })

  it('gets the same report when it is large and a thread decodes it, even with an unknown key', async t => {
    const { asked, send } = await start(t, { unknownKeys: 'accept' })
    const large = { historical_migration: true, padding: 'x'.repeat(2 ** 20) }
    const { report } = await send(['a', 'b', 'b', ''], large)
    const { report: small } = await send(['a', 'b', 'b', ''])
    assert.deepEqual(report, small)
    assert.deepEqual(asked, [2, 2])
    const unknown = await send(['a'], { ...large, api_key: 'phc_unknown' })
    assert.deepEqual([unknown.report.accepted, unknown.report.failed_records[0].reason], [0, 'unknown_api_key'])
    assert.equal(asked.length, 2)
  })

  it('does not query the event store when it is rejected, has nothing to store, or is not a historical migration', async t => {
    const { asked, send, server } = await start(t, { backlogOf: traffic => backlogOf(traffic === 'live' ? 100 : 3) })
    assert.equal((await send(['a', 'b', 'c'])).status, 200)
    asked.length = 0
    assert.equal((await send(['d'])).status, 503)
    assert.equal((await send([''])).status, 200)
    const { status, report } = await send(['a', 'a'], {})
    assert.deepEqual([status, report.accepted, report.duplicates, report.charged], [200, 2, 1, 1])
    assert.deepEqual(asked, [])
    assert.equal((await server.records()).events.length, 5)
  })

  it('counts towards its project’s backlog during the query, and no longer after the query has failed', async t => {
    let fail = (_: Error) => {}
    const failing = new Promise<number>((_, reject) => {
      fail = reject
    })
    let askCount = 0
    const { send } = await start(t, {
      backlogOf: () => backlogOf(3),
      eventStore: {
        countStoredEvents: () => (++askCount === 1 ? failing : Promise.reject(new PortError('event-store', 'full'))),
      },
    })
    const first = send(['a', 'b', 'c'])
    await eventually(() => askCount === 1, { what: 'the question' })
    assert.equal((await send(['d'])).status, 503)
    fail(new Error('a fault'))
    assert.equal((await first).status, 500)
    const { status, report } = await send(['d'])
    assert.deepEqual([status, report.duplicates], [200, 0])
  })

  it('is delayed only by its own project’s backlog, and not at all if it is live', async t => {
    const project = (id: number) => compileProject(emptyDefinitions({ ...testProject, id }, 1))
    const projects = new Map([
      [testToken, project(1)],
      ['phc_light', project(2)],
    ])
    const nowMs = Date.parse('2025-07-01T11:00:00Z')
    const { send, server } = await start(t, {
      findProject: token => projects.get(token) ?? null,
      processedUntil: () => ({ appendedBeforeMs: nowMs - 1, deferred: null }),
      backlogOf: () => ({ ...backlogOf(100), isBelowShare: id => id === 2 }),
    })
    assert.equal((await send(['a'])).status, 200)
    server.clock.advance(40_000)
    const light = await send(['a'], { historical_migration: true, api_key: 'phc_light' })
    assert.deepEqual([light.status, Number(light.rate) > 0], [200, true])
    const heavy = await send(['a'])
    assert.deepEqual([heavy.status, heavy.report.code, heavy.retryAfter], [429, 'import_too_fast', '25'])
    assert.equal((await send(['a'], {})).status, 200)
  })
})
