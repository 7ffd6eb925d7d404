// OpenFeature's remote evaluation on a real server, with flags of the test. Source: docs/wire/ofrep.md.

import type { TestContext } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { type DecideServerOptions, startDecideServer } from './decide-server.ts'

export const bulkPath = '/ofrep/v1/evaluate/flags'
export const everybody = { properties: [], rollout_percentage: 100 }
export const proOnly = { properties: [{ key: 'plan', type: 'person', value: ['pro'], operator: 'exact' }] }
export const halves = {
  variants: [
    { key: 'a', rollout_percentage: 50 },
    { key: 'b', rollout_percentage: 50 },
  ],
}

export const flags: readonly JsonObject[] = [
  { id: 1, key: 'on', filters: { groups: [everybody], payloads: { true: '{"a":1}' } } },
  { id: 2, key: 'off', version: 3, filters: { groups: [{ ...everybody, rollout_percentage: 0 }] } },
  { id: 3, key: 'pro', filters: { groups: [proOnly] } },
  {
    id: 4,
    key: 'fixed',
    filters: { groups: [{ ...everybody, variant: 'b' }], multivariate: halves, payloads: { b: '"hello"' } },
  },
  { id: 5, key: 'inactive', active: false, version: 9, filters: { groups: [everybody] } },
  { id: 6, key: 'deleted', deleted: true, filters: { groups: [everybody] } },
]

export interface Item {
  readonly key: string
  readonly value?: boolean | string
  readonly reason?: string
  readonly variant?: string
  readonly metadata?: Record<string, unknown>
  readonly errorCode?: string
  readonly errorDetails?: string
}

export async function startOfrep(t: Pick<TestContext, 'after'>, options: Partial<DecideServerOptions> = {}) {
  const server = await startDecideServer(t, { flags, hasCapacity: false, ...options })
  const ask = (path: string, body: string | Buffer, headers: Record<string, string> = {}) =>
    server.call(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json; charset=utf-8', authorization: 'Bearer phc_test', ...headers },
      body: body as string,
    })
  const askWith = (path: string, context: object, headers: Record<string, string> = {}) =>
    ask(path, JSON.stringify({ context }), headers)
  return {
    ...server,
    ask,
    askWith,
    one: async (key: string, context: object = { targetingKey: 'u' }, headers: Record<string, string> = {}) =>
      (await askWith(`${bulkPath}/${key}`, context, headers)).json as unknown as Item,
    all: async (context: object = { targetingKey: 'u' }, headers: Record<string, string> = {}) => {
      const { flags: items } = (await askWith(bulkPath, context, headers)).json as unknown as { flags: Item[] }
      return new Map(items.map(item => [item.key, item]))
    },
  }
}
