// The columns that say which flag an event called, and the answer.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { aStoredEvent, imported } from '../support/values.ts'

const tables = eventStoreForTests()

function columnsOf(projectId: number): Promise<[flag: string, response: string][]> {
  return tables.clients.write(async (client, database) => {
    const query = `SELECT flag_called, flag_response FROM ${database}.events FINAL
      WHERE project_id = ${projectId} ORDER BY distinct_id`
    return (await client.query({ query, format: 'JSONCompactEachRow' })).json<[string, string]>()
  })
}

/** Properties of a call, and what the columns have of it. */
const calls: [propertiesJson: string, flag: string, response: string][] = [
  ['{"$feature_flag":"beta","$feature_flag_response":true}', 'beta', 'true'],
  ['{"$feature_flag":"beta","$feature_flag_response":false}', 'beta', 'false'],
  ['{"$feature_flag":"beta","$feature_flag_response":"test-a"}', 'beta', 'test-a'],
  ['{ "$feature_flag" : "beta",\n"$feature_flag_response" : "prénom" }', 'beta', 'prénom'],
  ['{"$feature_flag":"beta"}', 'beta', ''],
  ['{"$feature_flag":"beta","$feature_flag_response":null}', 'beta', ''],
  ['{"$feature_flag":"beta","$feature_flag_response":1.0}', 'beta', ''],
  ['{"$feature_flag":"beta","$feature_flag_response":["a"]}', 'beta', ''],
  ['{"$feature_flag":7,"$feature_flag_response":[]}', '', ''],
  [`{"$feature_flag":"${'b'.repeat(1001)}"}`, '', ''],
  [`{"$feature_flag":"beta","$feature_flag_response":"${'é'.repeat(501)}"}`, 'beta', ''],
  // The engine's own parser refuses the rest as a whole.
  ['{"id":123456789012345678901234567890,"$feature_flag":"beta","$feature_flag_response":true}', 'beta', 'true'],
  ['{"n":1e999,"$feature_flag":"beta","$feature_flag_response":"a"}', 'beta', 'a'],
  ['{"text":"\\ud800","$feature_flag":"beta","$feature_flag_response": false}', 'beta', 'false'],
]
const other = aStoredEvent({ event: '$pageview', propertiesJson: calls[0]![0], distinctId: 'z' })
const eventsOf = (projectId: number): StoredEvent[] => [
  ...calls.map(([propertiesJson], index) =>
    aStoredEvent({
      projectId,
      event: '$feature_flag_called',
      propertiesJson,
      distinctId: String.fromCharCode(97 + index),
    }),
  ),
  { ...other, projectId },
]
const expected = [...calls.map(([, flag, response]) => [flag, response]), ['', '']]

describe('the columns of flag calls', () => {
  it('are written with the event, whatever other properties it contains', async () => {
    await tables.insert({ events: eventsOf(1) })
    assert.deepEqual(await columnsOf(1), expected)
  })

  it('are preserved when an import is published', async () => {
    await tables.insert({ pendingEvents: eventsOf(2).map(event => imported(event, 7)) })
    assert.deepEqual(await columnsOf(2), [])
    await tables.store.publishJob(7)
    assert.deepEqual(await columnsOf(2), expected)
  })
})
