import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startManagement } from '../support/management-api.ts'

// A script with an empty variable asks `?distinct_id=`, and must not get all persons as the answer.

const base = '/api/projects/@current'
/** The filters that narrow each list. */
const filters: Readonly<Record<string, readonly string[]>> = {
  '/persons/': ['distinct_id', 'uuid'],
  '/events/': ['event', 'distinct_id', 'person_id', 'uuid', 'after', 'before', 'properties'],
  '/rejected_events/': [
    ...['reason', 'field', 'event', 'distinct_id', 'uuid', 'id', 'lane', 'after', 'before', 'replayed'],
  ],
  '/replay_messages/': ['session_id', 'distinct_id', 'after', 'before'],
  '/events/live/': ['event', 'distinct_id', 'lane', 'properties', 'historical', 'rejected'],
  '/feature_flags/': ['active'],
  '/surveys/': ['archived'],
  '/usage/': ['date_from', 'date_to'],
}

describe('an empty filter', () => {
  it('is rejected by name, since it would match everything', async t => {
    const api = await startManagement(t)
    for (const [path, names] of Object.entries(filters))
      for (const name of names) {
        await api.refuses('GET', `${base}${path}`, [`${name}=`, name, 'invalid_input', /empty.*omit it/i])
      }
    await api.refuses('GET', `${base}/events/live/`, ['event=seen&event=', 'event'])
  })

  it('is ignored for text search and for paging parameters', async t => {
    const api = await startManagement(t)
    await api.get(`${base}/persons/?search=&limit=&offset=&cursor=`)
    for (const { method, path, operation } of api.routes) {
      if (method !== 'GET' || !('search' in operation.query) || 'deprecated' in operation.query.search!.schema) continue
      const address = `${path.replace(':projectId', '@current')}/?search=&group_type_index=0`
      const { body } = await api.call('GET', address.replaceAll(/:\w+/g, '1'))
      assert.notEqual(body.attr, 'search', address)
    }
    await api.get(`${base}/events/?cursor=&orderBy=`)
  })

  it('counts as missing for a required parameter', async t => {
    const api = await startManagement(t)
    await api.refuses('GET', `${base}/groups/`, ['group_type_index=', 'group_type_index', 'required'])
  })
})
