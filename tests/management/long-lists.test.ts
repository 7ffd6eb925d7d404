// Lists ask the store a handful of times, or one thing after the other, however long they are: a call for each item at once
// would fill what waits for the store, and refuse everybody else.

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

it('the projects of a key that is limited to many are read one after the other', async t => {
  let openCount = 0
  let openCountMax = 0
  const watching = (store: ManagementStore): ManagementStore => ({
    ...store,
    findProject: async id => {
      openCountMax = Math.max(openCountMax, ++openCount)
      const project = await store.findProject(id)
      openCount--
      return project
    },
  })
  const api = await startManagement(t, { wrap: watching })
  const limited = await api.addKey(['*'], [...Array.from({ length: 50 }, (_, index) => index + 1)])
  const { body } = await api.call('GET', '/api/projects/', { key: limited })
  assert.equal(body.count, 1)
  assert.equal(openCountMax, 1)
})
