// Projects whose trends are asked for over HTTP, on one engine and one server for the tests of a file.

import assert from 'node:assert/strict'
import { after } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { startClosableManagement } from '../support/management-api.ts'
import { aStoredEvent } from '../support/values.ts'

/** Noon of the day that it is in the tests, in Berlin. */
export const noon = Date.parse('2026-05-01T10:00:00Z')
export const today = { date_from: 'dStart' }
export const [ada, bob] = ['0192a4b0-0000-7000-8000-00000000000a', '0192a4b0-0000-7000-8000-00000000000b'] as const

export const events = (event: string | null, more: object = {}) => ({ kind: 'EventsNode', event, ...more })
export const withFlag = (value: string) => ({ timestampMs: noon, flags: new Map([['$feature/new-nav', value]]) })
export const lines = (results: { label: string; data: number[] }[]) =>
  results.map(({ label, data }) => [label, ...data])

/** Call at the top of a file. */
export function trendsForTests() {
  const held = eventStoreForTests()
  let shared: ReturnType<typeof startClosableManagement> | undefined
  after(async () => (await shared)?.close())

  /** A new project in Berlin, and a way to ask for its trends. It is 2026-05-01T12:00:00Z. */
  async function startTrends(settings: object = {}) {
    shared ??= startClosableManagement({ events: held.store })
    const api = await shared
    const { id } = await api.post('/api/projects/', { name: 'Berlin', timezone: 'Europe/Berlin', ...settings })
    const projectId: number = id
    return {
      projectId,
      api,
      call: (query: object) => api.call('POST', `/api/projects/${projectId}/query/`, { body: { query } }),
      async results(query: object) {
        const { status, text, body } = await this.call({ kind: 'TrendsQuery', ...query })
        assert.equal(status, 200, text)
        return body.results
      },
      insert: (...events: Partial<StoredEvent>[]) =>
        held.insert({ events: events.map(event => aStoredEvent({ projectId, ...event })) }),
    }
  }
  return { held, startTrends }
}
