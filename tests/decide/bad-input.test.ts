// Hostile definitions and requests: each is answered, and none holds up the others.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { type DecideServer, startDecideServer } from '../support/decide-server.ts'

function ask(server: DecideServer, fields: JsonObject) {
  return server.post('/decide?v=3', { api_key: 'phc_test', distinct_id: 'user-1', ...fields })
}

function flagOf(id: number, properties: JsonObject[]): JsonObject {
  return { id, key: `flag-${id}`, filters: { groups: [{ properties }] } }
}

describe('a key that is not a project API key', () => {
  it('is rejected like an unknown key, and the error says so if it is a secret key', async t => {
    const server = await startDecideServer(t, { flags: [] })
    const sentence = 'The provided API key is invalid or has expired. Please check your API key and try again.'
    for (const [key, detail] of [
      ['phc_unknown', sentence],
      ['phx_mine', `${sentence} It is a secret key: flags take the project API key, phc_…`],
      ['phs_mine', `${sentence} It is a secret key: flags take the project API key, phc_…`],
    ] as const) {
      const { status, json } = await server.post('/flags?v=2', { token: key, distinct_id: 'user-1' })
      assert.deepEqual([status, json.code, json.detail], [401, 'authentication_failed', detail])
    }
  })
})

describe('an evaluation', () => {
  it('accepts a request with 1,000 groups when the project has five group types', async t => {
    const groupTypes = Object.fromEntries([0, 1, 2, 3, 4].map(index => [String(index), `type-${index}`]))
    const flags = [0, 1, 2, 3, 4].map(index => ({
      id: index + 1,
      key: `of-${index}`,
      filters: {
        aggregation_group_type_index: index,
        groups: [
          { properties: [{ key: 'tier', type: 'group', group_type_index: index, value: 'gold', operator: 'exact' }] },
        ],
      },
    }))
    const server = await startDecideServer(t, { flags, groupTypes })
    const names = Array.from({ length: 1_000 }, (_, index) => `type-${index}`)
    const answer = await ask(server, {
      groups: Object.fromEntries(names.map(name => [name, `key of ${name}`])),
      group_properties: Object.fromEntries(
        names.map((name, index) => [name, { tier: index % 2 === 0 ? 'gold' : 'tin' }]),
      ),
    })
    assert.deepEqual(answer.json.featureFlags, {
      'of-0': true,
      'of-1': false,
      'of-2': true,
      'of-3': false,
      'of-4': true,
    })
  })

  it('follows a chain of 100 dependencies, stored in any order', async t => {
    const flags = Array.from({ length: 101 }, (_, index) => {
      const id = 101 - index
      const test = { key: String(id - 1), type: 'flag', operator: 'flag_evaluates_to', value: id % 2 === 0 }
      return flagOf(id, id === 1 ? [{ key: 'on', type: 'person', operator: 'exact', value: 'yes' }] : [test])
    })
    const server = await startDecideServer(t, { flags })
    for (const [on, expected] of [
      ['yes', true],
      ['no', false],
    ] as const) {
      const { json } = await ask(server, { person_properties: { on } })
      const values = json.featureFlags as Record<string, boolean>
      assert.equal(Object.keys(values).length, 101)
      assert.equal(values['flag-1'], expected)
      // Each even flag equals the flag below it, each odd one is its opposite.
      for (let id = 2; id <= 101; id++)
        assert.equal(values[`flag-${id}`], id % 2 === 0 ? values[`flag-${id - 1}`] : !values[`flag-${id - 1}`])
    }
  })

  it('finishes for patterns that make backtracking engines hang', async t => {
    const patterns = ['^(a+)+$', '^(a|aa)+$', '(.*)*x', '(a*)*b', '^(([a-z])+.)+[A-Z]([a-z])+$']
    const flags = patterns.map((value, index) =>
      flagOf(index + 1, [{ key: 'agent', type: 'person', operator: 'regex', value }]),
    )
    const server = await startDecideServer(t, { flags })
    const { json } = await ask(server, { person_properties: { agent: `${'a'.repeat(16_000)}!` } })
    assert.deepEqual(
      Object.values(json.featureFlags as object),
      patterns.map(() => false),
    )
    assert.equal(json.errorsWhileComputingFlags, false)
  })
})
