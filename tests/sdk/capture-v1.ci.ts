import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { startAcceptance, storedEvents, storedPerson } from './acceptance.ts'
import { pythonWith } from './python-environment.ts'
import type { Exchange } from './recording-proxy.ts'

// Published SDKs, unmodified, switched to capture protocol v1. Source: docs/wire/clients.md 9, 13 rows 16, 17, 31, 74.

// biome-ignore lint/suspicious/noExplicitAny: a library whose types are of no matter here
type Client = any

interface CaptureV1Error {
  readonly drops: readonly { readonly uuid: string; readonly details?: string }[]
  readonly retryExhausted: readonly string[]
}

const path = '/i/v1/analytics/events'
const acceptance = startedForTests(startAcceptance)

const isCapture = (exchange: Exchange) => exchange.path.startsWith(path)

describe('posthog-node 5.70.0 with capture v1', () => {
  const uuidOf = (index: number) => `019b0000-0000-7000-8000-${String(index).padStart(12, '0')}`

  async function errorsWith(options: object, use: (client: Client) => void): Promise<CaptureV1Error[]> {
    const { PostHog } = await import('posthog-node')
    // Read when a client is created; there is no option for it.
    process.env.POSTHOG_CAPTURE_MODE = 'v1'
    const client: Client = new PostHog(testProjectKey, { host: acceptance.proxy.url, ...options })
    delete process.env.POSTHOG_CAPTURE_MODE
    const errors: CaptureV1Error[] = []
    client.on('error', (error: CaptureV1Error) => errors.push(error))
    use(client)
    await client.shutdown()
    return errors
  }

  it('gets its events stored with their person, and with the library named in the header', async () => {
    acceptance.proxy.take()
    const timestamp = new Date('2026-01-02T03:04:05.678Z')
    const errors = await errorsWith({}, client => {
      const properties = { price: 9.5, $session_id: 'S1', $process_person_profile: false }
      client.capture({ distinctId: 'v1-node', event: 'bought', properties, timestamp })
      client.identify({ distinctId: 'v1-node', properties: { plan: 'pro' } })
    })
    assert.deepEqual(errors, [])
    const asked = acceptance.proxy.take().filter(isCapture)
    assert.deepEqual(
      asked.map(({ status, headers }) => [status, headers['content-encoding']]),
      [[200, 'gzip']],
    )
    const stored = await storedEvents(acceptance.pennon, 'v1-node')
    const bought = stored.find(({ event }) => event === 'bought')!
    assert.ok(Math.abs(Date.parse(bought.timestamp) - timestamp.getTime()) < 60_000, bought.timestamp)
    const { price, $lib, $lib_version, $session_id, $process_person_profile } = bought.properties
    assert.deepEqual(
      [price, $lib, $lib_version, $session_id, $process_person_profile],
      [9.5, 'posthog-node', '5.70.0', 'S1', false],
    )
    assert.ok(stored.some(({ event }) => event === '$identify'))
    assert.equal((await storedPerson(acceptance.pennon, 'v1-node'))?.properties.plan, 'pro')
  })

  it('learns which of three events was dropped, and gets the other two stored', async () => {
    const errors = await errorsWith({ flushAt: 3 }, client => {
      client.capture({ distinctId: 'v1-mixed', event: 'first' })
      client.capture({ distinctId: 'x'.repeat(201), event: 'second', uuid: uuidOf(2) })
      client.capture({ distinctId: 'v1-mixed', event: 'third' })
    })
    assert.deepEqual(
      errors.flatMap(({ drops }) => drops),
      [{ uuid: uuidOf(2), details: 'distinct_id_too_large' }],
    )
    const stored = await storedEvents(acceptance.pennon, 'v1-mixed')
    assert.deepEqual(stored.map(({ event }) => event).toSorted(), ['first', 'third'])
  })

  it('resends events when asked to, and each is stored once, even if it is also sent with capture v0', async () => {
    acceptance.proxy.take()
    const retry = { result: 'retry', details: 'not_persisted' }
    acceptance.proxy.answerNext(path, [
      { status: 503, headers: { 'retry-after': '1' }, body: '{"error":"service_unavailable"}' },
      { status: 200, headers: { 'retry-after': '1' }, body: JSON.stringify({ results: { [uuidOf(3)]: retry } }) },
    ])
    const timestamp = new Date()
    const errors = await errorsWith({ fetchRetryDelay: 50 }, client => {
      client.capture({ distinctId: 'v1-retried', event: 'retried', uuid: uuidOf(3), timestamp })
    })
    assert.deepEqual(errors, [])
    const asked = acceptance.proxy.take().filter(isCapture)
    assert.deepEqual(
      asked.map(({ status, headers }) => [status, headers['posthog-attempt']]),
      [
        [503, '1'],
        [200, '2'],
        [200, '3'],
      ],
    )
    assert.equal(new Set(asked.map(({ headers }) => headers['posthog-request-id'])).size, 1)
    const [stored, ...others] = await storedEvents(acceptance.pennon, 'v1-retried')
    assert.deepEqual(others, [])
    const again = { event: 'retried', distinct_id: 'v1-retried', uuid: uuidOf(3), timestamp: stored!.timestamp }
    await acceptance.pennon.post('/batch/', { api_key: testProjectKey, batch: [again] })
    assert.equal((await storedEvents(acceptance.pennon, 'v1-retried')).length, 1)
  })

  it('gets a historical migration stored as an import', async () => {
    await errorsWith({ historicalMigration: true }, client => {
      const timestamp = new Date('2021-05-06T07:08:09.123Z')
      client.capture({ distinctId: 'v1-imported', event: 'old', timestamp })
    })
    const [old] = await storedEvents(acceptance.pennon, 'v1-imported')
    assert.deepEqual(
      [old?.lane, old?.historical_migration, Date.parse(old!.timestamp)],
      ['historical', true, Date.parse('2021-05-06T07:08:09.123Z')],
    )
  })
})

describe('posthog-python 7.91.1 with capture v1', () => {
  const prefix = 'v1-python-'
  let complaints: [string, string[]][]

  before(async () => {
    acceptance.proxy.take()
    const script = join(import.meta.dirname, 'posthog_python_v1_scenario.py')
    const args = [script, acceptance.proxy.url, testProjectKey, prefix]
    const { stdout } = await promisify(execFile)(pythonWith('7.91.1'), args, { timeout: 240_000 })
    complaints = JSON.parse(stdout)
  })

  it('gets its events stored with every compression that it offers, including the fields outside the properties', async () => {
    for (const compression of ['none', 'gzip', 'deflate']) {
      const [bought, ...others] = await storedEvents(acceptance.pennon, prefix + compression)
      assert.deepEqual(others, [])
      assert.ok(Math.abs(Date.parse(bought!.timestamp) - Date.parse('2026-01-02T03:04:05.678Z')) < 1_000)
      const { price, $lib, $lib_version, $session_id, $process_person_profile } = bought!.properties
      assert.deepEqual(
        [price, $lib, $lib_version, $session_id, $process_person_profile],
        [9.5, 'posthog-python', '7.91.1', 'S-1', false],
        compression,
      )
    }
    assert.equal((await storedPerson(acceptance.pennon, `${prefix}person`))?.properties.plan, 'pro')
    const encodings = new Set(acceptance.proxy.exchanges.filter(isCapture).map(e => e.headers['content-encoding']))
    assert.deepEqual([...encodings].map(String).toSorted(), ['deflate', 'gzip', 'undefined'])
  })

  it('learns exactly which events were dropped', async () => {
    assert.deepEqual(
      complaints.map(([, drops]) => drops),
      [['distinct_id_too_large']],
      JSON.stringify(complaints),
    )
    const stored = await storedEvents(acceptance.pennon, `${prefix}mixed`)
    assert.deepEqual(stored.map(({ event }) => event).toSorted(), ['first', 'third'])
    const refused = acceptance.proxy.exchanges.filter(({ status }) => status !== 200)
    assert.deepEqual(refused, [])
  })

  it('gets a historical migration stored as an import', async () => {
    const [old] = await storedEvents(acceptance.pennon, `${prefix}imported`)
    assert.deepEqual([old?.lane, old?.historical_migration], ['historical', true])
  })
})
