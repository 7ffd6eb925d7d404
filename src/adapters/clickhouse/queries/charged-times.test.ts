import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ClickHouseError } from '@clickhouse/client'
import { PortError } from '#ports/port-error.ts'
import { aStoredEvent } from '../../../../tests/support/values.ts'
import type { ClickHouseClient, ClickHouseClients } from '../connection/clickhouse-clients.ts'
import { findChargedTimes } from './charged-times.ts'

const events = Array.from({ length: 2_000 }, (_, n) => aStoredEvent({ distinctId: `person-${n}` }))

/** What the adapter makes of a query that the server has ended. */
const tooLong = new PortError(
  'event-store',
  'timeout',
  new ClickHouseError({ message: 'Timeout exceeded', code: '159', type: 'TIMEOUT_EXCEEDED' }),
)

/** A store that has a copy of every event and fails with `failure` when more than `limit` are asked for at once. */
function aStore(limit: number, failure: PortError) {
  const sizes: number[] = []
  const client = {
    query: async ({ query_params }: { query_params: Record<string, string> }) => {
      const lists = Object.values(query_params)
      const asked = lists.flatMap(list => JSON.parse(Buffer.from(list, 'base64').toString()) as unknown[][])
      sizes.push(asked.length)
      if (asked.length > limit) throw failure
      const rows = asked.map(([projectId, day, event, distinctId, uuid]) => [
        projectId,
        day,
        event,
        distinctId,
        uuid,
        String(distinctId).slice('person-'.length),
      ])
      return { json: async () => rows }
    },
  } as unknown as ClickHouseClient
  const write: ClickHouseClients['write'] = call => call(client, 'pennon', null as never)
  return { sizes, clients: { write } }
}

describe('asking for the days on which events were charged', () => {
  it('sends one query, and returns the times in the order of the events', async () => {
    const { clients, sizes } = aStore(10_000, tooLong)
    const times = await findChargedTimes(clients, events.toReversed())
    assert.deepEqual(times, events.map((_, n) => n).toReversed())
    assert.deepEqual(sizes, [2_000])
  })

  it('asks for fewer days per query when the server takes too long', async () => {
    const { clients, sizes } = aStore(500, tooLong)
    const times = await findChargedTimes(clients, events)
    assert.deepEqual(
      times,
      events.map((_, n) => n),
    )
    assert.deepEqual(sizes, [2_000, 1_000, 500, 500, 1_000, 500, 500])
  })

  it('gives up when even a few days take too long, and at once when the server does not answer', async () => {
    const slow = aStore(0, tooLong)
    await assert.rejects(findChargedTimes(slow.clients, events), { code: 'timeout' })
    assert.deepEqual(slow.sizes, [2_000, 1_000, 500, 250])
    for (const code of ['unavailable', 'timeout'] as const) {
      const silent = aStore(0, new PortError('event-store', code))
      await assert.rejects(findChargedTimes(silent.clients, events), { code })
      assert.deepEqual(silent.sizes, [2_000])
    }
  })

  it('does not query identities that cannot be stored', async () => {
    const { clients, sizes } = aStore(10_000, tooLong)
    const impossible = [
      aStoredEvent({ uuid: 'no uuid' }),
      aStoredEvent({ timestampMs: Number.NaN }),
      aStoredEvent({ event: 'x'.repeat(200_000) }),
    ]
    assert.deepEqual(await findChargedTimes(clients, impossible), [null, null, null])
    assert.deepEqual(sizes, [])
  })

  it('splits a question that is too large for one query', async () => {
    const { clients, sizes } = aStore(20_000, tooLong)
    const long = Array.from({ length: 6_000 }, (_, n) =>
      aStoredEvent({ event: 'x'.repeat(900), distinctId: `person-${n}` }),
    )
    assert.equal((await findChargedTimes(clients, long)).at(-1), 5_999)
    assert.equal(sizes.length, 2)
  })
})
