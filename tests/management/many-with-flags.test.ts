// Lists of what has flags ask the store a handful of times, however long they are: a call for each flag would fill what waits
// for the store, and refuse everybody else.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { ManagementStore } from '#ports/management-store.ts'
import { startManagement } from '../support/management-api.ts'

const bodies: Record<string, (index: number) => object> = {
  surveys: index => ({
    ...{ name: `S${index}`, type: 'popover', linked_flag_id: 1 },
    targeting_flag_filters: { groups: [{ properties: [], rollout_percentage: index }] },
  }),
  early_access_feature: index => ({ name: `E${index}` }),
  experiments: index => ({ name: `X${index}`, feature_flag_key: `x${index}` }),
}

for (const [name, bodyOf] of Object.entries(bodies)) {
  it(`a list of ${name} is read in a few calls, each with its own flags`, async t => {
    let callCount = 0
    const counting = (store: ManagementStore) =>
      new Proxy(store, {
        get(target, method, receiver) {
          callCount++
          return Reflect.get(target, method, receiver)
        },
      })
    const api = await startManagement(t, { wrap: counting })
    assert.equal((await api.call('POST', '/api/projects/1/feature_flags/', { body: { key: 'linked' } })).status, 201)
    const path = `/api/projects/1/${name}/`
    const made = []
    for (let index = 0; index < 12; index++) made.push((await api.call('POST', path, { body: bodyOf(index) })).body)
    callCount = 0
    const { body } = await api.call('GET', path)
    assert.ok(callCount < 8, `${callCount} calls`)
    assert.deepEqual(body.results, made.reverse())
  })
}
