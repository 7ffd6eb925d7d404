// The request of every SDK in docs/wire/clients.md 3 is accepted with the answer that the SDK understands, and is in
// the log as the SDK meant it. `recorded-requests.test.ts` sends the same requests to a whole instance.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { startCaptureServer, testToken } from '../support/capture-server.ts'
import { sdkRequests } from './sdks/all-sdks.ts'
import { receivedAt, type StoredBySdk } from './sdks/sdk-request.ts'

const requests = sdkRequests(testToken)

describe('capture requests of SDKs', () => {
  it('have different distinct ids', () => {
    const ids = requests.map(({ stored }) => stored[0]!.distinctId)
    assert.equal(new Set(ids).size, ids.length)
  })
  for (const { sdk, method, path, headers, body, status = 200, stored } of requests) {
    it(`${sdk}: ${method} ${path.split('?', 1)[0]}`, async t => {
      const server = await startCaptureServer(t, { now: receivedAt })
      const answer = await fetch(server.url + path, { method, headers, ...(method === 'POST' && { body }) })
      assert.deepEqual([answer.status, await answer.text()], status === 204 ? [204, ''] : [200, '{"status":"Ok"}'])
      const { events } = await server.records()
      assert.equal(events.length, stored.length)
      for (const [index, event] of events.entries()) assertCaptured(event, stored[index]!)
    })
  }
})

function assertCaptured(event: CapturedEvent, expected: StoredBySdk): void {
  assert.deepEqual(
    [event.name, event.distinctId, new Date(event.timestampMs).toISOString(), event.historicalMigration],
    [
      expected.event,
      expected.distinctId,
      new Date(expected.timestamp).toISOString(),
      expected.historicalMigration ?? false,
    ],
  )
  if (expected.uuid !== undefined) assert.equal(event.uuid, expected.uuid)
  const properties = JSON.parse(event.propertiesJson) as Record<string, unknown>
  for (const [key, value] of Object.entries(expected.properties)) assert.deepEqual(properties[key], value, key)
  if (expected.set !== undefined)
    assert.deepEqual(event.setJson === null ? properties.$set : JSON.parse(event.setJson), expected.set)
}
